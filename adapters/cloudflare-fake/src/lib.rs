//! A stateful fake of the part of Cloudflare's API v4 that the suite uses, for the tests of whoever calls that API.
//!
//! It listens on the loopback interface, keeps one account in memory and answers as the API does: the envelope, codes,
//! pages, names that are taken, references to what does not exist. Faults are scripted for requests that match, or drawn
//! from a seed. Its clock and its ids are its own and the same in every run.

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
