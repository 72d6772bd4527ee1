//! Stored responses to requests with an `Idempotency-Key`.

use super::sweep::remove_first;
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Error, Result, StoreError};
use crate::port::UnitOfWork;
use crate::shared::{IdempotencyQuery, StoredResponse};

/// Returns the response stored under a key, unless it has expired.
///
/// # Errors
/// Only those of the store.
pub async fn find_answer(uow: &mut dyn UnitOfWork, key: &str) -> Result<Option<StoredResponse>> {
    let now = uow.now().await?;
    let stored = unowned_records::<StoredResponse>(uow).find(key).await?;
    let stored = stored.filter(|answer| now < answer.expires_at);
    Ok(stored.map(crate::kernel::Stored::into_inner))
}

/// Stores a response in the unit of work of the change. Returns `false` without a change if the key has a response that
/// has not expired.
///
/// # Errors
/// Only those of the store.
pub async fn store_answer(uow: &mut dyn UnitOfWork, answer: StoredResponse) -> Result<bool> {
    let now = uow.now().await?;
    if let Some(known) = unowned_records::<StoredResponse>(uow)
        .find(&answer.id)
        .await?
    {
        if now < known.expires_at {
            return Ok(false);
        }
        unaudited::remove(uow, &known).await?;
    }
    match unaudited::insert(uow, answer).await {
        Ok(_) => Ok(true),
        Err(Error::Store(StoreError::Conflict { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Replaces what is stored under a key, or removes it.
///
/// # Errors
/// Only those of the store.
pub async fn replace_answer(
    uow: &mut dyn UnitOfWork,
    key: &str,
    answer: Option<StoredResponse>,
) -> Result<()> {
    if let Some(known) = unowned_records::<StoredResponse>(uow).find(key).await? {
        unaudited::remove(uow, &known).await?;
    }
    if let Some(answer) = answer {
        unaudited::insert(uow, answer).await?;
    }
    Ok(())
}

/// Removes at most `limit` expired responses, earliest first. Returns the number of removed responses; 0 means that
/// none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_answers(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let expired = IdempotencyQuery::ExpiredBefore(uow.now().await?);
    remove_first::<StoredResponse>(uow, &expired, limit).await
}
