//! The registry: what its endpoints do, beyond what holds for every endpoint.

mod audit;
mod builds;
mod entities;
mod features;
mod lifecycle;
mod onboarding;
mod platforms;
mod removal;
mod resources;
mod secrets;
mod stores;
