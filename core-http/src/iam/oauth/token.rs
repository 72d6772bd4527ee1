//! Exchanges device codes and refresh tokens for access tokens.

use std::time::Duration;

use core_domain::access::PublicScope;
use core_domain::iam::{OAuthClient, OAuthGrantType};
use core_domain::kernel::{Code, Error, Result, TextValue};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::oauth::{self, TokenPair, TokenRefusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{TOKEN, client};
use crate::iam::cookies::no_store;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Row, post};

pub(super) fn rows() -> Vec<Endpoint> {
    // Clients poll every five seconds, more often than a strict rate class allows. The secrets have 256 bits, so they
    // cannot be guessed.
    let row = |path, operation, summary| -> Row {
        post(path, operation)
            .summary(summary)
            .errors(ErrorStyle::OAuth)
            .takes_forms()
            .refuses(&[
                Code::InvalidClient,
                Code::UnsupportedGrantType,
                Code::InvalidGrant,
                Code::AuthorizationPending,
                Code::SlowDown,
                Code::ExpiredToken,
                Code::AccessDenied,
            ])
    };
    let of_device = "Exchanges the device code of an approved device for tokens.";
    let any = "Exchanges a refresh token or a device code for tokens.";
    vec![
        row("/oauth/device/token", "exchangeDeviceCode", of_device)
            .description(
                "A device polls this endpoint until the person decides; it must wait at least the \
                 `interval` between two polls. A poll that comes too early lengthens the interval \
                 by five seconds. An approved device gets its tokens once, which starts a session \
                 of the person. The access token is valid for at most 15 minutes.",
            )
            .plain(for_device),
        row(TOKEN, "exchangeToken", any)
            .description(
                "With a refresh token, returns a new access token and a new refresh token and \
                 extends the session. The session ends 30 days after the last exchange, and at \
                 the latest 90 days after the sign-in. A refresh token can be used once. If it is \
                 used again within 10 seconds and its successor is unused, the same tokens are \
                 returned. Any later use ends the session and all its tokens.",
            )
            .plain(for_grant),
    ]
}

/// The device code of a client that polls for its tokens.
#[derive(Clone, Deserialize, JsonSchema)]
struct DeviceTokenRequest {
    /// The grant type: `urn:ietf:params:oauth:grant-type:device_code`.
    #[schemars(length(max = 255))]
    grant_type: String,
    /// The device code of the device login.
    #[schemars(length(max = 255))]
    device_code: String,
    /// The id of the client: `core-cli`.
    #[schemars(length(max = 255))]
    client_id: String,
}

/// The grant that a client exchanges for tokens.
#[derive(Clone, Deserialize, JsonSchema)]
struct TokenRequest {
    /// The grant type: `refresh_token` or `urn:ietf:params:oauth:grant-type:device_code`.
    #[schemars(length(max = 255))]
    grant_type: String,
    /// The refresh token; required for the grant type `refresh_token`.
    #[schemars(length(max = 255))]
    refresh_token: Option<String>,
    /// The device code; required for the grant type `urn:ietf:params:oauth:grant-type:device_code`.
    #[schemars(length(max = 255))]
    device_code: Option<String>,
    /// The id of the client: `core-cli`.
    #[schemars(length(max = 255))]
    client_id: String,
}

/// The tokens of a program's session.
#[derive(Clone, Serialize, JsonSchema)]
struct TokenResponse {
    /// The token that authenticates requests.
    access_token: String,
    /// The scheme for presenting the access token.
    token_type: AccessTokenType,
    /// The lifetime of the access token, in seconds.
    expires_in: u64,
    /// The token that is exchanged for the next tokens. It can be used once.
    refresh_token: String,
}

/// The scheme for presenting an access token.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AccessTokenType {
    /// The header `Authorization: Bearer`.
    Bearer,
}

impl TokenResponse {
    fn new(pair: TokenPair, expires_in: Duration) -> Self {
        Self {
            access_token: pair.access_token,
            token_type: AccessTokenType::Bearer,
            expires_in: expires_in.as_secs(),
            refresh_token: pair.refresh_token,
        }
    }
}

/// The grant that a client presents.
enum PresentedGrant<'r> {
    DeviceCode(&'r str),
    RefreshToken(&'r str),
}

async fn for_device(
    cx: &Cx,
    scope: PublicScope,
    input: Input<(), (), DeviceTokenRequest>,
) -> Result<Output<TokenResponse>> {
    let body = input.body;
    let client = client(&body.client_id)?;
    match grant_type(&body.grant_type)? {
        OAuthGrantType::DeviceCode => {
            exchange(
                cx,
                &scope,
                client,
                &PresentedGrant::DeviceCode(&body.device_code),
            )
            .await
        }
        OAuthGrantType::RefreshToken => Err(unsupported_grant_type()),
    }
}

async fn for_grant(
    cx: &Cx,
    scope: PublicScope,
    input: Input<(), (), TokenRequest>,
) -> Result<Output<TokenResponse>> {
    let body = &input.body;
    let client = client(&body.client_id)?;
    let shown = match grant_type(&body.grant_type)? {
        OAuthGrantType::DeviceCode => {
            PresentedGrant::DeviceCode(require_field("device_code", body.device_code.as_deref())?)
        }
        OAuthGrantType::RefreshToken => PresentedGrant::RefreshToken(require_field(
            "refresh_token",
            body.refresh_token.as_deref(),
        )?),
    };
    exchange(cx, &scope, client, &shown).await
}

fn grant_type(text: &str) -> Result<OAuthGrantType> {
    OAuthGrantType::from_text(text).ok_or_else(unsupported_grant_type)
}

fn unsupported_grant_type() -> Error {
    Error::refused(
        Code::UnsupportedGrantType,
        "The grant type is not supported.",
    )
}

fn require_field<'r>(field: &str, value: Option<&'r str>) -> Result<&'r str> {
    value.ok_or_else(|| Error::invalid(field, "required", "is required"))
}

/// Returns whether the code or token is stored. Checked first, so that an unknown one does not open a write
/// transaction.
async fn is_known(
    cx: &Cx,
    scope: &PublicScope,
    client: OAuthClient,
    shown: &PresentedGrant<'_>,
) -> Result<bool> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let known = match shown {
        PresentedGrant::DeviceCode(code) => {
            oauth::has_device_code(scope, uow.as_mut(), client, code).await
        }
        PresentedGrant::RefreshToken(token) => {
            oauth::has_refresh_token(scope, uow.as_mut(), client, token).await
        }
    };
    uow.rollback().await;
    known
}

/// Exchanges a grant for tokens. A refusal is committed as well, because it records the time of the poll or ends the
/// session.
async fn exchange(
    cx: &Cx,
    scope: &PublicScope,
    client: OAuthClient,
    shown: &PresentedGrant<'_>,
) -> Result<Output<TokenResponse>> {
    if !is_known(cx, scope, client, shown).await? {
        return Err(TokenRefusal::InvalidGrant.into());
    }
    let (outcome, now) = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let outcome = match shown {
                PresentedGrant::DeviceCode(code) => {
                    oauth::redeem(cx, scope, uow, client, code).await?
                }
                PresentedGrant::RefreshToken(token) => {
                    oauth::refresh(cx, scope, uow, &cx.app.cipher, client, token).await?
                }
            };
            Ok((outcome, uow.now().await?))
        })
    })
    .await?;
    let pair = outcome?;
    let expires_in = pair.access_expires_at.since(now);
    Ok(no_store(Output::new(TokenResponse::new(pair, expires_in))))
}
