//! The job engine on every store.

mod audit;
mod engine;
mod model;
mod races;
mod world;
