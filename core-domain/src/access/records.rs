//! Reads of one kind of record, restricted to what a scope covers.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use super::RecordKey;
use crate::kernel::{
    Bounded, Error, Page, PageQuery, PlatformId, PlatformOwned, Record, Result, Stored, Unowned,
};
use crate::port::{Direction, Persisted, RecordGroup, Repository, Staged, UnitOfWork, Within};

/// A scope that permits writes of records with this owner. Only the scopes of this module implement it.
pub trait Covers<Owner>: Sealed + Send + Sync {
    /// The one platform whose records are covered; `None` if the scope is not restricted to one platform.
    fn covered_platform(&self) -> Option<&PlatformId>;

    /// The platform whose audit log receives changes of records that belong to no platform; `None` for the log of the
    /// installation. Scopes for changes of a person's own data (sessions, passwords, factors) have none.
    fn audit_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// Prevents implementations of [`Covers`] outside this crate.
pub trait Sealed {}

/// Declares scopes that cover only records of no platform. `audited in |scope| ..` returns the platform whose audit log
/// receives their changes.
macro_rules! covers_unowned {
    ($($scope:ty $(, for $permission:ident)? $(, audited in $audit_platform:expr)?;)+) => {$(
        impl$(<$permission: $crate::kernel::PermissionType>)? $crate::access::records::Sealed for $scope {}

        impl$(<$permission: $crate::kernel::PermissionType>)? $crate::access::records::Covers<$crate::kernel::Unowned> for $scope {
            fn covered_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                None
            }

            $(fn audit_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                let of: fn(&Self) -> Option<&$crate::kernel::PlatformId> = $audit_platform;
                of(self)
            })?
        }
    )+};
}
pub(super) use covers_unowned;

/// Marks scopes on the whole installation, which cover records of both kinds of owner.
pub(super) trait CoversEverything: Sealed + Send + Sync {}

impl<S: CoversEverything> Covers<PlatformOwned> for S {
    fn covered_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// The records of one kind that a scope covers.
pub struct Records<'a, R> {
    uow: &'a mut dyn UnitOfWork,
    within: Within<'a>,
    record: PhantomData<R>,
}

impl<R: Record> std::fmt::Debug for Records<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records")
            .field("kind", &R::KIND)
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// Returns access to the records of one kind that belong to no platform. The use case decides which of them the caller
/// may see.
pub(crate) fn unowned_records<R>(uow: &mut dyn UnitOfWork) -> Records<'_, R>
where
    R: Persisted + Record<Owner = Unowned>,
{
    Records::within(uow, Within::Installation)
}

impl<'a, R: Persisted> Records<'a, R> {
    pub(super) fn within(uow: &'a mut dyn UnitOfWork, within: Within<'a>) -> Self {
        Self {
            uow,
            within,
            record: PhantomData,
        }
    }

    fn repository(&mut self) -> &mut dyn Repository<R> {
        R::repository(self.uow.repositories(RecordKey::new()))
    }

    /// Returns the record with this key.
    ///
    /// # Errors
    /// `NOT_FOUND` if the scope covers no record with this key.
    pub async fn get(self, key: impl AsRef<str> + Send) -> Result<Stored<R>> {
        self.find(key).await?.ok_or(Error::NotFound(R::KIND))
    }

    /// Returns the record with this key; `None` if it does not exist.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn find(mut self, key: impl AsRef<str> + Send) -> Result<Option<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().get(within, key.as_ref()).await?)
    }

    /// Returns the records with these keys, sorted by key. Skips keys without a record.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn get_many(mut self, keys: &[&str]) -> Result<Vec<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().get_many(within, keys).await?)
    }

    /// Returns the first record that matches the query, in the query's order.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn first(mut self, query: &R::Query) -> Result<Option<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().first(within, query).await?)
    }

    /// Returns the first `limit` records that match the query, in the query's order.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn list(mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().list(within, query, limit).await?)
    }

    /// Returns a page of the records that match the query.
    ///
    /// # Errors
    /// `INVALID_CURSOR` if the cursor was not issued for this query.
    pub async fn page(mut self, query: &R::Query, page: &PageQuery) -> Result<Page<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().page(within, query, page).await?)
    }

    /// Returns the first staged records; see [`Repository::list_staged`].
    pub(crate) async fn list_staged(mut self, limit: u32) -> Result<Vec<Staged<R>>> {
        Ok(self.repository().list_staged(limit).await?)
    }

    /// Returns those of the given keys that belong to staged records.
    pub(crate) async fn staged_keys(mut self, among: &[&str]) -> Result<BTreeSet<String>> {
        Ok(self.repository().staged_keys(among).await?)
    }

    /// Returns the number of records that match the query.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn count(mut self, query: &R::Query) -> Result<u64> {
        let within = self.within;
        Ok(self.repository().count(within, query).await?)
    }

    /// Returns the records that match the query as groups with a sum; see [`Repository::sum_by`].
    pub(crate) async fn sum_by(
        mut self,
        query: &R::Query,
        sum: &'static str,
        by: &[&'static str],
    ) -> Result<Vec<RecordGroup>> {
        let within = self.within;
        Ok(self.repository().sum_by(within, query, sum, by).await?)
    }

    /// Returns the ancestors or descendants of the record with this key; see [`Repository::walk`].
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn walk(
        mut self,
        key: impl AsRef<str> + Send,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>> {
        let within = self.within;
        let repository = self.repository();
        Ok(repository
            .walk(within, key.as_ref(), direction, depth)
            .await?)
    }

    /// Like [`Records::walk`], but limited to the size of a response; see [`Repository::walk_bounded`].
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn walk_bounded(
        mut self,
        key: impl AsRef<str> + Send,
        direction: Direction,
        depth: u32,
    ) -> Result<Bounded<Stored<R>>> {
        let within = self.within;
        let repository = self.repository();
        let walked = repository.walk_bounded(within, key.as_ref(), direction, depth);
        Ok(walked.await?)
    }

    /// Like [`Records::list`], but locks the rows until the unit of work ends; see [`Repository::claim`].
    pub(crate) async fn claim(mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>> {
        Ok(self.repository().claim(query, limit).await?)
    }

    /// Removes the first `limit` records that match the query; see [`Repository::remove_first`]. Writes no audit
    /// entries, like [`Records::remove_all`].
    pub(crate) async fn remove_first(mut self, query: &R::Query, limit: u32) -> Result<u64> {
        Ok(self.repository().remove_first(query, limit).await?)
    }

    /// Removes every record that matches the query and returns their number. Writes no audit entries. Use it for
    /// expired records, and for records that are removed together with their platform or user, whose removal is
    /// audited.
    pub(crate) async fn remove_all(mut self, query: &R::Query) -> Result<u64> {
        let within = self.within;
        Ok(self.repository().remove_all(within, query).await?)
    }
}
