//! The totals of lists, counted or remembered.

use core_domain::kernel::{Owner, PlatformId, StoreError, Total};
use core_domain::port::{Repository, Within};
use core_domain::shared::{AuditChain, AuditEntry, AuditHead, AuditQuery};

use crate::counts::{self, CountKey, NumberedCount};
use crate::filter::Filter;
use crate::query::Select;
use crate::tabular::Tabular;
use crate::unit::RowUnit;

/// The smallest count that is remembered. A smaller count costs less than checking whether a remembered one is still
/// valid.
pub(crate) const MIN_REMEMBERED_COUNT: u64 = 1_000;

/// A number of changes of which the audit log has an entry each.
#[derive(Clone, Copy)]
enum Changes<'a> {
    /// The changes in a platform.
    OfPlatform(&'a PlatformId),
    /// The changes of all records of a kind, whose entries have this entity type.
    OfType(&'static str),
}

impl<'a> Changes<'a> {
    /// Returns the changes among which are all changes of such records. Returns `None` if the audit log does not have
    /// all of them.
    fn of<R: Tabular>(within: Within<'a>) -> Option<Self> {
        match within {
            Within::Platform(platform) => (R::CHANGES_ARE_AUDITED
                && <R::Owner as Owner>::IS_PLATFORM)
                .then_some(Self::OfPlatform(platform)),
            Within::Installation => R::AUDITED_AS.map(Self::OfType),
        }
    }
}

impl RowUnit {
    /// Returns the number of matching records, staged ones included.
    pub(crate) async fn total<R: Tabular>(
        &mut self,
        within: Within<'_>,
        select: &Select,
        known: Total,
    ) -> Result<u64, StoreError> {
        let staged = self.count_staged_rows::<R>(&select.filter).await?;
        let others = match known {
            Total::Known(total) => total,
            Total::AtVersion(version) if self.is_snapshot => {
                self.count_at_version(select, version).await?
            }
            Total::AtVersion(_) | Total::Unknown => self.count::<R>(within, &select.filter).await?,
        };
        Ok(staged + others)
    }

    /// Returns the number of matching staged records.
    async fn count_staged_rows<R: Tabular>(&mut self, filter: &Filter) -> Result<u64, StoreError> {
        match R::STAGING {
            Some(staging) => self.tx.count(staging, filter).await,
            None => Ok(0),
        }
    }

    async fn count<R: Tabular>(
        &mut self,
        within: Within<'_>,
        filter: &Filter,
    ) -> Result<u64, StoreError> {
        let Some(key) = counts::key(R::TABLE, filter) else {
            return self.tx.count(R::TABLE, filter).await;
        };
        if let Some(number) = self.tx.commit_number(R::TABLE, filter.platform()) {
            return self.count_at_number::<R>(filter, key, number).await;
        }
        match Changes::of::<R>(within) {
            Some(changes) if self.is_snapshot => {
                self.count_at_changes::<R>(filter, key, changes).await
            }
            _ => self.tx.count(R::TABLE, filter).await,
        }
    }

    /// Returns the number of matching rows while the number stays the same, from the remembered counts if possible.
    async fn count_at_number<R: Tabular>(
        &mut self,
        filter: &Filter,
        key: CountKey,
        number: u64,
    ) -> Result<u64, StoreError> {
        let known = self.counts.numbered.get(&key);
        if let Some(known) = known.filter(|known| known.number == number) {
            return Ok(known.count);
        }
        let count = self.tx.count(R::TABLE, filter).await?;
        self.counts
            .numbered
            .put(key, NumberedCount { number, count });
        Ok(count)
    }

    /// Returns the number of matching rows while no further change happens. The number of changes is read only if a count
    /// is remembered or large enough to be remembered.
    async fn count_at_changes<R: Tabular>(
        &mut self,
        filter: &Filter,
        key: CountKey,
        changes: Changes<'_>,
    ) -> Result<u64, StoreError> {
        if self.counts.numbered.get(&key).is_some() {
            let number = self.number_of(changes).await?;
            return self.count_at_number::<R>(filter, key, number).await;
        }
        let count = self.tx.count(R::TABLE, filter).await?;
        if count >= MIN_REMEMBERED_COUNT {
            let number = self.number_of(changes).await?;
            self.counts
                .numbered
                .put(key, NumberedCount { number, count });
        }
        Ok(count)
    }

    /// Returns a number that grows with each of the changes. Every commit that changes an audited record adds an audit
    /// entry, which is staged until it is sealed.
    async fn number_of(&mut self, changes: Changes<'_>) -> Result<u64, StoreError> {
        let (chain, entries) = match changes {
            Changes::OfPlatform(platform) => {
                let platform_id = Some(platform.clone());
                let entries = AuditQuery {
                    platform_id,
                    ..AuditQuery::default()
                };
                (AuditChain::of(Some(platform)), entries)
            }
            Changes::OfType(entity_type) => {
                let event_type = Some(entity_type.to_owned());
                let entries = AuditQuery {
                    event_type,
                    ..AuditQuery::default()
                };
                (AuditChain::feed(), entries)
            }
        };
        let heads: &mut dyn Repository<AuditHead> = self;
        let head = heads.get(Within::Installation, chain.as_ref()).await?;
        let version = head.map(|head| head.list_version()).unwrap_or_default();
        let entries = AuditEntry::select(&entries);
        let staged = self
            .count_staged_rows::<AuditEntry>(&entries.filter)
            .await?;
        let sealed = match changes {
            Changes::OfPlatform(_) => version.added,
            // Removing entries lowers their number. Together with the number of removed entries it never decreases.
            Changes::OfType(_) => {
                let remaining = self.count_at_version(&entries, version).await?;
                remaining + version.removed
            }
        };
        Ok(sealed + staged)
    }
}
