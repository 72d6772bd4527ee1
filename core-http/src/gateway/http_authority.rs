//! Resolves credentials at an IAM service over HTTP.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::gateway::Credential;
use core_domain::iam::OrganizationType;
use core_domain::kernel::{
    ApiKeyId, Caller, Membership, OrganizationId, PermissionSet, PlatformId, Roles, SessionId,
    SuiteService, Timestamp, UserId,
};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Builder;
use http::{HeaderValue, Request, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::authority::{Authority, AuthorityError, ResolvedCredential};
use super::service_tokens::{ServiceTokens, TokenFor};
use super::upstream::Upstream;
use super::vouching::UpstreamCredential;
use crate::kernel::request::header_names;
use crate::kernel::{Body, bytes_body, empty_body, read_body};

/// Maximum size of a response of IAM, in bytes. A user can have many permissions.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Resolves sessions with `GET /api/core/session` and API keys with `POST /api/core/apikey/validate`.
///
/// Use an [`HttpUpstream`](super::HttpUpstream) of its own for it, so that authentication never waits behind other
/// requests to IAM. The requests have a service token; IAM therefore does not limit them, and does not count the uses of
/// API keys, which the gateway counts.
#[derive(Debug)]
pub struct HttpAuthority {
    iam: Arc<dyn Upstream>,
    tokens: Arc<ServiceTokens>,
}

/// The response for a session. Fields that the gateway does not need are left out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionAnswer {
    user: UserAnswer,
    session: SessionIdAnswer,
    organization: Option<OrganizationAnswer>,
    platform_id: Option<PlatformId>,
    tenant: Option<TenantAnswer>,
    role: Option<Roles>,
    permissions: Vec<String>,
    valid_until: Timestamp,
}

#[derive(Deserialize)]
struct UserAnswer {
    id: UserId,
}

#[derive(Deserialize)]
struct SessionIdAnswer {
    id: SessionId,
}

#[derive(Deserialize)]
struct OrganizationAnswer {
    id: OrganizationId,
    #[serde(rename = "type")]
    kind: OrganizationType,
}

#[derive(Deserialize)]
struct TenantAnswer {
    suspended: bool,
}

/// The response for an API key.
#[derive(Deserialize)]
struct KeyAnswer {
    valid: bool,
    #[serde(flatten)]
    key: Option<ValidKeyAnswer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ValidKeyAnswer {
    key_id: ApiKeyId,
    platform_id: Option<PlatformId>,
    organization_id: Option<OrganizationId>,
    user_id: Option<UserId>,
    role: Option<Roles>,
    permissions: Vec<String>,
    expires_at: Option<Timestamp>,
    rate_limit: KeyLimitAnswer,
    suspended: bool,
}

#[derive(Deserialize)]
struct KeyLimitAnswer {
    limit: u32,
}

fn unavailable(problem: impl ToString) -> AuthorityError {
    AuthorityError::Unavailable(problem.to_string())
}

impl HttpAuthority {
    /// Creates an authority that calls this IAM service.
    #[must_use]
    pub fn new(iam: impl Upstream + 'static, tokens: Arc<ServiceTokens>) -> Self {
        Self {
            iam: Arc::new(iam),
            tokens,
        }
    }

    async fn vouching(&self) -> Result<UpstreamCredential, AuthorityError> {
        let wanted = TokenFor {
            target: SuiteService::Iam,
            session: None,
        };
        self.tokens.get(wanted).await.map_err(unavailable)
    }

    async fn session(&self, token: &str) -> Result<ResolvedCredential, AuthorityError> {
        let vouching = self.vouching().await?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| AuthorityError::Refused)?;
        bearer.set_sensitive(true);
        let request = Request::get("/api/core/session")
            .header(AUTHORIZATION, bearer)
            .header(&header_names::SERVICE_KEY, vouching.plain);
        let body = self.ask(request, empty_body()).await?;
        let answer: SessionAnswer = serde_json::from_slice(&body).map_err(unreadable)?;
        Ok(answer.into())
    }

    async fn api_key(&self, key: &str) -> Result<ResolvedCredential, AuthorityError> {
        let vouching = self.vouching().await?;
        let request = Request::post("/api/core/apikey/validate")
            .header(AUTHORIZATION, vouching.authorization)
            .header(CONTENT_TYPE, "application/json");
        let asked = json!({ "key": key }).to_string();
        let answer = self.ask(request, bytes_body(asked)).await;
        // The credential of the gateway was refused, not the API key.
        let body = answer.map_err(|error| match error {
            AuthorityError::Refused => unavailable("IAM refuses the service token of the gateway"),
            error => error,
        })?;
        let answer: KeyAnswer = serde_json::from_slice(&body).map_err(unreadable)?;
        match answer.key {
            Some(key) if answer.valid => Ok(key.into()),
            None if answer.valid => Err(unreadable("a valid key without its fields")),
            _ => Err(AuthorityError::Refused),
        }
    }

    /// Sends a request and returns the body of its response.
    ///
    /// # Errors
    /// [`AuthorityError::Refused`] if the response is 401; [`AuthorityError::Unavailable`] for any other status than 200.
    async fn ask(&self, request: Builder, body: Body) -> Result<Bytes, AuthorityError> {
        let request = request.body(body).map_err(unavailable)?;
        let response = self.iam.send(request).await.map_err(unavailable)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(AuthorityError::Refused),
            status => return Err(unavailable(format!("IAM responded with {status}"))),
        }
        let body = read_body(response.into_body(), MAX_RESPONSE_BYTES);
        body.await
            .map_err(|error| unavailable(format!("{error:?}")))
    }
}

fn unreadable(problem: impl std::fmt::Display) -> AuthorityError {
    unavailable(format!("the response of IAM cannot be read: {problem}"))
}

impl From<SessionAnswer> for ResolvedCredential {
    fn from(answer: SessionAnswer) -> Self {
        let roles = answer.role.filter(|_| answer.organization.is_some());
        let membership = answer.organization.zip(roles);
        let membership = membership.map(|(organization, roles)| Membership {
            organization_id: organization.id,
            platform_id: answer.platform_id,
            roles,
            permissions: PermissionSet::new(answer.permissions),
            is_operator: organization.kind == OrganizationType::CoreOperator,
        });
        Self {
            caller: Arc::new(Caller::User {
                user_id: answer.user.id,
                session_id: Some(answer.session.id),
                service: None,
                membership,
            }),
            suspended: answer.tenant.is_some_and(|tenant| tenant.suspended),
            expires_at: Some(answer.valid_until),
            requests_per_minute: None,
        }
    }
}

impl From<ValidKeyAnswer> for ResolvedCredential {
    fn from(answer: ValidKeyAnswer) -> Self {
        let acting = answer.organization_id.zip(answer.role);
        let membership = acting.map(|(organization_id, roles)| Membership {
            organization_id,
            platform_id: answer.platform_id,
            roles,
            permissions: PermissionSet::new(answer.permissions),
            // An API key never operates the installation.
            is_operator: false,
        });
        Self {
            caller: Arc::new(Caller::ApiKey {
                key_id: answer.key_id,
                user_id: answer.user_id,
                membership,
            }),
            suspended: answer.suspended,
            expires_at: answer.expires_at,
            requests_per_minute: Some(answer.rate_limit.limit),
        }
    }
}

#[async_trait]
impl Authority for HttpAuthority {
    async fn resolve(&self, credential: &Credential) -> Result<ResolvedCredential, AuthorityError> {
        match credential {
            Credential::Bearer(token) => self.session(token.expose()).await,
            Credential::ApiKey(key) => self.api_key(key.expose()).await,
        }
    }

    fn report_timeout(&self) {
        self.iam.report_timeout();
    }
}
