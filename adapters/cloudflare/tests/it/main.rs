//! Integration tests of the adapter against a fake of Cloudflare.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod answers;
mod contract;
mod faults;
mod hostnames;
mod logs;
mod operations;
mod receipts;
mod resources;
mod secrets;
mod sites;
mod workers;
mod world;
