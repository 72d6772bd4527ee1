//! The registry through its tower service.

mod access;
mod audit;
mod contract;
mod dry_run;
mod entities;
mod input;
mod life;
mod onboarding;
mod platforms;
mod provider;
mod removal;
mod repeats;
mod resources;
mod stores;
mod world;
