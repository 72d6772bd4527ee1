//! A transaction of redb.

use redb::{ReadTransaction, WriteTransaction};
use tokio::sync::OwnedMutexGuard;

/// What a unit runs in. One that writes keeps its turn until it is over.
pub(crate) enum Transaction {
    Read(ReadTransaction),
    Write(Box<WriteTransaction>, OwnedMutexGuard<()>),
}
