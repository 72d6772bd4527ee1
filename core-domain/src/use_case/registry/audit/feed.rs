//! The change feed: sealed audit entries of changes, in the order in which they were sealed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Unreadable, platform_in_reach, readable, skip_unreadable};
use crate::access::{SignedInScope, authorize_signed_in, unowned_records};
use crate::kernel::{Context, Effect, Error, Line, PlatformId, Result, Stored, permission};
use crate::port::{Mode, Store, UnitOfWork};
use crate::shared::{
    AuditChain, AuditEntry, AuditHead, AuditSeal, AuditSealQuery, AuditStream, ChangeEvent,
};
use crate::use_case::iam;
use crate::use_case::shared::newest_archive;

/// Number of seals per read.
const PAGE: u32 = 200;

/// Selects events of the change feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedQuery {
    /// Only events of this platform. `null` means all platforms for operators, and the caller's platform for others.
    pub platform_id: Option<PlatformId>,
    /// Only events of these types, separated by commas: actions such as `platform.suspended`, or first segments such as
    /// `platform`. `null` means all types.
    pub types: Option<Line<0, 1024>>,
    /// Only events after the event with this id. The header `Last-Event-ID` has precedence. If neither is given, the
    /// feed starts with new events.
    pub last_event_id: Option<Line<0, 255>>,
    /// Whether the response stays open for new events. `false` ends it after the existing events. Default: `true`.
    pub follow: Option<bool>,
}

/// A position in the feed, with the caller and the filter.
#[derive(Clone, Debug)]
pub struct ChangeFeed {
    cx: Context,
    platform: Option<PlatformId>,
    types: Vec<String>,
    position: i64,
}

/// Opens the feed: for operators with all events, for other callers with the events of one platform. `last` is the id
/// of the last event that the caller received.
///
/// # Errors
/// - `VALIDATION_ERROR` if no event has had this id yet, or if events after it are archived.
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `event:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
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
    let platform = platform_in_reach::<permission::EventRead>(cx, uow, wanted).await?;
    let head = end_of_feed(uow).await?;
    let last = last.or(query.last_event_id.as_ref().map(Line::as_str));
    let position = match last {
        Some(last) => position_after(uow, last, head).await?,
        None => head,
    };
    let types = query.types.as_ref().map_or("", Line::as_str).split(',');
    let types = types.map(str::trim).filter(|name| !name.is_empty());
    Ok(ChangeFeed {
        cx: cx.without_conditions(),
        platform,
        types: types.map(str::to_owned).collect(),
        position,
    })
}

/// Returns the recorded end of the feed: the position of the last seal.
async fn end_of_feed(uow: &mut dyn UnitOfWork) -> Result<i64> {
    let head = unowned_records::<AuditHead>(uow)
        .find(AuditChain::feed())
        .await?;
    Ok(head.map_or(0, |head| head.seq))
}

/// Reads the seals after a position.
async fn seals_after(
    uow: &mut dyn UnitOfWork,
    chain: Option<AuditChain>,
    position: i64,
) -> Result<Vec<Stored<AuditSeal>>> {
    let behind = match chain {
        Some(chain) => AuditSealQuery::OfChainBehind(chain, position),
        None => AuditSealQuery::Positions(position, end_of_feed(uow).await?),
    };
    unowned_records::<AuditSeal>(uow).list(&behind, PAGE).await
}

/// Returns the ids of the readable entries of changes.
fn change_ids<'s>(seals: &'s [Stored<AuditSeal>], unreadable: &'s Unreadable) -> Vec<&'s str> {
    let seals = seals.iter();
    let changes = seals.filter(|seal| seal.stream == AuditStream::Changes);
    readable(changes.map(|seal| &seal.entry_id), unreadable)
}

/// Sealed changes of all platforms, for a service that follows them.
#[derive(Debug)]
pub(in crate::use_case) struct SealedChanges {
    /// The changes that can be read, in the order of the feed.
    pub(in crate::use_case) entries: Vec<Stored<AuditEntry>>,
    /// The position of the last change.
    pub(in crate::use_case) position: i64,
    /// `true` if there are no more changes yet.
    pub(in crate::use_case) is_last: bool,
}

/// Returns the next changes after a position of the feed.
pub(in crate::use_case) async fn changes_after(
    store: &dyn Store,
    position: i64,
) -> Result<SealedChanges> {
    let mut unreadable = Unreadable::new();
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let uow = uow.as_mut();
        let seals = seals_after(uow, None, position).await?;
        let ids = change_ids(&seals, &unreadable);
        let entries = unowned_records::<AuditEntry>(uow).get_many(&ids).await;
        match entries {
            Err(error) if skip_unreadable(&error, &mut unreadable) => {}
            entries => {
                return Ok(SealedChanges {
                    entries: entries?,
                    position: seals.last().map_or(position, |last| last.position),
                    is_last: seals.len() < PAGE as usize,
                });
            }
        }
    }
}

/// Returns the position of an event id, so that no event is missing after it. Position 0 is before the first event that is
/// not archived. `head` is the highest valid position.
async fn position_after(uow: &mut dyn UnitOfWork, id: &str, head: i64) -> Result<i64> {
    let position = parse_position(id, head)?;
    let archive = newest_archive(uow).await?;
    match archive {
        Some(archive) if (1..archive.position).contains(&position) => {
            let archived = format!(
                "is before events that are archived; the events after {} are available",
                archive.position
            );
            Err(Error::invalid("lastEventId", "archived", archived))
        }
        _ => Ok(position),
    }
}

/// Parses an event id. `head` is the highest valid position.
fn parse_position(id: &str, head: i64) -> Result<i64> {
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let position = id
        .parse()
        .ok()
        .filter(|position| digits && *position <= head);
    position.ok_or_else(|| Error::invalid("lastEventId", "unknown", "is not the id of an event"))
}

impl ChangeFeed {
    /// Returns the next events, and whether more may be available at once. Moves the position past the events that were
    /// read.
    ///
    /// The permission of the caller is checked in the same unit of work that reads the events.
    ///
    /// # Errors
    /// Those of [`Self::authorize_again`], if there are events.
    pub async fn next(&mut self, store: &dyn Store) -> Result<(Vec<ChangeEvent>, bool)> {
        let mut unreadable = Unreadable::new();
        let (seals, entries) = loop {
            let mut uow = store.begin(Mode::Read).await?;
            match self.page(uow.as_mut(), &unreadable).await {
                // A damaged entry is skipped, so that the other entries can still be read.
                Err(error) if skip_unreadable(&error, &mut unreadable) => {}
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

    /// Reads the next seals and the readable entries of changes.
    async fn page(
        &self,
        uow: &mut dyn UnitOfWork,
        unreadable: &Unreadable,
    ) -> Result<(Vec<Stored<AuditSeal>>, BTreeMap<String, Stored<AuditEntry>>)> {
        let chain = self.platform.as_ref().map(|id| AuditChain::of(Some(id)));
        let seals = seals_after(uow, chain, self.position).await?;
        let ids = change_ids(&seals, unreadable);
        if !ids.is_empty() {
            self.authorize(uow).await?;
        }
        let entries = unowned_records::<AuditEntry>(uow).get_many(&ids).await?;
        let entries = entries
            .into_iter()
            .map(|entry| (entry.id.to_string(), entry));
        Ok((seals, entries.collect()))
    }

    /// Checks the caller again with their current permissions.
    ///
    /// # Errors
    /// `UNAUTHORIZED` if the session or key has ended; otherwise those of [`open`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        self.authorize(uow.as_mut()).await
    }

    /// Checks the caller's current permissions in a unit of work.
    async fn authorize(&self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let caller = iam::current_caller(&self.cx, uow).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize_signed_in(&cx, uow).await?;
        let platform =
            platform_in_reach::<permission::EventRead>(&cx, uow, self.platform.as_ref()).await?;
        if platform == self.platform {
            Ok(())
        } else {
            Err(Error::Forbidden)
        }
    }

    /// Returns whether this effect can change the caller's access, so that it must be checked again.
    #[must_use]
    pub fn may_lose_access_by(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, self.platform.as_ref())
    }
}
