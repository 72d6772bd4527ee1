//! API keys: better-auth's routes for people who manage them, and the validation for services.

mod manage;
mod presented;
mod shapes;
mod validate;
mod view;

use std::sync::Arc;

pub(super) use presented::{KeyLimits, find_key};

use crate::kernel::Endpoint;

pub(super) fn rows(limits: &Arc<KeyLimits>) -> Vec<Endpoint> {
    let mut rows = manage::rows();
    rows.push(validate::row(limits));
    rows
}
