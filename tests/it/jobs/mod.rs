//! The job engine on every store.

mod audit;
mod engine;
mod world;
