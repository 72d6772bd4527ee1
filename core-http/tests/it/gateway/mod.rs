//! The gateway from the view of its clients and of the services.

mod api_key_limits;
mod arrangements;
mod authentication;
mod bodies;
mod caching;
mod captured;
mod cors;
mod cross_origin;
mod decoration;
mod event_streams;
mod forwarding;
mod framing;
mod http_authority;
mod limits;
mod logging;
mod memory;
mod metering;
mod over_http;
mod paths;
mod raw_services;
mod reference;
mod resilience;
mod resource_metadata;
mod service_tokens;
mod suspension;
mod world;
