//! Device login, tokens, and the signed-in person.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::secret::{PlainSecret, Secret};

/// The id of this client at IAM.
pub(crate) const CLIENT_ID: &str = "core-cli";

/// The grant type of a device code (RFC 8628).
pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The grant type of a refresh token (RFC 6749).
pub(crate) const REFRESH_GRANT: &str = "refresh_token";

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeviceCodeRequest {
    pub(crate) client_id: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeviceTokenRequest {
    pub(crate) grant_type: &'static str,
    pub(crate) device_code: PlainSecret,
    pub(crate) client_id: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RefreshRequest {
    pub(crate) grant_type: &'static str,
    pub(crate) refresh_token: PlainSecret,
    pub(crate) client_id: &'static str,
}

/// The codes of a device login.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeviceCodes {
    /// The secret code with which the device polls for its tokens.
    pub device_code: Secret,
    /// The code that the person enters, as `XXXX-XXXX`.
    pub user_code: Secret,
    /// The page on which the person enters the code.
    pub verification_uri: String,
    /// The same page with the code filled in. `None` if the server offers none.
    #[serde(default)]
    pub verification_uri_complete: Option<String>,
    /// The lifetime of the codes in seconds.
    pub expires_in: u64,
    /// The minimum time between two polls in seconds. Default: 5.
    #[serde(default = "default_interval")]
    pub interval: u64,
}

/// Returns the interval that RFC 8628 prescribes if the server sends none.
fn default_interval() -> u64 {
    5
}

/// The tokens of a program's session.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TokenPair {
    /// The token that authenticates requests.
    pub access_token: Secret,
    /// The token that is exchanged for the next tokens. It can be used once.
    pub refresh_token: Secret,
    /// The lifetime of the access token in seconds.
    pub expires_in: u64,
}

impl TokenPair {
    /// Returns the lifetime of the access token.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        Duration::from_secs(self.expires_in)
    }
}

/// The person, platform and role of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Whoami {
    /// The email address of the person.
    pub email: String,
    /// The platform of the active organization; `None` without one.
    pub platform_id: Option<String>,
    /// The roles in the active organization, separated by commas; `None` without one.
    pub role: Option<String>,
    /// The time at which the credential expires.
    pub expires_at: String,
}

/// The response to a request whose success is all that it reports.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Success {
    #[serde(rename = "success")]
    pub(crate) _success: bool,
}

/// The metadata of the authorization server (RFC 8414).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AuthorizationServer {
    /// The public URL of IAM.
    pub issuer: String,
    /// The URL at which tokens are issued.
    pub token_endpoint: String,
    /// The URL at which a device login starts.
    pub device_authorization_endpoint: String,
}
