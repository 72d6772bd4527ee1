//! Organizations in the format of better-auth's clients. Clients read with `GET`; `POST` works as well.

mod common;
mod invitation;
mod member;
mod organization;
mod views;

use std::sync::Arc;

use super::config::Iam;
use crate::kernel::Endpoint;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [
        organization::rows(iam),
        member::rows(),
        invitation::rows(iam),
    ];
    parts.into_iter().flatten().collect()
}
