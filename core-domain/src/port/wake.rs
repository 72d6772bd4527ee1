//! The hint that there is work.

/// Told after a commit that may have queued work. A hint only: whoever sleeps also polls.
pub trait Wake: Send + Sync + std::fmt::Debug {
    /// There may be work now.
    fn wake(&self);
}

/// Nobody sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}
