//! What goes wrong with a body.

use std::time::Duration;

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body did not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyTimeout {
    /// The sender paused for too long.
    #[error("the body paused for longer than {0:?}")]
    Idle(Duration),
    /// The whole body took too long.
    #[error("the body took longer than {0:?}")]
    Total(Duration),
}
