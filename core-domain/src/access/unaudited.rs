//! Changing records without an audit entry, for what has a history of its own (jobs), is no act of anybody's (the outbox,
//! stored answers, a session that slides while it is used), or is a part of a change that has an entry.

use super::key::RecordKey;
use crate::kernel::{Result, Stored};
use crate::port::{Persisted, Repository, UnitOfWork};

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
