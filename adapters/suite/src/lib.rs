//! The whole Platform Control API Suite in one dependency: every service as a tower service over the store you choose.

mod clock;
mod entropy;

pub use clock::SystemClock;
pub use entropy::SystemEntropy;
