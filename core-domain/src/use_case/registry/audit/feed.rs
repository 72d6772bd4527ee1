//! The change feed: sealed changes in the order in which they were sealed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Unreadable, platform_in_reach, readable, reads_around};
use crate::access::{SignedInScope, authorize_signed_in, unowned};
use crate::kernel::{Context, Effect, Error, Line, PlatformId, Result, Stored, grant};
use crate::port::{Mode, Store, UnitOfWork};
use crate::shared::{
    AuditChain, AuditEntry, AuditHead, AuditSeal, AuditSealQuery, AuditStream, ChangeEvent,
};
use crate::use_case::iam;

/// How many seals are read at once.
const PAGE: u32 = 200;

/// What of the feed is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedQuery {
    /// Of this platform.
    pub platform_id: Option<PlatformId>,
    /// Of these types, separated by commas: actions, or first segments of actions.
    pub types: Option<Line<0, 1024>>,
    /// Behind this event; the header `Last-Event-ID` counts before it. From now on, when neither is given.
    pub last_event_id: Option<Line<0, 255>>,
    /// Whether to stay for what is still to come (the default), or to end with what there is.
    pub follow: Option<bool>,
}

/// A place in the feed.
#[derive(Clone, Debug)]
pub struct ChangeFeed {
    cx: Context,
    platform: Option<PlatformId>,
    types: Vec<String>,
    position: i64,
}

/// Opens the feed: all of it for operators, that of one platform for others. `last` is the id of the last event the caller
/// has seen.
///
/// # Errors
/// `VALIDATION_ERROR` for an id that no event had yet; `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `event:read`;
/// `PLATFORM_SUSPENDED`.
pub async fn open(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    query: &FeedQuery,
    last: Option<&str>,
) -> Result<ChangeFeed> {
    let mut uow = store.begin(Mode::Read).await?;
    let uow = uow.as_mut();
    let wanted = query.platform_id.as_ref();
    let platform = platform_in_reach::<grant::EventRead>(cx, uow, wanted).await?;
    let head = unowned::<AuditHead>(uow).find(AuditChain::feed()).await?;
    let head = head.map_or(0, |head| head.seq);
    let last = last.or(query.last_event_id.as_ref().map(Line::as_str));
    let types = query.types.as_ref().map_or("", Line::as_str).split(',');
    let types = types.map(str::trim).filter(|name| !name.is_empty());
    Ok(ChangeFeed {
        cx: cx.consequence(),
        platform,
        types: types.map(str::to_owned).collect(),
        position: last.map_or(Ok(head), |last| position(last, head))?,
    })
}

/// The position an id stands for.
fn position(id: &str, head: i64) -> Result<i64> {
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let position = id
        .parse()
        .ok()
        .filter(|position| digits && *position <= head);
    position.ok_or_else(|| Error::invalid("lastEventId", "unknown", "is no event's id"))
}

impl ChangeFeed {
    /// The next events, and whether there may be more at once. The place moves behind what was looked at. Events are told
    /// only to a caller who may read them in the state of the store they were read in.
    ///
    /// # Errors
    /// As [`Self::authorize_again`], when there are events; when the store failed.
    pub async fn next(&mut self, store: &dyn Store) -> Result<(Vec<ChangeEvent>, bool)> {
        let mut unreadable = Unreadable::new();
        let (seals, entries) = loop {
            let mut uow = store.begin(Mode::Read).await?;
            match self.page(uow.as_mut(), &unreadable).await {
                // An entry that was damaged is told of by nobody, and keeps back none of the others.
                Err(error) if reads_around(&error, &mut unreadable) => {}
                page => break page?,
            }
        };
        let Some(last) = seals.last() else {
            return Ok((Vec::new(), false));
        };
        self.position = last.position;
        let events = seals.iter().filter_map(|seal| {
            let entry = entries.get(seal.entry_id.as_str())?;
            Some(ChangeEvent::of(seal.position, entry))
        });
        let wanted = |event: &ChangeEvent| {
            self.types.is_empty() || self.types.iter().any(|name| event.is_of_type(name))
        };
        Ok((
            events.filter(wanted).collect(),
            seals.len() >= PAGE as usize,
        ))
    }

    async fn page(
        &self,
        uow: &mut dyn UnitOfWork,
        unreadable: &Unreadable,
    ) -> Result<(Vec<Stored<AuditSeal>>, BTreeMap<String, Stored<AuditEntry>>)> {
        let chain = self.platform.as_ref().map(|id| AuditChain::of(Some(id)));
        let behind = AuditSealQuery::Feed(chain, self.position);
        let seals = unowned::<AuditSeal>(uow).list(&behind, PAGE).await?;
        let changes = seals
            .iter()
            .filter(|seal| seal.stream == AuditStream::Changes);
        let ids = readable(changes.map(|seal| &seal.entry_id), unreadable);
        if !ids.is_empty() {
            self.authorize(uow).await?;
        }
        let entries = unowned::<AuditEntry>(uow).get_many(&ids).await?;
        let entries = entries
            .into_iter()
            .map(|entry| (entry.id.to_string(), entry));
        Ok((seals, entries.collect()))
    }

    /// Lets the caller in once more: what they are and may do now, not what they were when they came.
    ///
    /// # Errors
    /// `UNAUTHORIZED` when the session or key has ended; otherwise as [`open`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        self.authorize(uow.as_mut()).await
    }

    async fn authorize(&self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let caller = iam::current_caller(&self.cx, uow).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize_signed_in(&cx, uow).await?;
        let platform =
            platform_in_reach::<grant::EventRead>(&cx, uow, self.platform.as_ref()).await?;
        if platform == self.platform {
            Ok(())
        } else {
            Err(Error::Forbidden)
        }
    }

    /// Tells whether the caller may no longer be let in because of this.
    #[must_use]
    pub fn is_concerned_by(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, self.platform.as_ref())
    }
}
