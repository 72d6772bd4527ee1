//! Integration tests of the local provider, through the ports, the typed stores and HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod atomic;
mod blobs;
mod contents;
mod crash;
mod example_site;
mod host;
mod hostnames;
mod limits;
mod log;
mod logs;
mod objects;
mod private;
mod redeploys;
mod retention;
mod running;
mod safety;
mod sites;
mod socket;
mod stores;
mod support;
mod suspension;
mod usage;
mod workers;
