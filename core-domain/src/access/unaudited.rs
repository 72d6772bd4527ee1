//! Writes without an audit entry. They are for records with a history of their own (jobs), and for parts of a
//! change that has an entry. They are also for records that no caller changes: the outbox, stored responses, and
//! the sliding expiry of a session.

use std::collections::BTreeSet;

use super::key::RecordKey;
use super::platform::PlatformWriter;
use super::records::{Records, unowned_records};
use crate::kernel::{Owner, PageQuery, Record, Result, Stored, Unowned, for_each_record};
use crate::port::{
    ApiKeyContext, ApiKeySecretKey, Persisted, Repository, SessionContext, SessionKey, UnitOfWork,
};

fn repository<R: Persisted>(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<R> {
    R::repository(uow.repositories(RecordKey::new()))
}

/// Inserts a record.
pub(crate) async fn insert<R: Persisted>(uow: &mut dyn UnitOfWork, record: R) -> Result<Stored<R>> {
    Ok(repository::<R>(uow).insert(record).await?)
}

/// Inserts several records.
pub(crate) async fn insert_many<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).insert_many(records).await?)
}

/// Adds a record whose key was generated for it and which has no other unique values.
pub(crate) async fn append<R: Persisted>(uow: &mut dyn UnitOfWork, record: R) -> Result<()> {
    append_many(uow, vec![record]).await
}

/// Like [`append`], for several records.
pub(crate) async fn append_many<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<()> {
    Ok(repository::<R>(uow).append_many(records).await?)
}

/// Like [`append_many`]; returns the stored records.
pub(crate) async fn append_stored<R: Persisted + Clone>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<Vec<Stored<R>>> {
    // A new record has version 1.
    let stored = records.iter().cloned().map(|record| Stored::new(record, 1));
    let stored = stored.collect();
    append_many(uow, records).await?;
    Ok(stored)
}

/// Moves staged records to the other records; see [`Repository::promote`]. Returns how many of them were staged.
pub(crate) async fn promote<R: Persisted>(uow: &mut dyn UnitOfWork, keys: &[&str]) -> Result<u64> {
    Ok(repository::<R>(uow).promote(keys).await?)
}

/// Deletes archived records; see [`Repository::remove_archived`]. Returns their number.
pub(crate) async fn remove_archived<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    keys: &[&str],
) -> Result<u64> {
    Ok(repository::<R>(uow).remove_archived(keys).await?)
}

/// Inserts the records whose keys are free and locks the existing ones; see [`Repository::insert_or_lock`].
pub(crate) async fn insert_or_lock<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).insert_or_lock(records).await?)
}

/// Locks a record until the unit ends, and returns it; see [`Repository::lock`].
pub(crate) async fn lock<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    key: &str,
) -> Result<Option<Stored<R>>> {
    Ok(repository::<R>(uow).lock(key).await?)
}

/// Inserts the records whose keys are free and returns their keys; see [`Repository::insert_new`].
pub(crate) async fn insert_new<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<BTreeSet<String>> {
    Ok(repository::<R>(uow).insert_new(records).await?)
}

/// Replaces locked records; see [`Repository::replace_locked`].
pub(crate) async fn replace_locked<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    changes: Vec<(Stored<R>, R)>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).replace_locked(changes).await?)
}

/// Replaces records that have not changed since they were read.
pub(crate) async fn replace_many<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    changes: Vec<(Stored<R>, R)>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).replace_many(changes).await?)
}

/// Replaces `seen` with `next` if the record has not changed since it was read.
pub(crate) async fn replace<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    seen: &Stored<R>,
    next: R,
) -> Result<Stored<R>> {
    Ok(repository::<R>(uow).replace(seen, next).await?)
}

/// Removes a record if it has not changed since it was read.
pub(crate) async fn remove<R: Persisted>(uow: &mut dyn UnitOfWork, seen: &Stored<R>) -> Result<()> {
    Ok(repository::<R>(uow).remove(seen).await?)
}

/// Number of records that are read at once.
const BATCH_SIZE: u32 = 100;

/// Reads the records that match a query in batches of 100, in the query's order. Processing a batch may change its
/// records so that they no longer match.
#[derive(Debug)]
pub(crate) struct Batches<R: Persisted> {
    query: R::Query,
    next: Option<PageQuery>,
}

impl<R: Persisted> Batches<R> {
    /// Creates an iterator over the records that match the query.
    pub(crate) fn of(query: R::Query) -> Self {
        let first = PageQuery::first(BATCH_SIZE).without_count();
        Self {
            query,
            next: Some(first),
        }
    }

    /// Returns the next batch; `None` after the last one.
    ///
    /// # Errors
    /// Only those of the store.
    pub(crate) async fn next(&mut self, records: Records<'_, R>) -> Result<Option<Vec<Stored<R>>>> {
        let Some(page) = self.next.take() else {
            return Ok(None);
        };
        let found = records.page(&self.query, &page).await?;
        self.next = found.next.map(|cursor| PageQuery {
            cursor: Some(cursor),
            ..page
        });
        Ok(Some(found.items))
    }
}

/// Returns all records that match the query, in the query's order. Only for lists whose length is limited.
///
/// # Errors
/// Only those of the store.
pub(crate) async fn all_unowned<R>(
    uow: &mut dyn UnitOfWork,
    query: R::Query,
) -> Result<Vec<Stored<R>>>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let mut batches = Batches::<R>::of(query);
    let mut all = Vec::new();
    while let Some(batch) = batches.next(unowned_records(uow)).await? {
        all.extend(batch);
    }
    Ok(all)
}

macro_rules! remove_records {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// Removes all records of the platform, of every kind. The audit log and the history of jobs belong to the
        /// installation and stay.
        ///
        /// # Errors
        /// Only those of the store.
        pub(crate) async fn remove_records(access: &PlatformWriter, uow: &mut dyn UnitOfWork) -> Result<()> {
            $(
                if <<$record as Record>::Owner as Owner>::IS_PLATFORM {
                    let repositories = uow.repositories(RecordKey::new());
                    repositories.$accessor().remove_of_platform(access.id()).await?;
                }
            )+
            Ok(())
        }
    };
}
for_each_record!(remove_records);

/// Returns the session and the records that belong to it. Only authentication uses it, before a scope can exist.
///
/// # Errors
/// Only those of the store.
pub(crate) async fn session_context(
    uow: &mut dyn UnitOfWork,
    key: SessionKey<'_>,
) -> Result<Option<SessionContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.session_context(key).await?)
}

/// Returns the API key and the records that belong to it. Like [`session_context`], only for authentication.
///
/// # Errors
/// Only those of the store.
pub(crate) async fn api_key_context(
    uow: &mut dyn UnitOfWork,
    secret: ApiKeySecretKey<'_>,
) -> Result<Option<ApiKeyContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.api_key_context(secret).await?)
}
