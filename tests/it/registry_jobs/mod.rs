//! The jobs of the registry on every store, with the local provider.

mod auth;
mod crash;
mod features;
mod holds;
mod onboarding;
mod removal;
mod setup;
