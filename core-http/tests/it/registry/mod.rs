//! The registry: what its endpoints do, beyond what holds for every endpoint.

mod audit;
mod audit_export;
mod audit_filters;
mod audit_seals;
mod entities;
mod events;
mod lifecycle;
mod onboarding;
mod platforms;
mod removal;
mod resources;
mod stores;
