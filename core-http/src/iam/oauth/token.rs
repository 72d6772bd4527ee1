//! Tokens, in exchange for a device code or a refresh token.

use std::time::Duration;

use core_domain::access::PublicScope;
use core_domain::iam::{GrantType, OAuthClient};
use core_domain::kernel::{Code, Error, Result, TextValue};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::oauth::{self, GrantRefusal, TokenPair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{TOKEN, client};
use crate::iam::cookies::no_store;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Row, post};

pub(super) fn rows() -> Vec<Endpoint> {
    // A client polls every five seconds, which a strict class would not let it. What may be guessed here is of 256 bits.
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
    let of_device = "Gives a device its tokens once a person has approved it.";
    let any = "Exchanges a refresh token, or the device code of an approved device, for tokens.";
    vec![
        row("/oauth/device/token", "exchangeDeviceCode", of_device).plain(for_device),
        row(TOKEN, "exchangeToken", any).plain(for_grant),
    ]
}

/// The body of a device that asks for its tokens.
#[derive(Clone, Deserialize, JsonSchema)]
struct DeviceTokenRequest {
    #[schemars(length(max = 255))]
    grant_type: String,
    #[schemars(length(max = 255))]
    device_code: String,
    #[schemars(length(max = 255))]
    client_id: String,
}

/// The body of whoever asks for tokens.
#[derive(Clone, Deserialize, JsonSchema)]
struct TokenRequest {
    #[schemars(length(max = 255))]
    grant_type: String,
    /// For `refresh_token`.
    #[schemars(length(max = 255))]
    refresh_token: Option<String>,
    /// For `urn:ietf:params:oauth:grant-type:device_code`.
    #[schemars(length(max = 255))]
    device_code: Option<String>,
    #[schemars(length(max = 255))]
    client_id: String,
}

/// Two tokens.
#[derive(Clone, Serialize, JsonSchema)]
struct TokenResponse {
    access_token: String,
    token_type: AccessTokenType,
    /// How long the access token is valid, in seconds.
    expires_in: u64,
    /// What the next tokens are got with; good for one exchange.
    refresh_token: String,
}

/// How an access token is shown.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AccessTokenType {
    /// In `Authorization: Bearer`.
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

/// What a client shows for tokens.
enum Shown<'r> {
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
        GrantType::DeviceCode => {
            exchange(cx, &scope, client, &Shown::DeviceCode(&body.device_code)).await
        }
        GrantType::RefreshToken => Err(unsupported()),
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
        GrantType::DeviceCode => {
            Shown::DeviceCode(required("device_code", body.device_code.as_deref())?)
        }
        GrantType::RefreshToken => {
            Shown::RefreshToken(required("refresh_token", body.refresh_token.as_deref())?)
        }
    };
    exchange(cx, &scope, client, &shown).await
}

fn grant_type(text: &str) -> Result<GrantType> {
    GrantType::from_text(text).ok_or_else(unsupported)
}

fn unsupported() -> Error {
    Error::refused(
        Code::UnsupportedGrantType,
        "There are no tokens for a grant of this type here.",
    )
}

fn required<'r>(field: &str, value: Option<&'r str>) -> Result<&'r str> {
    value.ok_or_else(|| Error::invalid(field, "required", "is required"))
}

/// Tells whether the code or token is stored: one that is not must not cost a write.
async fn is_known(
    cx: &Cx,
    scope: &PublicScope,
    client: OAuthClient,
    shown: &Shown<'_>,
) -> Result<bool> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let known = match shown {
        Shown::DeviceCode(code) => oauth::has_device_code(scope, uow.as_mut(), client, code).await,
        Shown::RefreshToken(token) => {
            oauth::has_refresh_token(scope, uow.as_mut(), client, token).await
        }
    };
    uow.rollback().await;
    known
}

/// A refusal is committed as well: the device has asked, or a family of tokens has ended.
async fn exchange(
    cx: &Cx,
    scope: &PublicScope,
    client: OAuthClient,
    shown: &Shown<'_>,
) -> Result<Output<TokenResponse>> {
    if !is_known(cx, scope, client, shown).await? {
        return Err(GrantRefusal::InvalidGrant.into());
    }
    let (outcome, now) = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let outcome = match shown {
                Shown::DeviceCode(code) => oauth::redeem(cx, scope, uow, client, code).await?,
                Shown::RefreshToken(token) => {
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
