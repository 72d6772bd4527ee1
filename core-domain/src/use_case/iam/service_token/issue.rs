//! Issuing service tokens.

use serde_json::json;

use super::keys::signing_key;
use crate::access::{AuditEvent, ServiceScope, audited};
use crate::iam::{SERVICE_TOKEN_LIFETIME, ServiceClaims, SuiteService, sign_service_token};
use crate::kernel::{Cipher, Context, Error, Result, SessionId, Timestamp, new_uuid};
use crate::port::UnitOfWork;

/// A service token.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedServiceToken {
    /// The token. Shown now and never again.
    pub token: String,
    /// From when on it is over.
    pub expires_at: Timestamp,
}

// The token stays out of logs.
impl std::fmt::Debug for IssuedServiceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedServiceToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The parties of a service token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewServiceToken {
    /// The service that calls.
    pub service: SuiteService,
    /// The service that is called.
    pub target: SuiteService,
    /// The session of the person for whom it calls; `None` for calls without a session. Whoever verifies the token looks the
    /// session up, so it is not looked up here.
    pub session_id: Option<SessionId>,
}

/// Issues a token with which one service calls another, in the name of the issuer.
///
/// # Errors
/// `VALIDATION_ERROR` for a pair of services of which one does not call the other.
pub async fn issue(
    cx: &Context,
    _: &ServiceScope,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    issuer: &str,
    new: NewServiceToken,
) -> Result<IssuedServiceToken> {
    let (service, target) = (new.service, new.target);
    if !service.may_call(target) {
        let message = format!("{service} does not call {target}");
        return Err(Error::invalid("targetService", "unknown_pair", message));
    }
    let key = signing_key(cx, uow, cipher).await?;
    let now = uow.now().await?;
    // Whole seconds are all that the token can say.
    let issued_at = Timestamp::from_seconds(now.seconds());
    let expires_at = issued_at.plus(SERVICE_TOKEN_LIFETIME);
    let claims = ServiceClaims {
        iss: issuer.to_owned(),
        sub: service,
        aud: target,
        iat: issued_at.seconds(),
        nbf: issued_at.seconds(),
        exp: expires_at.seconds(),
        jti: new_uuid(now, cx.entropy.as_ref()),
        sid: new.session_id,
    };
    let mut details = json!({ "serviceId": service, "targetService": target });
    if let Some(session) = &claims.sid {
        details["sessionId"] = json!(session);
    }
    let event = AuditEvent {
        action: "service_token.issued",
        entity_id: claims.jti.clone(),
        details: Some(details),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await?;
    Ok(IssuedServiceToken {
        token: sign_service_token(&key, &claims),
        expires_at,
    })
}
