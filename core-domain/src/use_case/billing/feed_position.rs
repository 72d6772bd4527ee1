//! The positions up to which billing has read its feeds.

use crate::access::{unaudited, unowned_records};
use crate::billing::FeedCursor;
use crate::kernel::{Result, Stored};
use crate::port::{Mode, Store, UnitOfWork, transact};

/// Returns the position up to which a feed was read. Returns `None` if it was never read.
pub(super) async fn position(store: &dyn Store, feed: &str) -> Result<Option<i64>> {
    let mut uow = store.begin(Mode::Read).await?;
    let cursor = find(uow.as_mut(), feed).await;
    uow.rollback().await;
    Ok(cursor?.map(|cursor| cursor.position))
}

async fn find(uow: &mut dyn UnitOfWork, feed: &str) -> Result<Option<Stored<FeedCursor>>> {
    unowned_records::<FeedCursor>(uow).find(feed).await
}

/// Stores that a feed was read up to a position. Another node may already have read more.
pub(super) async fn advance(store: &dyn Store, feed: &'static str, position: i64) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(async move { advance_in(uow, feed, position).await })
    })
    .await
}

async fn advance_in(uow: &mut dyn UnitOfWork, feed: &str, position: i64) -> Result<()> {
    match find(uow, feed).await? {
        Some(seen) if seen.position < position => {
            let mut next = seen.edit();
            next.position = position;
            unaudited::replace(uow, &seen, next).await?;
        }
        Some(_) => {}
        None => {
            let id = feed.to_owned();
            unaudited::insert(uow, FeedCursor { id, position }).await?;
        }
    }
    Ok(())
}
