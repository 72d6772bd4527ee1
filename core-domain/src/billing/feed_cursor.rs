//! How far billing has followed the change feed.

use crate::kernel::record;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;

/// The position in the change feed up to which billing has followed the platforms. There is at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct FeedCursor {
    /// Always [`FeedCursor::ID`].
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,8}"))]
    pub id: String,
    /// The position of the last change that was read.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
}

record! {
    FeedCursor as "feed cursor" by id, asked FeedCursorQuery;
}

impl FeedCursor {
    /// The id of the only record.
    pub const ID: &'static str = "platforms";
}

/// Queries for cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedCursorQuery {
    /// The only one.
    All,
}
