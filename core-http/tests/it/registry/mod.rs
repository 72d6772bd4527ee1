//! The registry: what its endpoints do, beyond what holds for every endpoint.

mod audit;
mod entities;
mod lifecycle;
mod onboarding;
mod platforms;
mod removal;
mod resources;
mod stores;
mod webhooks;
