//! The service tokens with which a gateway vouches for requests to services behind HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::Secret;
use core_domain::iam::SuiteService;
use core_domain::kernel::{Clock, Timestamp};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::config::ConfigError;
use super::upstream::{Upstream, UpstreamError};
use super::vouching::Vouching;
use crate::kernel::bytes_body;

/// Where IAM issues them.
const PATH: &str = "/api/core/service-token";

/// The most bytes of an answer of IAM that are read.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// How long before its end a token is replaced: longer than a request is under way until its caller is known.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);

/// How soon IAM is asked again after it had no token.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Gets service tokens of IAM and keeps each as long as it is good, so that the service key goes to IAM alone. One for all
/// upstreams of a gateway.
pub struct ServiceTokens {
    iam: Arc<dyn Upstream>,
    key: HeaderValue,
    clock: Arc<dyn Clock>,
    // Held while IAM is asked: it is asked once, however many requests wait.
    kept: Mutex<BTreeMap<SuiteService, Kept>>,
}

/// What was got for a service.
struct Kept {
    vouching: Vouching,
    expires_at: Timestamp,
    asked_at: Timestamp,
}

/// What IAM answers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Issued {
    token: String,
    expires_at: Timestamp,
}

impl ServiceTokens {
    /// Tokens of this IAM, in the process or behind HTTP, for the holder of the service key.
    ///
    /// # Errors
    /// [`ConfigError`] when the key is no service key.
    pub fn new(
        iam: impl Upstream + 'static,
        service_key: &Secret,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            iam: Arc::new(iam),
            key: Vouching::by_key(service_key)?.authorization,
            clock,
            kept: Mutex::default(),
        })
    }

    /// A token for a service that is good for a while. As long as the one before still is, it serves when IAM has none.
    ///
    /// # Errors
    /// [`UpstreamError`] when there is none.
    pub(super) async fn get(&self, target: SuiteService) -> Result<Vouching, UpstreamError> {
        let mut all = self.kept.lock().await;
        let now = self.clock.now();
        let kept = all.get_mut(&target).filter(|kept| now < kept.expires_at);
        let Some(kept) = kept else {
            let new = self.issue(target, now).await?;
            let vouching = new.vouching.clone();
            all.insert(target, new);
            return Ok(vouching);
        };
        let is_due = now.plus(RENEWED_BEFORE) >= kept.expires_at;
        if is_due && now >= kept.asked_at.plus(ASKED_AGAIN_AFTER) {
            kept.asked_at = now;
            match self.issue(target, now).await {
                Ok(new) => *kept = new,
                Err(error) => {
                    tracing::warn!(%error, "no new service token; the old one still serves")
                }
            }
        }
        Ok(kept.vouching.clone())
    }

    async fn issue(&self, target: SuiteService, now: Timestamp) -> Result<Kept, UpstreamError> {
        let body = json!({ "serviceId": SuiteService::Gateway, "targetService": target });
        let request = Request::post(PATH)
            .header(AUTHORIZATION, self.key.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(bytes_body(body.to_string()))
            .map_err(|error| UpstreamError::Broken(error.to_string()))?;
        let answer = self.iam.send(request).await?;
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            let problem = format!("IAM issued no service token: {status}");
            return Err(UpstreamError::Unavailable(problem));
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| UpstreamError::Broken(error.to_string()))?;
        let issued: Issued = serde_json::from_slice(&body.to_bytes())
            .map_err(|_| UpstreamError::Broken("IAM's answer is no service token".to_owned()))?;
        let vouching = Vouching::by(&issued.token)
            .map_err(|error| UpstreamError::Broken(error.to_string()))?;
        Ok(Kept {
            vouching,
            expires_at: issued.expires_at,
            asked_at: now,
        })
    }
}

// Tokens and the key stay out of logs.
impl std::fmt::Debug for ServiceTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceTokens")
            .field("iam", &self.iam)
            .finish_non_exhaustive()
    }
}
