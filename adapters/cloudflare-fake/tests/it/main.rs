//! Tests of the fake through its server.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod answers;
mod contract;
mod faults;
mod limit;
mod pages;
mod resources;
mod scripts;
mod world;
mod zones;
