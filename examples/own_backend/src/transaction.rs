//! A transaction of redb.

use redb::{ReadTransaction, WriteTransaction};
use tokio::sync::OwnedMutexGuard;

/// The transaction of a unit of work. A write transaction holds the writer lock until it ends.
pub(crate) enum Transaction {
    Read(ReadTransaction),
    Write(Box<WriteTransaction>, OwnedMutexGuard<()>),
}
