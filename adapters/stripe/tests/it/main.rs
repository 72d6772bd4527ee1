//! Tests of the adapter with the fake of Stripe's API.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod changes;
mod contract;
mod failures;
mod invoices;
mod limits;
mod secrets;
mod suite;
mod webhooks;
mod world;
