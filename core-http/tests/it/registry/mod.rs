//! The registry: what its endpoints do, beyond what holds for every endpoint.

mod audit;
mod audit_checkpoints;
mod audit_damage;
mod audit_export;
mod audit_filters;
mod audit_seals;
mod builds;
mod config;
mod deployment_records;
mod dns;
mod domains;
mod entities;
mod events;
mod events_end;
mod features;
mod lifecycle;
mod model;
mod onboarding;
mod platforms;
mod removal;
mod resources;
mod secrets;
mod stores;
mod totals;
mod webhooks;
mod workspace_stacks;
