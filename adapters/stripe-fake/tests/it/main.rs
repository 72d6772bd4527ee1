//! Tests of the fake through its server.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod cards;
mod contract;
mod faults;
mod invoices;
mod keys;
mod limit;
mod lists;
mod webhooks;
mod world;
