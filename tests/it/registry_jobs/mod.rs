//! The jobs of the registry on every store, with the local provider.

mod auth_worker;
mod crash;
mod every_kind;
mod features;
mod holds;
mod names;
mod onboarding;
mod onboarding_undo;
mod others;
mod removal;
mod scenarios;
mod setup;
mod snapshot;
