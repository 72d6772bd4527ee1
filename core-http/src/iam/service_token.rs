//! Tokens that authenticate services to each other, and the public keys that verify them.

use core_domain::access::{PublicScope, ServiceScope};
use core_domain::iam::SigningKey;
use core_domain::kernel::{Result, SessionId, Stored, SuiteService, Timestamp};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::service_token::{self, NewServiceToken};
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cookies::{no_store, with_header};
use crate::kernel::{Cx, Endpoint, Input, JsonWebKey, Output, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/core/service-token", "issueServiceToken")
            .summary("Issues a token for calls between two services.")
            .description(
                "The token is a JWT signed with EdDSA; it is valid for 300 seconds and only for \
                 the target service. Each call issues a new token and adds an entry to the audit \
                 log. Only pairs of services that call each other are accepted. The first call \
                 creates the signing key.",
            )
            .secret_answer()
            .writes(issue),
        get("/.well-known/jwks.json", "getSigningKeys")
            .summary("Returns the public keys that verify service tokens.")
            .description(
                "Returns the key set of RFC 7517; clients may cache it for five minutes. The key \
                 that signs next is published before it is used. A request creates that key if it \
                 is due.",
            )
            .plain(signing_keys),
    ]
}

/// The services that the token is for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct IssueServiceToken {
    /// The calling service, which presents the token.
    service_id: SuiteService,
    /// The called service, which verifies the token.
    target_service: SuiteService,
    /// The session of the person on whose behalf the service calls. The called service then accepts no other session
    /// with the token. Default: none.
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// The scheme for presenting the token.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
enum ServiceTokenType {
    /// The header `Authorization: Bearer`.
    Bearer,
}

/// A service token.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceToken {
    /// The token: a JWT signed with EdDSA.
    token: String,
    /// The scheme of the `Authorization` header.
    token_type: ServiceTokenType,
    /// The lifetime of the token, in seconds.
    expires_in: u64,
    /// The time at which the token expires.
    expires_at: Timestamp,
}

async fn issue(
    cx: &Cx,
    scope: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), IssueServiceToken>,
) -> Result<Output<ServiceToken>> {
    let new = NewServiceToken {
        service: input.body.service_id,
        target: input.body.target_service,
        session_id: input.body.session_id,
    };
    let (cipher, issuer) = (&cx.app.cipher, &cx.app.issuer);
    let issued = service_token::issue(cx, &scope, uow, cipher, issuer, new).await?;
    Ok(no_store(Output::new(ServiceToken {
        token: issued.token,
        token_type: ServiceTokenType::Bearer,
        expires_in: core_domain::iam::SERVICE_TOKEN_LIFETIME.as_secs(),
        expires_at: issued.expires_at,
    })))
}

/// A set of keys (RFC 7517).
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct JsonWebKeySet {
    /// The public keys, oldest first.
    keys: Vec<JsonWebKey>,
}

async fn signing_keys(cx: &Cx, _: PublicScope, _: Input) -> Result<Output<JsonWebKeySet>> {
    let (mut keys, due) = read_published_keys(cx).await?;
    if due {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(service_token::create_next_key(cx, uow, &cx.app.cipher))
        })
        .await?;
        keys = read_published_keys(cx).await?.0;
    }
    let keys = keys
        .iter()
        .map(|key| JsonWebKey::new(&key.kid, &key.public_key));
    let keys = keys.collect();
    Ok(with_header(
        Output::new(JsonWebKeySet { keys }),
        header::CACHE_CONTROL,
        "public, max-age=300",
    ))
}

/// Returns the published keys, and whether the next key must be created.
async fn read_published_keys(cx: &Cx) -> Result<(Vec<Stored<SigningKey>>, bool)> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = async {
        let keys = service_token::list_published_keys(uow.as_mut()).await?;
        Ok((keys, service_token::next_key_is_due(uow.as_mut()).await?))
    }
    .await;
    uow.rollback().await;
    found
}
