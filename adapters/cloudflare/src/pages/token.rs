//! Upload tokens. A token is valid for one project and for a short time.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_domain::kernel::Secret;
use core_domain::port::ProviderError;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::project::PATH;
use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;

/// The error code if the token has expired.
const EXPIRED: u32 = 8_000_013;

/// Maximum number of attempts of a call. Attempts with an expired token do not count.
const ATTEMPTS: u32 = 5;

/// Maximum number of token renewals for one call.
const MAX_RENEWALS: u32 = 3;

/// A token is renewed if it expires within this number of seconds.
const MARGIN: i64 = 30;

/// Maximum number of files of a deployment if the token does not contain it.
const DEFAULT_FILES: usize = 20_000;

/// A sender of calls that require an upload token. It renews the token.
#[derive(Debug)]
pub(super) struct UploadTokens<'a> {
    client: &'a Client,
    project: &'a str,
    current: Mutex<Token>,
}

#[derive(Clone, Debug)]
struct Token {
    jwt: Secret,
    claims: Claims,
}

/// The claims of a token. The signature is not verified here, because the API verifies it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Claims {
    exp: Option<i64>,
    max_file_count_allowed: Option<usize>,
}

#[derive(Deserialize)]
struct IssuedToken {
    jwt: String,
}

impl<'a> UploadTokens<'a> {
    pub(super) async fn open(client: &'a Client, project: &'a str) -> Result<Self, CallError> {
        Ok(Self {
            client,
            project,
            current: Mutex::new(issue(client, project).await?),
        })
    }

    /// Returns the maximum number of files of a deployment.
    pub(super) async fn max_files(&self) -> usize {
        let claims = self.current.lock().await.claims;
        claims.max_file_count_allowed.unwrap_or(DEFAULT_FILES)
    }

    /// Returns a valid token that differs from `refused`.
    async fn valid_token(&self, refused: Option<&Secret>) -> Result<Secret, CallError> {
        let mut current = self.current.lock().await;
        let now = self.client.clock().now().seconds();
        let ends = current.claims.exp.is_some_and(|exp| exp <= now + MARGIN);
        if ends || refused == Some(&current.jwt) {
            *current = issue(self.client, self.project).await?;
        }
        Ok(current.jwt.clone())
    }

    /// Sends a call that can be repeated, with retries.
    pub(super) async fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ProviderError> {
        let (mut attempt, mut renewals) = (1, 0);
        let mut refused = None;
        loop {
            let token = self.valid_token(refused.take().as_ref()).await?;
            let with_token = call.clone().with_upload_token(token.clone());
            match self.client.fetch(with_token).await {
                Ok(answer) => return Ok(answer.result),
                Err(error) if error.has(EXPIRED) && renewals < MAX_RENEWALS => {
                    renewals += 1;
                    refused = Some(token);
                }
                Err(error) if error.is_retryable() && attempt < ATTEMPTS => {
                    tracing::debug!(operation = call.operation, attempt, %error, "retrying the call");
                    self.client.back_off(attempt).await;
                    attempt += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

async fn issue(client: &Client, project: &str) -> Result<Token, CallError> {
    let path = [&PATH[..], &[project, "upload-token"]].concat();
    let call = client
        .call(Method::GET, "pages.upload_token", &path)
        .confidential();
    let IssuedToken { jwt } = client.fetch(call).await?.result;
    Ok(Token {
        claims: claims_of(&jwt),
        jwt: Secret::new(jwt),
    })
}

fn claims_of(jwt: &str) -> Claims {
    let payload = jwt.split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('='));
    serde_json::from_slice(&payload.unwrap_or_default()).unwrap_or_default()
}
