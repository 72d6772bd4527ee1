//! Organizations in the format of better-auth's clients. Clients read with `GET`; `POST` works as well.

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
