//! IAM through its tower service, over the memory store.

mod auth;
mod forgery;
mod gateway;
mod operators;
mod org_setup;
mod own_sessions;
mod world;
