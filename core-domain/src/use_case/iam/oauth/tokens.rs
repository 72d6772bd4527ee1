//! Issuing the two tokens of a program's session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{AuditEvent, audited, unaudited};
use crate::iam::{
    ACCESS_TOKEN_LIFETIME, ACCESS_TOKEN_PREFIX, AccessToken, REFRESH_TOKEN_PREFIX, RefreshToken,
    Session, TokenHash,
};
use crate::kernel::{Caller, Context, Entropy, Result, TOKEN_LENGTH, Timestamp, secret_token};
use crate::port::UnitOfWork;

/// An access token, and the refresh token to get the next one with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenPair {
    /// The access token.
    pub access_token: String,
    /// From when on it is over.
    pub access_expires_at: Timestamp,
    /// The refresh token.
    pub refresh_token: String,
}

// The tokens stay out of logs.
impl std::fmt::Debug for TokenPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenPair")
            .field("access_expires_at", &self.access_expires_at)
            .finish_non_exhaustive()
    }
}

/// Issues both tokens of a session, in exchange for a refresh token, unless they are the first.
pub(super) async fn issue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    session: &Session,
    exchanged: Option<&TokenHash>,
) -> Result<TokenPair> {
    let now = uow.now().await?;
    let secret = |prefix| secret(cx.entropy.as_ref(), prefix);
    let pair = TokenPair {
        access_token: secret(ACCESS_TOKEN_PREFIX),
        access_expires_at: now.plus(ACCESS_TOKEN_LIFETIME).min(session.expires_at),
        refresh_token: secret(REFRESH_TOKEN_PREFIX),
    };
    let access = AccessToken {
        token_hash: TokenHash::of(&pair.access_token),
        session_id: session.id.clone(),
        created_at: now,
        expires_at: pair.access_expires_at,
    };
    unaudited::append(uow, access).await?;
    let refresh = RefreshToken {
        token_hash: TokenHash::of(&pair.refresh_token),
        session_id: session.id.clone(),
        predecessor_hash: exchanged.cloned(),
        rotated_at: None,
        successor_hash: None,
        sealed_successor: None,
        created_at: now,
        expires_at: session.expires_at,
    };
    unaudited::append(uow, refresh).await?;
    let event = AuditEvent {
        action: match exchanged {
            Some(_) => "token.refreshed",
            None => "token.issued",
        },
        entity_id: session.id.to_string(),
        details: Some(json!({
            "clientId": session.client_id,
            "expiresAt": pair.access_expires_at,
        })),
        ..AuditEvent::default()
    };
    audited::event(&as_owner(cx, session), uow, event).await?;
    Ok(pair)
}

/// A new secret of 256 bits that shows what it is.
fn secret(entropy: &dyn Entropy, prefix: &str) -> String {
    format!("{prefix}{}", secret_token(entropy, TOKEN_LENGTH))
}

/// The context of whoever has just shown a secret of a session, for the audit.
pub(super) fn as_owner(cx: &Context, session: &Session) -> Context {
    Context {
        caller: Arc::new(Caller::User {
            user_id: session.user_id.clone(),
            session_id: Some(session.id.clone()),
            service: None,
            membership: None,
        }),
        ..cx.consequence()
    }
}
