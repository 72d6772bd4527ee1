//! How far billing has followed the feeds that it reads.

use crate::kernel::record;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;

/// The position up to which billing has read a feed. There is at most one for each feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct FeedCursor {
    /// The feed, or the daily task: one of the constants.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,8}"))]
    pub id: String,
    /// The position of the last change that was read, in the unit of the feed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
}

record! {
    FeedCursor as "feed cursor" by id, asked FeedCursorQuery;
}

impl FeedCursor {
    /// The change feed, read for platforms that end. Its positions are those of the feed.
    pub const PLATFORMS: &'static str = "platforms";

    /// The events of the payment provider. Its positions are seconds of the provider's clock.
    pub const PROVIDER: &'static str = "provider";

    /// The comparison of all invoices with the provider. Its positions are UTC days since 1970.
    pub const COMPARED: &'static str = "compared";

    /// The measurement of what all platforms store. Its positions are UTC days since 1970.
    pub const STORAGE: &'static str = "storage";
}

/// Queries for cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedCursorQuery {
    /// Those of all feeds.
    All,
}
