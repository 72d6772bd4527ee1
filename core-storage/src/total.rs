//! The totals of lists, counted or remembered.

use core_domain::kernel::{Owner, PlatformId, StoreError, Total};
use core_domain::port::{Repository, Within};
use core_domain::shared::{AuditChain, AuditEntry, AuditHead, AuditQuery};

use crate::counts::{self, CountId};
use crate::filter::Filter;
use crate::tabular::Tabular;
use crate::unit::RowUnit;

/// The smallest count that is remembered. A smaller count costs less than checking whether a remembered one is still
/// valid.
const MIN_REMEMBERED_COUNT: u64 = 1_000;

impl RowUnit {
    /// Returns the number of matching records, staged ones included.
    pub(crate) async fn total<R: Tabular>(
        &mut self,
        within: Within<'_>,
        filter: &Filter,
        known: Total,
    ) -> Result<u64, StoreError> {
        let staged = self.count_staged_rows::<R>(filter).await?;
        let others = match known {
            Total::Known(total) => total,
            Total::AtVersion(version) if self.is_snapshot => {
                let at = counts::at_version(R::TABLE, filter, version);
                self.count_at::<R>(filter, at).await?
            }
            Total::AtVersion(_) | Total::Unknown => self.count::<R>(within, filter).await?,
        };
        Ok(staged + others)
    }

    /// Returns the number of matching staged records.
    pub(crate) async fn count_staged_rows<R: Tabular>(
        &mut self,
        filter: &Filter,
    ) -> Result<u64, StoreError> {
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
        if let Some(number) = self.tx.commit_number(R::TABLE, filter.platform()) {
            let at = counts::at_commit(R::TABLE, filter, number);
            return self.count_at::<R>(filter, at).await;
        }
        match within {
            Within::Platform(platform) if has_version::<R>() && self.is_snapshot => {
                self.count_of_platform::<R>(platform, filter).await
            }
            _ => self.tx.count(R::TABLE, filter).await,
        }
    }

    /// Returns the number of matching rows, from the remembered counts if possible.
    async fn count_at<R: Tabular>(
        &mut self,
        filter: &Filter,
        at: Option<CountId>,
    ) -> Result<u64, StoreError> {
        let known = at.as_ref().and_then(|at| self.counts.get(at));
        if let Some(count) = known {
            return Ok(count);
        }
        let count = self.tx.count(R::TABLE, filter).await?;
        if let Some(at) = at {
            self.counts.put(at, count);
        }
        Ok(count)
    }

    /// Returns the number of matching rows of the platform. A count is remembered at the platform's version. The
    /// version is read only if a count is remembered or large enough to be remembered.
    async fn count_of_platform<R: Tabular>(
        &mut self,
        platform: &PlatformId,
        filter: &Filter,
    ) -> Result<u64, StoreError> {
        let Some(any) = counts::at_version(R::TABLE, filter, 0) else {
            return self.tx.count(R::TABLE, filter).await;
        };
        if self.counts.has(&any) {
            let number = self.version_of(platform).await?;
            return self
                .count_at::<R>(filter, Some(any.with_number(number)))
                .await;
        }
        let count = self.tx.count(R::TABLE, filter).await?;
        if count >= MIN_REMEMBERED_COUNT {
            let number = self.version_of(platform).await?;
            self.counts.put(any.with_number(number), count);
        }
        Ok(count)
    }

    /// Returns the number of changes of the platform. Every commit that changes an audited record adds an audit entry,
    /// which is staged until the head of the platform's chain counts it.
    async fn version_of(&mut self, platform: &PlatformId) -> Result<u64, StoreError> {
        let chain = AuditChain::of(Some(platform));
        let heads: &mut dyn Repository<AuditHead> = self;
        let head = heads.get(Within::Installation, chain.as_ref()).await?;
        let sealed = head.map_or(0, |head| u64::try_from(head.changes).unwrap_or_default());
        let of_platform = AuditQuery {
            platform_id: Some(platform.clone()),
            ..AuditQuery::default()
        };
        let entries = AuditEntry::select(&of_platform).filter;
        Ok(sealed + self.count_staged_rows::<AuditEntry>(&entries).await?)
    }
}

/// Returns whether every change of such a record changes the version of its platform.
const fn has_version<R: Tabular>() -> bool {
    R::CHANGES_ARE_AUDITED && <R::Owner as Owner>::IS_PLATFORM
}
