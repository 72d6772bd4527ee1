//! What the rows share: where they are, and which client asks.

use core_domain::iam::OAuthClient;
use core_domain::kernel::{Code, Error, Result, TextValue};

/// Where a device gets its codes.
pub(super) const DEVICE_CODE: &str = "/oauth/device/code";

/// Where tokens are got.
pub(super) const TOKEN: &str = "/oauth/token";

/// The client of this name.
///
/// # Errors
/// `invalid_client` when there is none.
pub(super) fn client(id: &str) -> Result<OAuthClient> {
    let unknown = || Error::refused(Code::InvalidClient, "There is no client of this name.");
    OAuthClient::from_text(id).ok_or_else(unknown)
}
