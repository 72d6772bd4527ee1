//! Issues, refreshes and removes the tokens of programs.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{AuditEvent, PublicScope, audited, unaudited, unowned_records};
use crate::iam::{
    ACCESS_TOKEN_LIFETIME, ACCESS_TOKEN_PREFIX, AccessToken, AccessTokenQuery, DeviceAuthorization,
    DeviceAuthorizationQuery, OAuthClient, REFRESH_TOKEN_PREFIX, RefreshDecision, RefreshToken,
    RefreshTokenQuery, Session, SessionValidity, TokenHash, User,
};
use crate::kernel::{
    Caller, Cipher, Code, Context, Effect, Entropy, Error, Result, Stored, TOKEN_LENGTH, Timestamp,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_first;

/// Returns a refresh token of the client, with its session.
async fn find(
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    refresh_token: &str,
) -> Result<Option<(Stored<RefreshToken>, Stored<Session>)>> {
    let hash = TokenHash::of(refresh_token);
    let Some(token) = unowned_records::<RefreshToken>(uow).find(&hash).await? else {
        return Ok(None);
    };
    let session = unowned_records::<Session>(uow)
        .find(&token.session_id)
        .await?;
    let session = session.filter(|session| session.client_id == Some(client));
    Ok(session.map(|session| (token, session)))
}

/// Returns whether a refresh token of this client is stored. Only reads.
///
/// # Errors
/// Only those of the store.
pub async fn has_refresh_token(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    refresh_token: &str,
) -> Result<bool> {
    Ok(find(uow, client, refresh_token).await?.is_some())
}

/// Exchanges a refresh token for new tokens, and extends its session to the expiry of the new refresh token. A token
/// that was exchanged up to 10 seconds ago returns the same tokens again. Any other reuse ends the session and all of
/// its tokens.
///
/// # Errors
/// Only those of the store. A refusal is a value, because it is committed.
pub async fn refresh(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    client: OAuthClient,
    shown: &str,
) -> Result<TokenOutcome> {
    let invalid = Ok(Err(TokenRefusal::InvalidGrant));
    let Some((token, session)) = find(uow, client, shown).await? else {
        return invalid;
    };
    let now = uow.now().await?;
    let over = session.validity(now) == SessionValidity::Expired;
    let user = unowned_records::<User>(uow).find(&session.user_id).await?;
    if over || user.is_none_or(|user| user.banned_at.is_some()) {
        return invalid;
    }
    let successor = match &token.successor_hash {
        Some(successor) => unowned_records::<RefreshToken>(uow).find(successor).await?,
        None => None,
    };
    match token.decide_refresh(successor.as_deref(), now) {
        RefreshDecision::Rotate => Ok(Ok(rotate(cx, uow, cipher, &session, &token).await?)),
        RefreshDecision::Repeat => Ok(Ok(repeat_successor(cipher, &token)?)),
        RefreshDecision::Expired => invalid,
        RefreshDecision::Reuse => {
            end_family(cx, scope, uow, &session).await?;
            invalid
        }
    }
}

async fn rotate(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    session: &Stored<Session>,
    token: &Stored<RefreshToken>,
) -> Result<TokenPair> {
    let now = uow.now().await?;
    let until = Session::program_session_expiry(session.created_at, now);
    // The update compares versions, so a session that ends at the same time is not restored.
    let session = unaudited::replace(uow, session, session.with_expiry(now, until)).await?;
    let pair = issue(cx, uow, &session, Some(&token.token_hash)).await?;
    let text = serde_json::to_string(&pair);
    let text = text
        .map_err(|error| Error::Internal(format!("tokens cannot be encoded as JSON: {error}")))?;
    let sealed = cipher.seal(token.token_hash.as_ref(), &text)?;
    let successor = TokenHash::of(&pair.refresh_token);
    unaudited::replace(uow, token, token.with_successor(now, successor, sealed)).await?;
    clear_sealed_successor(uow, token).await?;
    Ok(pair)
}

/// Removes the stored tokens of the predecessor, so that it cannot return them again.
async fn clear_sealed_successor(uow: &mut dyn UnitOfWork, token: &RefreshToken) -> Result<()> {
    let Some(predecessor) = &token.predecessor_hash else {
        return Ok(());
    };
    if let Some(predecessor) = unowned_records::<RefreshToken>(uow)
        .find(predecessor)
        .await?
    {
        let mut next = predecessor.edit();
        next.sealed_successor = None;
        unaudited::replace(uow, &predecessor, next).await?;
    }
    Ok(())
}

fn repeat_successor(cipher: &Cipher, token: &RefreshToken) -> Result<TokenPair> {
    let sealed = token.sealed_successor.as_deref();
    let sealed =
        sealed.ok_or_else(|| Error::Internal("the successor tokens are missing".to_owned()))?;
    let text = cipher.open(token.token_hash.as_ref(), sealed)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("stored tokens cannot be decoded: {error}")))
}

/// Ends the session and removes all of its tokens.
async fn end_family(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    session: &Stored<Session>,
) -> Result<()> {
    let cx = as_owner(cx, session);
    audited::remove(&cx, scope, uow, session, "token.reuse_detected").await?;
    let id = &session.id;
    let access = AccessTokenQuery::OfSession(id.clone());
    unowned_records::<AccessToken>(uow)
        .remove_all(&access)
        .await?;
    let refresh = RefreshTokenQuery::OfSession(id.clone());
    unowned_records::<RefreshToken>(uow)
        .remove_all(&refresh)
        .await?;
    uow.effects().add(Effect::SessionChanged(id.clone()));
    Ok(())
}

/// The outcome of a token request. Unlike an error, a refusal is committed.
pub type TokenOutcome = Result<TokenPair, TokenRefusal>;

/// The reason why no tokens are issued, with the codes of RFC 6749 and RFC 8628.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// No person has decided about the device yet.
    AuthorizationPending,
    /// The device polls too often.
    SlowDown,
    /// The codes of the device have expired.
    ExpiredToken,
    /// A person refused the device, or the user is banned.
    AccessDenied,
    /// The code or token is unknown, used, expired, or another client's.
    InvalidGrant,
}

impl From<TokenRefusal> for Error {
    fn from(refusal: TokenRefusal) -> Self {
        let (code, message) = match refusal {
            TokenRefusal::AuthorizationPending => (
                Code::AuthorizationPending,
                "The device is not approved yet.",
            ),
            TokenRefusal::SlowDown => (
                Code::SlowDown,
                "The device polls too often. Wait five seconds longer between polls.",
            ),
            TokenRefusal::ExpiredToken => {
                (Code::ExpiredToken, "The codes of the device have expired.")
            }
            TokenRefusal::AccessDenied => (Code::AccessDenied, "The device was refused."),
            TokenRefusal::InvalidGrant => (
                Code::InvalidGrant,
                "The code or token is unknown, used, or expired.",
            ),
        };
        Self::refused(code, message)
    }
}

/// An access token, with the refresh token for its successor.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenPair {
    /// The access token.
    pub access_token: String,
    /// The time at which the access token expires.
    pub access_expires_at: Timestamp,
    /// The refresh token.
    pub refresh_token: String,
}

// The `Debug` output hides the tokens, so that they do not appear in logs.
impl std::fmt::Debug for TokenPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenPair")
            .field("access_expires_at", &self.access_expires_at)
            .finish_non_exhaustive()
    }
}

/// Issues an access token and a refresh token for a session. `exchanged` is the hash of the refresh token that they
/// replace; `None` for the first tokens.
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
    audited::record_event(&as_owner(cx, session), uow, event).await?;
    Ok(pair)
}

/// Generates a secret of 256 bits with a prefix that shows its kind.
fn secret(entropy: &dyn Entropy, prefix: &str) -> String {
    format!("{prefix}{}", secret_token(entropy, TOKEN_LENGTH))
}

/// Returns a context whose caller is the owner of the session, for the audit log. The caller has just presented a
/// secret of the session.
pub(super) fn as_owner(cx: &Context, session: &Session) -> Context {
    Context {
        caller: Arc::new(Caller::User {
            user_id: session.user_id.clone(),
            session_id: Some(session.id.clone()),
            service: None,
            membership: None,
        }),
        ..cx.without_conditions()
    }
}

/// Time after the expiry of its codes during which a device that polls still gets `expired_token`.
const DEVICE_RETENTION: Duration = Duration::from_secs(60 * 60);

/// Removes at most `limit` expired tokens, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_tokens(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    let access = AccessTokenQuery::ExpiredAt(now);
    let access = remove_first::<AccessToken>(uow, &access, limit).await?;
    let rest = limit.saturating_sub(u32::try_from(access).unwrap_or(limit));
    if rest == 0 {
        return Ok(access);
    }
    let refresh = RefreshTokenQuery::ExpiredAt(now);
    Ok(access + remove_first::<RefreshToken>(uow, &refresh, rest).await?)
}

/// Removes at most `limit` devices whose codes expired more than an hour ago, in the order of their expiry. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_devices(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?.minus(DEVICE_RETENTION);
    remove_first::<DeviceAuthorization>(uow, &DeviceAuthorizationQuery::ExpiredAt(now), limit).await
}
