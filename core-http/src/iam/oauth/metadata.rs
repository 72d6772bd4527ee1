//! What OAuth clients discover.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::iam::GrantType;
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
        .summary("What OAuth clients want to know of this server (RFC 8414).")
        .plain(with(iam, metadata)),
    ]
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct AuthorizationServer {
    issuer: String,
    device_authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    grant_types_supported: Vec<GrantType>,
    /// Required by the RFC; there is no authorization endpoint.
    response_types_supported: Vec<String>,
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
        grant_types_supported: GrantType::ALL.to_vec(),
        response_types_supported: Vec::new(),
        // Programs on people's machines keep no secret.
        token_endpoint_auth_methods_supported: vec!["none"],
    }))
}
