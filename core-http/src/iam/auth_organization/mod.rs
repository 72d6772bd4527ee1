//! Organizations as better-auth's clients know them. Reads are `GET`, as the clients send them, and `POST` works as well.

mod common;
mod invitations;
mod members;
mod organizations;
mod views;

use std::sync::Arc;

use super::config::Iam;
use crate::kernel::Endpoint;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [
        organizations::rows(iam),
        members::rows(),
        invitations::rows(iam),
    ];
    parts.into_iter().flatten().collect()
}
