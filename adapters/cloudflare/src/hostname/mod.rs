//! Hostnames: those of ours that lead to workers and projects, and those of customers.

mod custom;
pub(crate) mod customer;
mod dns;
mod pages_route;
pub(crate) mod route;
mod status;
mod worker_route;
pub(crate) mod zone;
