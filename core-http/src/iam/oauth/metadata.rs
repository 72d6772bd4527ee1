//! The metadata with which OAuth clients discover this server.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::iam::OAuthGrantType;
use core_domain::kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::client::{DEVICE_CODE, TOKEN};
use crate::iam::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, Output, get, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get(
            "/.well-known/oauth-authorization-server",
            "getAuthorizationServer",
        )
        .summary("Returns the OAuth server metadata (RFC 8414).")
        .description(
            "Lists the endpoints and grant types of this server. There is no authorization \
             endpoint; clients sign in with the device flow.",
        )
        .plain(with(iam, metadata)),
    ]
}

/// The metadata of the authorization server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct AuthorizationServer {
    /// The public URL of IAM.
    issuer: String,
    /// The URL at which a device login starts.
    device_authorization_endpoint: String,
    /// The URL at which tokens are issued.
    token_endpoint: String,
    /// The URL of the public keys of service tokens.
    jwks_uri: String,
    /// The grant types that the token endpoint accepts.
    grant_types_supported: Vec<OAuthGrantType>,
    /// Always empty, because there is no authorization endpoint. The RFC requires the field.
    response_types_supported: Vec<String>,
    /// Always `none`: clients are public and have no secret.
    token_endpoint_auth_methods_supported: Vec<&'static str>,
}

async fn metadata(
    _: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    _: Input,
) -> Result<Output<AuthorizationServer>> {
    let at = |path: &str| format!("{}{path}", iam.base_url);
    Ok(Output::new(AuthorizationServer {
        issuer: at(""),
        device_authorization_endpoint: at(DEVICE_CODE),
        token_endpoint: at(TOKEN),
        jwks_uri: at("/.well-known/jwks.json"),
        grant_types_supported: OAuthGrantType::ALL.to_vec(),
        response_types_supported: Vec::new(),
        // Programs on people's machines cannot keep a secret.
        token_endpoint_auth_methods_supported: vec!["none"],
    }))
}
