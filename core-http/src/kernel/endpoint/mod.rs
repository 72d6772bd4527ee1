//! TODO

pub(super) mod context;
pub(super) mod definition;
pub(super) mod handler;
pub(super) mod health;
pub(super) mod openapi;
pub(super) mod pipeline;
pub(super) mod router;
pub(super) mod row;
pub(super) mod scope;
pub(super) mod service;
pub(super) mod shapes;
