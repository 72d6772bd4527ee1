//! Signing in from a program: device login (RFC 8628), refresh tokens (RFC 6749), and what clients discover (RFC 8414).

mod device;
mod metadata;
mod token;
mod wrong_user_codes;

use std::sync::Arc;

use core_domain::iam::OAuthClient;
use core_domain::kernel::{Code, Error, Result, TextValue};
pub(super) use wrong_user_codes::WrongUserCodes;

use super::config::Iam;
use crate::kernel::Endpoint;

const DEVICE_CODE: &str = "/oauth/device/code";
const TOKEN: &str = "/oauth/token";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [device::rows(iam), token::rows(), metadata::rows(iam)];
    parts.into_iter().flatten().collect()
}

/// The client of this name.
fn client(id: &str) -> Result<OAuthClient> {
    let unknown = || Error::refused(Code::InvalidClient, "There is no client of this name.");
    OAuthClient::from_text(id).ok_or_else(unknown)
}
