//! Issues and verifies service tokens, and rotates the keys that sign them.

use std::sync::Arc;

use serde_json::json;

use crate::access::{AuditEvent, ServiceScope, SystemScope, audited, unaudited, unowned_records};
use crate::iam::{
    Ed25519Private, SERVICE_TOKEN_LIFETIME, ServiceClaims, SigningKey, SigningKeyQuery,
    UnverifiedToken, next_key_activation, published_keys, retired_keys, sign_service_token,
    signing_candidates,
};
use crate::kernel::{
    Caller, Cipher, Context, Error, Result, SessionId, StoreError, Stored, SuiteService, Timestamp,
    new_uuid,
};
use crate::port::UnitOfWork;

/// A service token that was issued now.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedServiceToken {
    /// The token, which is returned only once.
    pub token: String,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for IssuedServiceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedServiceToken")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The parties of a new service token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewServiceToken {
    /// The calling service.
    pub service: SuiteService,
    /// The called service.
    pub target: SuiteService,
    /// The session of the person that the service calls for; `None` for calls without a session. The called service
    /// checks the session, so it is not checked here.
    pub session_id: Option<SessionId>,
}

/// Issues a service token with this issuer.
///
/// # Errors
/// `VALIDATION_ERROR` if the service never calls the target.
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
    // The times in the token are whole seconds.
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
    audited::record_event(cx, uow, event).await?;
    Ok(IssuedServiceToken {
        token: sign_service_token(&key, &claims),
        expires_at,
    })
}

/// Upper bound for the number of keys. Retired keys are removed daily, and a new key is created every 30 days.
const MAX_KEYS: u32 = 100;

/// Returns all keys, oldest first.
async fn list_keys(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<SigningKey>>> {
    let all = unowned_records::<SigningKey>(uow)
        .list(&SigningKeyQuery::All, MAX_KEYS)
        .await?;
    Ok(all)
}

/// Returns the keys that verify signatures now, oldest first.
///
/// # Errors
/// Only those of the store.
pub async fn list_published_keys(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<SigningKey>>> {
    let (keys, now) = (list_keys(uow).await?, uow.now().await?);
    Ok(published_stored(&keys, now))
}

fn published_stored(keys: &[Stored<SigningKey>], now: Timestamp) -> Vec<Stored<SigningKey>> {
    let plain = plain(keys);
    let skipped = keys.len() - published_keys(&plain, now).len();
    keys[skipped..].to_vec()
}

fn plain(keys: &[Stored<SigningKey>]) -> Vec<&SigningKey> {
    keys.iter().map(|key| &**key).collect()
}

/// Returns whether the next key must be created. Only reads, because a write unit would be too expensive for each
/// check.
///
/// # Errors
/// Only those of the store.
pub async fn next_key_is_due(uow: &mut dyn UnitOfWork) -> Result<bool> {
    let (keys, now) = (list_keys(uow).await?, uow.now().await?);
    Ok(next_key_activation(&plain(&keys), now).is_some())
}

/// Creates the next key if it is due.
///
/// # Errors
/// [`StoreError::Retry`] if another node created it at the same time. A repeated call finds that key.
pub async fn create_next_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
) -> Result<()> {
    let (keys, now) = (list_keys(uow).await?, uow.now().await?);
    let Some(active_from) = next_key_activation(&plain(&keys), now) else {
        return Ok(());
    };
    insert(cx, uow, cipher, &keys, active_from).await?;
    Ok(())
}

/// Creates the key that follows the given keys.
async fn insert(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    keys: &[Stored<SigningKey>],
    active_from: Timestamp,
) -> Result<Ed25519Private> {
    let private = Ed25519Private::generate(cx.entropy.as_ref());
    let public = private.public();
    let kid = public.thumbprint();
    let key = SigningKey {
        generation: keys.last().map_or(0, |last| last.generation) + 1,
        public_key: public.x(),
        sealed_private_key: cipher.seal(&kid, &private.expose())?,
        kid,
        active_from,
        created_at: uow.now().await?,
    };
    let (cx, scope) = (&system_context(cx), &SystemScope::new());
    match audited::insert(cx, scope, uow, key, "signing_key.created").await {
        Ok(_) => Ok(private),
        Err(Error::Store(StoreError::Conflict { .. })) => Err(Error::Store(StoreError::Retry(
            "another node made the signing key".into(),
        ))),
        Err(error) => Err(error),
    }
}

/// Returns a context with the system as its caller, for the audit log: the keys belong to no request.
fn system_context(cx: &Context) -> Context {
    Context {
        caller: Arc::new(Caller::System),
        ..cx.without_conditions()
    }
}

/// Returns the private key that signs tokens now. Creates one if there is none, or if none can be decrypted because the
/// encryption key of the installation changed. Tokens with older signatures stay valid.
async fn signing_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
) -> Result<Ed25519Private> {
    create_next_key(cx, uow, cipher).await?;
    let (keys, now) = (list_keys(uow).await?, uow.now().await?);
    let readable = |key: &SigningKey| {
        let text = cipher.open(&key.kid, &key.sealed_private_key).ok()?;
        Ed25519Private::from_base64url(&text)
    };
    let readable = signing_candidates(&plain(&keys), now)
        .into_iter()
        .find_map(|key| readable(key));
    match readable {
        Some(key) => Ok(key),
        None => insert(cx, uow, cipher, &keys, now).await,
    }
}

/// Creates the next key if it is due, and removes retired keys. Returns the number of removed keys. Does nothing if no
/// key exists, because then no service token was ever requested.
///
/// # Errors
/// Those of [`create_next_key`].
pub async fn rotate_keys(cx: &Context, uow: &mut dyn UnitOfWork, cipher: &Cipher) -> Result<u64> {
    if list_keys(uow).await?.is_empty() {
        return Ok(0);
    }
    create_next_key(cx, uow, cipher).await?;
    let (keys, now) = (list_keys(uow).await?, uow.now().await?);
    let retired = retired_keys(&plain(&keys), now).len();
    for key in &keys[..retired] {
        unaudited::remove(uow, key).await?;
    }
    Ok(retired as u64)
}

/// Verifies a service token and returns its claims. Returns `None` if the token is not valid now for this issuer and
/// audience.
///
/// # Errors
/// Only those of the store.
pub async fn verify(
    uow: &mut dyn UnitOfWork,
    token: &str,
    issuer: &str,
    audience: &str,
) -> Result<Option<ServiceClaims>> {
    let Ok(token) = UnverifiedToken::parse(token) else {
        return Ok(None);
    };
    let keys = list_published_keys(uow).await?;
    let named = keys
        .iter()
        .find(|key| Some(key.kid.as_str()) == token.kid());
    let Some(public) = named.and_then(|key| key.public()) else {
        return Ok(None);
    };
    let claims = token.verify(&public, issuer, audience, uow.now().await?);
    Ok(claims.ok())
}
