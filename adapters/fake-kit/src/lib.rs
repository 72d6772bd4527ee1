//! The parts that the stateful fakes of outside providers share, such as `core-cloudflare-fake` and `core-stripe-fake`.
//!
//! A fake keeps the objects of one account, responds like the API of its provider, and fails on request. The objects,
//! responses, rate limits and kinds of faults belong to each fake. This crate has the rules that are equal in all of
//! them: the server on the loopback interface, the timing of responses, the order of scripted and random faults, the
//! record of exchanges, ids, and with the feature `contract` the checks against an OpenAPI document.

#![forbid(unsafe_code)]

#[cfg(feature = "contract")]
pub mod contract;
mod control;
pub mod fault;
mod ids;
pub mod journal;
pub mod response;
pub mod server;
mod shared;

pub use ids::Ids;
pub use shared::Shared;
