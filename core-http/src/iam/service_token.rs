//! Tokens with which services call each other, and the keys to check them with.

use core_domain::access::{PublicScope, ServiceScope};
use core_domain::iam::{SigningKey, SuiteService};
use core_domain::kernel::{Result, SessionId, Stored, Timestamp};
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
            .summary("Issues a short-lived token with which one service calls another.")
            .secret_answer()
            .writes(issue),
        get("/.well-known/jwks.json", "getSigningKeys")
            .summary("The public keys that service tokens are checked with.")
            .plain(signing_keys),
    ]
}

/// The services a token is for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct IssueServiceToken {
    /// The service that calls.
    service_id: SuiteService,
    /// The service that is called.
    target_service: SuiteService,
    /// The session of the person for whom the service calls. The called service then accepts no other session with the token.
    /// Default: none.
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// How a token is shown to a service.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
enum ServiceTokenType {
    /// In `Authorization: Bearer`.
    Bearer,
}

/// A service token.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceToken {
    /// The token: a JWT, signed with EdDSA.
    token: String,
    token_type: ServiceTokenType,
    /// How long it is valid, in seconds.
    expires_in: u64,
    /// From when on it is over.
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
    keys: Vec<JsonWebKey>,
}

async fn signing_keys(cx: &Cx, _: PublicScope, _: Input) -> Result<Output<JsonWebKeySet>> {
    let (mut keys, due) = published(cx).await?;
    if due {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(service_token::make_next_key(cx, uow, &cx.app.cipher))
        })
        .await?;
        keys = published(cx).await?.0;
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

/// The published keys, and whether the next one has to be made.
async fn published(cx: &Cx) -> Result<(Vec<Stored<SigningKey>>, bool)> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = async {
        let keys = service_token::published(uow.as_mut()).await?;
        Ok((keys, service_token::next_key_is_due(uow.as_mut()).await?))
    }
    .await;
    uow.rollback().await;
    found
}
