//! Rate limits: policies, the keys that are counted, and counters per key and window in a table of limited size.

mod key;
mod policy;
mod window;

pub use key::{RateKey, RateSubject};
pub use policy::{PolicyError, RateClass, RateKind, RatePlan, RatePolicy};
pub use window::{Usage, Windows};
