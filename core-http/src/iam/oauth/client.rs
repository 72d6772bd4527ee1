//! Paths and client look-up that the OAuth routes share.

use core_domain::iam::OAuthClient;
use core_domain::kernel::{Code, Error, Result, TextValue};

/// Path at which a device requests its codes.
pub(super) const DEVICE_CODE: &str = "/oauth/device/code";

/// Path at which a client exchanges a grant for tokens.
pub(super) const TOKEN: &str = "/oauth/token";

/// Returns the client with this id.
///
/// # Errors
/// Returns `invalid_client` if the id is unknown.
pub(super) fn client(id: &str) -> Result<OAuthClient> {
    let unknown = || Error::refused(Code::InvalidClient, "The client_id is unknown.");
    OAuthClient::from_text(id).ok_or_else(unknown)
}
