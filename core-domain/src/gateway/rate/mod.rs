//! How many requests a client may make: policies, the keys that are counted, and a counter per key and window in a table
//! of bounded size.

mod key;
mod policy;
mod window;

pub use key::{RateKey, RateSubject};
pub use policy::{PolicyError, RateClass, RateKind, RatePlan, RatePolicy};
pub use window::{Usage, Windows};
