//! Whether every entry of a chain is sealed in it, or waits to be.

use std::collections::BTreeMap;

use super::verify_report::{ProblemKind, VerifyReport};
use crate::access::unowned;
use crate::kernel::{AuditId, Error, PlatformId, Result, StoreError, Stored, Timestamp};
use crate::port::{Mode, Store, UnitOfWork};
use crate::shared::{AuditEntry, AuditOrder, AuditQuery, AuditSeal, AuditStream};

/// How many entries are read at once.
const PAGE: u32 = 500;

/// A place in a list of entries, oldest first.
type Place = (Timestamp, AuditId);

/// A walk over the entries of a chain, beside that over its links. Links come in the order of their sealing, entries in that
/// of their instants; so the walk goes as far as the latest entry that was found where it should be.
pub(super) struct EntryWalk {
    platform: Option<PlatformId>,
    /// Up to here every entry was looked at.
    walked: Option<Place>,
    /// Up to here links were checked.
    reached: Option<Place>,
}

fn place_of(entry: &AuditEntry) -> Place {
    (entry.created_at, entry.id.clone())
}

impl EntryWalk {
    pub(super) const fn new(platform: Option<PlatformId>) -> Self {
        Self {
            platform,
            walked: None,
            reached: None,
        }
    }

    /// Leaves out what is before the link that a verification begins behind.
    pub(super) fn begin_behind(&mut self, entry: &AuditEntry) {
        self.walked = Some(place_of(entry));
    }

    /// The link of this entry was checked.
    pub(super) fn reached(&mut self, entry: &AuditEntry) {
        let place = place_of(entry);
        self.reached = Some(
            self.reached
                .take()
                .map_or(place.clone(), |at| at.max(place)),
        );
    }

    /// Looks at the entries up to where links were checked; up to the last one at the end of the chain.
    pub(super) async fn check(
        &mut self,
        store: &dyn Store,
        report: &mut VerifyReport,
        is_last: bool,
    ) -> Result<()> {
        let end = if is_last {
            None
        } else if self.reached > self.walked {
            self.reached.clone()
        } else {
            return Ok(());
        };
        for stream in AuditStream::ALL {
            match self
                .check_stream(store, report, *stream, end.as_ref())
                .await
            {
                Err(Error::Store(StoreError::Corrupt { key, .. })) => {
                    let entry = AuditId::parse(&key);
                    let message = "the entry cannot be read, nor could the entries behind it";
                    let kind = ProblemKind::EntryUnreadable;
                    report.problem(kind, None, entry.as_ref(), message);
                }
                outcome => outcome?,
            }
        }
        self.walked = end;
        Ok(())
    }

    async fn check_stream(
        &self,
        store: &dyn Store,
        report: &mut VerifyReport,
        stream: AuditStream,
        end: Option<&Place>,
    ) -> Result<()> {
        let mut entries = AuditQuery {
            stream,
            platform_id: self.platform.clone(),
            without_platform: self.platform.is_none(),
            order: AuditOrder::OldestFirst(self.walked.clone()),
            ..AuditQuery::default()
        };
        loop {
            let mut uow = store.begin(Mode::Read).await?;
            let uow = uow.as_mut();
            let page = unowned::<AuditEntry>(uow).list(&entries, PAGE).await?;
            let within =
                |entry: &&Stored<AuditEntry>| end.is_none_or(|end| place_of(entry) <= *end);
            let ids: Vec<&AuditId> = page.iter().take_while(within).map(|e| &e.id).collect();
            check_sealed(uow, report, &ids).await?;
            match page.last() {
                Some(last) if ids.len() == PAGE as usize => {
                    entries.order = AuditOrder::OldestFirst(Some(place_of(last)));
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Each of them is sealed in the chain, or waits.
async fn check_sealed(
    uow: &mut dyn UnitOfWork,
    report: &mut VerifyReport,
    ids: &[&AuditId],
) -> Result<()> {
    let keys: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    let seals = unowned::<AuditSeal>(uow).get_many(&keys).await?;
    let sealed = seals.iter().map(|seal| (&seal.entry_id, &seal.chain));
    let sealed: BTreeMap<_, _> = sealed.collect();
    let others = ids.iter().filter(|id| !sealed.contains_key(*id));
    let others: Vec<&str> = others.map(|id| id.as_str()).collect();
    let waiting = unowned::<AuditEntry>(uow).staged_keys(&others).await?;
    for id in ids {
        let message = match sealed.get(*id) {
            Some(chain) if **chain == report.chain => continue,
            Some(_) => "the entry is sealed in the chain of another platform",
            None if waiting.contains(id.as_str()) => {
                report.unsealed += 1;
                continue;
            }
            None => "the entry is not sealed and does not wait to be",
        };
        report.problem(ProblemKind::EntryNotSealed, None, Some(id), message);
    }
    Ok(())
}
