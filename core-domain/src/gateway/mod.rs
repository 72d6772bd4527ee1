//! The rules of the gateway: routing, client addresses, rate limits, credentials, CORS, and trace context.
//!
//! These are pure functions. The layers that apply them are in `core-http`.

mod address;
mod cors;
mod credential;
mod page;
mod path;
mod rate;
mod route;
mod sampling;
mod trace;

pub use address::{TrustedProxies, client_address, client_network};
pub use cors::{Origin, OriginError, Origins, PREFLIGHT_METHODS};
pub use credential::{Credential, CredentialError, read_credential};
pub use page::BrowserRequest;
pub use path::{PathError, check_path};
pub use rate::{
    PolicyError, RateClass, RateKey, RateKind, RatePlan, RatePolicy, RateSubject, Usage, Windows,
};
pub use route::{Destination, Route, find_route, is_at_or_below, strip_segment_prefix};
pub use sampling::Sampling;
pub use trace::{SpanId, TraceContext, TraceId, TracingId, is_request_id};
