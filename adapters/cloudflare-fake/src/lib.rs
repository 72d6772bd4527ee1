//! A stateful fake of the part of Cloudflare's API v4 that the suite uses, for tests of API clients.
//!
//! It listens on the loopback interface, keeps one account in memory and responds like the API, including envelopes,
//! error codes, pagination, name conflicts and missing references. Faults are scripted for matching requests, or random
//! with a seed. Its clock and its ids are deterministic.

mod access;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod d1;
mod envelope;
mod fault;
mod handle;
mod journal;
mod jwt;
mod kv;
mod limit;
mod multipart;
mod page;
mod pages;
mod queue;
mod r2;
mod request;
mod router;
mod script;
mod server;
mod serving;
mod settings;
mod state;
mod user;
mod zone;

pub use fault::{Fault, Matcher, Pace, Silence};
pub use handle::FakeCloudflare;
pub use journal::{Exchange, Recorded};
pub use limit::RateLimit;
pub use serving::Visited;
pub use settings::Settings;
pub use state::Kind;
pub use state::project::DeploymentEnd;
pub use state::script::ScriptInfo;
