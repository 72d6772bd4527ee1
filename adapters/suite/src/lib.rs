//! The whole Platform Control API Suite in one dependency: every service as a tower service over the store you choose.

mod archives;
mod clock;
mod entropy;
mod latency;
mod password;
mod worker;

pub use archives::UnpackArchives;
pub use clock::SystemClock;
pub use entropy::SystemEntropy;
pub use latency::SlowInfrastructure;
pub use password::Argon2Hasher;
pub use worker::{WorkerHandle, WorkerOptions, WorkerWake, start_worker};
