//! The state of a fake, which all its connections share.

use core_fake_kit::Shared;
use core_fake_kit::fault::FaultQueue;

use crate::fault::Fault;
use crate::journal::Journal;
use crate::limit::Limiter;
use crate::state::State;

/// The state that the lock protects.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) faults: FaultQueue<Fault>,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Journal,
}

/// The state that all connections share.
pub(crate) type SharedInner = Shared<Inner>;
