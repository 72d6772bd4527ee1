//! Hostnames: platform hostnames of workers and projects, and customers' hostnames.

mod custom;
pub(crate) mod customer;
mod dns;
mod pages_route;
pub(crate) mod route;
mod status;
mod worker_route;
pub(crate) mod zone;
