//! The clock, which programs can replace in their tests.

use std::fmt;
use std::time::SystemTime;

/// A source of the present time. The client itself needs none; programs that store tokens compare their expiry with it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the present time.
    fn now(&self) -> SystemTime;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "a client runs outside of the suite and has no Clock port"
    )]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
