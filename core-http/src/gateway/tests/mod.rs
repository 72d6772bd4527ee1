//! The gateway as its clients and its services see it; each test name is a claim.

mod authentication;
mod bodies;
mod caching;
mod captured;
mod cors;
mod forwarding;
mod limits;
mod logging;
mod paths;
mod socket;
mod suspension;
mod world;
