//! Reading records of one kind, as far as a scope reaches.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use crate::kernel::{
    Bounded, Error, Page, PageRequest, PlatformId, PlatformOwned, Record, Result, Stored, Unowned,
};
use crate::port::{Direction, Persisted, Repository, Staged, UnitOfWork, Within};

/// The key to the repositories. It is made in this folder alone, so that there is no way to a record but through a
/// scope, and no way to change one but through [`audited`](super::audited).
#[derive(Debug)]
pub struct RecordKey(());

impl RecordKey {
    pub(super) const fn new() -> Self {
        Self(())
    }

    /// For tests that look into a store, and for those of stores.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn for_tests() -> Self {
        Self(())
    }
}

/// A scope that lets a use case write records of this owner. Implemented by the scopes of this folder alone.
pub trait Covers<Owner>: Sealed + Send + Sync {
    /// The one platform whose records are covered; `None` when that is not the question.
    fn covered_platform(&self) -> Option<&PlatformId>;

    /// The platform whose audit shows changes of records that belong to no platform themselves; `None` if no platform's does.
    /// What people change of their own (sessions, passwords, factors) is written with scopes that have none.
    fn audit_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// Keeps others from making scopes.
pub trait Sealed {}

/// Declares scopes that cover records of no platform alone. `audited in |scope| ..` says in which platform's audit.
macro_rules! covers_unowned {
    ($($scope:ty $(, for $grant:ident)? $(, audited in $audit_platform:expr)?;)+) => {$(
        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::records::Sealed for $scope {}

        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::records::Covers<$crate::kernel::Unowned> for $scope {
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

/// Both kinds of owner, for scopes on the whole installation.
pub(super) trait CoversEverything: Sealed + Send + Sync {}

impl<S: CoversEverything> Covers<PlatformOwned> for S {
    fn covered_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// The records of one kind that a scope reaches.
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

/// The records of one kind that belong to no platform. For use cases, which decide themselves what of them the caller
/// is shown.
pub(crate) fn unowned<R>(uow: &mut dyn UnitOfWork) -> Records<'_, R>
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

    /// The record with this key.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn get(self, key: impl AsRef<str> + Send) -> Result<Stored<R>> {
        self.find(key).await?.ok_or(Error::NotFound(R::KIND))
    }

    /// The record with this key, if there is one.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn find(mut self, key: impl AsRef<str> + Send) -> Result<Option<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().get(within, key.as_ref()).await?)
    }

    /// The records with these keys, sorted by key; those that do not exist are left out.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn get_many(mut self, keys: &[&str]) -> Result<Vec<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().get_many(within, keys).await?)
    }

    /// The first record that answers the query, in the query's order.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn first(mut self, query: &R::Query) -> Result<Option<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().first(within, query).await?)
    }

    /// The first records that answer the query, in the query's order.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn list(mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().list(within, query, limit).await?)
    }

    /// A page of the records that answer the query.
    ///
    /// # Errors
    /// `INVALID_CURSOR`.
    pub async fn page(mut self, query: &R::Query, page: &PageRequest) -> Result<Page<Stored<R>>> {
        let within = self.within;
        Ok(self.repository().page(within, query, page).await?)
    }

    /// The first staged records, see [`Repository::staged`].
    pub(crate) async fn staged(mut self, limit: u32) -> Result<Vec<Staged<R>>> {
        Ok(self.repository().staged(limit).await?)
    }

    /// Which of these keys are those of staged records.
    pub(crate) async fn staged_keys(mut self, among: &[&str]) -> Result<BTreeSet<String>> {
        Ok(self.repository().staged_keys(among).await?)
    }

    /// How many records answer the query.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn count(mut self, query: &R::Query) -> Result<u64> {
        let within = self.within;
        Ok(self.repository().count(within, query).await?)
    }

    /// The records reached from the one with this key, see [`Repository::walk`].
    ///
    /// # Errors
    /// When the store failed.
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

    /// As [`Records::walk`], for an answer: see [`Repository::walk_bounded`].
    ///
    /// # Errors
    /// When the store failed.
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

    /// As [`Records::list`], with the rows locked for this unit, see [`Repository::claim`].
    pub(crate) async fn claim(mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>> {
        Ok(self.repository().claim(query, limit).await?)
    }

    /// Removes the first records that answer the query, see [`Repository::remove_first`]. Leaves no audit entries, as
    /// [`Records::remove_all`].
    pub(crate) async fn remove_first(mut self, query: &R::Query, limit: u32) -> Result<u64> {
        Ok(self.repository().remove_first(query, limit).await?)
    }

    /// Removes every record that answers the query; tells how many. Leaves no audit entries: for what is removed with
    /// the platform or person it belongs to, whose removal has an entry, and for what time has made useless.
    pub(crate) async fn remove_all(mut self, query: &R::Query) -> Result<u64> {
        let within = self.within;
        Ok(self.repository().remove_all(within, query).await?)
    }
}
