//! Changing records without an audit entry, for what has a history of its own (jobs), is no act of anybody's (the outbox,
//! stored answers, a session that slides while it is used), or is a part of a change that has an entry.

use super::platform::PlatformWriter;
use super::records::{RecordKey, Records, unowned};
use crate::kernel::{Owner, PageRequest, Record, Result, Stored, Total, Unowned, for_each_record};
use crate::port::{
    ApiKeyContext, ApiKeySecretKey, Persisted, Repository, SessionContext, SessionKey, UnitOfWork,
};

fn repository<R: Persisted>(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<R> {
    R::repository(uow.repositories(RecordKey::new()))
}

/// Adds a record.
pub(crate) async fn insert<R: Persisted>(uow: &mut dyn UnitOfWork, record: R) -> Result<Stored<R>> {
    Ok(repository::<R>(uow).insert(record).await?)
}

/// Adds records.
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

/// As [`append`], for many.
pub(crate) async fn append_many<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<()> {
    Ok(repository::<R>(uow).append_many(records).await?)
}

/// As [`append_many`]; returns the records as they are stored.
pub(crate) async fn append_stored<R: Persisted + Clone>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<Vec<Stored<R>>> {
    // Each starts at version 1.
    let stored = records.iter().cloned().map(|record| Stored::new(record, 1));
    let stored = stored.collect();
    append_many(uow, records).await?;
    Ok(stored)
}

/// Puts staged records among the others, see [`Repository::promote`]; tells how many of them were staged.
pub(crate) async fn promote<R: Persisted>(uow: &mut dyn UnitOfWork, keys: &[&str]) -> Result<u64> {
    Ok(repository::<R>(uow).promote(keys).await?)
}

/// Adds the records whose keys are free and locks the others, see [`Repository::insert_or_lock`].
pub(crate) async fn insert_or_lock<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    records: Vec<R>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).insert_or_lock(records).await?)
}

/// Puts new records in the place of locked ones, see [`Repository::replace_locked`].
pub(crate) async fn replace_locked<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    changes: Vec<(Stored<R>, R)>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).replace_locked(changes).await?)
}

/// Puts new records in the place of seen ones, provided nobody changed any of them in between.
pub(crate) async fn replace_many<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    changes: Vec<(Stored<R>, R)>,
) -> Result<Vec<Stored<R>>> {
    Ok(repository::<R>(uow).replace_many(changes).await?)
}

/// Puts `next` in the place of `seen`, provided nobody changed it in between.
pub(crate) async fn replace<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    seen: &Stored<R>,
    next: R,
) -> Result<Stored<R>> {
    Ok(repository::<R>(uow).replace(seen, next).await?)
}

/// Removes a record, provided nobody changed it in between.
pub(crate) async fn remove<R: Persisted>(uow: &mut dyn UnitOfWork, seen: &Stored<R>) -> Result<()> {
    Ok(repository::<R>(uow).remove(seen).await?)
}

/// How many records are read at once.
const BATCH: u32 = 100;

/// The records that answer a query, in the query's order, a hundred at a time. What is done with a batch may take its
/// records out of the answer.
#[derive(Debug)]
pub(crate) struct Batches<R: Persisted> {
    query: R::Query,
    next: Option<PageRequest>,
}

impl<R: Persisted> Batches<R> {
    /// Those that answer this query.
    pub(crate) fn of(query: R::Query) -> Self {
        // Nobody asks for the total: nothing is counted.
        let first = PageRequest {
            total: Total::Known(0),
            ..PageRequest::first(BATCH)
        };
        Self {
            query,
            next: Some(first),
        }
    }

    /// The next batch of these records; `None` after the last one.
    ///
    /// # Errors
    /// When the store failed.
    pub(crate) async fn next(&mut self, records: Records<'_, R>) -> Result<Option<Vec<Stored<R>>>> {
        let Some(page) = self.next.take() else {
            return Ok(None);
        };
        let found = records.page(&self.query, &page).await?;
        self.next = found.next.map(|cursor| PageRequest {
            cursor: Some(cursor),
            ..page
        });
        Ok(Some(found.items))
    }
}

/// Returns all records that answer the query, in the query's order. For lists that a limit keeps short.
///
/// # Errors
/// When the store failed.
pub(crate) async fn all_unowned<R>(
    uow: &mut dyn UnitOfWork,
    query: R::Query,
) -> Result<Vec<Stored<R>>>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let mut batches = Batches::<R>::of(query);
    let mut all = Vec::new();
    while let Some(batch) = batches.next(unowned(uow)).await? {
        all.extend(batch);
    }
    Ok(all)
}

macro_rules! remove_records {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// Removes every record that belongs to the platform, of every kind there is. The audit and the history of jobs
        /// belong to the installation and stay.
        ///
        /// # Errors
        /// When the store failed.
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

/// The session with what belongs to it. For authentication, which is what scopes are made of.
///
/// # Errors
/// When the store failed.
pub(crate) async fn session_context(
    uow: &mut dyn UnitOfWork,
    key: SessionKey<'_>,
) -> Result<Option<SessionContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.session_context(key).await?)
}

/// The API key with what belongs to it; as [`session_context`].
///
/// # Errors
/// When the store failed.
pub(crate) async fn api_key_context(
    uow: &mut dyn UnitOfWork,
    secret: ApiKeySecretKey<'_>,
) -> Result<Option<ApiKeyContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.api_key_context(secret).await?)
}
