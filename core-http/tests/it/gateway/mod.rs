//! The gateway as its clients and its services see it; each test name is a claim.

mod api_key_limits;
mod arrangements;
mod authentication;
mod bodies;
mod caching;
mod captured;
mod cors;
mod cross_origin;
mod event_streams;
mod forwarding;
mod framing;
mod limits;
mod logging;
mod over_http;
mod paths;
mod service_tokens;
mod suspension;
mod world;
