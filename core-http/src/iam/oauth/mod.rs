//! Sign-in for programs: device login (RFC 8628), refresh tokens (RFC 6749) and server metadata (RFC 8414).

mod client;
mod device;
mod metadata;
mod token;

use std::sync::Arc;

pub(super) use device::{decide_by_user_code, find_pending};

use super::config::Iam;
use crate::kernel::Endpoint;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [device::rows(iam), token::rows(), metadata::rows(iam)];
    parts.into_iter().flatten().collect()
}
