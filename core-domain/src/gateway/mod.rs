//! The rules of the gateway: which service a path belongs to, who is counted, who is let through.
//!
//! All of it is pure: texts and instants in, decisions out. The layers that apply the decisions are in `core-http`.

mod address;
mod cors;
mod credential;
mod path;
mod rate;
mod request_id;
mod route;
mod trace;

pub use address::{TrustedProxies, client_address};
pub use cors::{Origin, OriginError, Origins, PREFLIGHT_METHODS};
pub use credential::{Credential, CredentialError, Secret, read_credential};
pub use path::{PathError, check_path};
pub use rate::{Policy, PolicyError, RateKey, RatePlan, Usage, Windows};
pub use request_id::is_request_id;
pub use route::{Destination, Route, ServiceName, find_route, within};
pub use trace::TraceContext;
