//! The suspension flag the gateway obeys.

use crate::kernel::{PlatformId, Reason, Timestamp};
use crate::port::Record;

/// Says that a platform is suspended. It is there for as long as that is so.
#[derive(Clone, Debug, PartialEq)]
pub struct PlatformSuspension {
    /// The platform.
    pub platform_id: PlatformId,
    /// Why, if somebody said so.
    pub reason: Option<Reason>,
    /// Since when.
    pub created_at: Timestamp,
}

impl Record for PlatformSuspension {
    type Query = PlatformSuspensionQuery;
    const KIND: &'static str = "platform suspension";

    fn key(&self) -> &str {
        self.platform_id.as_str()
    }
}

/// Questions about suspensions.
#[derive(Clone, Debug, PartialEq)]
pub enum PlatformSuspensionQuery {
    /// All, oldest first.
    All,
}
