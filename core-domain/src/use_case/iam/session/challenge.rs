//! Second-factor challenges of sign-ins, fresh proofs of identity, and trusted devices. A sign-in with a second factor
//! has no session before the challenge is completed.

use serde_json::json;

use super::begin::{SignedIn, accept_password, as_user, create, ensure_not_banned};
use crate::access::{
    AuditEvent, EnrolledFactors, PersonScope, PublicScope, SessionScope, audited, unaudited,
    unowned_records,
};
use crate::iam::{
    CHALLENGE_LIFETIME, DEVICE_TRUST_LIFETIME, MAX_CHALLENGES, MAX_TRUSTED_DEVICES, ProofMethod,
    ProofStrength, Session, TokenHash, TrustedDevice, TrustedDeviceQuery, TwoFactorChallenge,
    TwoFactorChallengeQuery, User,
};
use crate::kernel::{
    Code, Context, Error, Record, Result, Stored, TOKEN_LENGTH, Timestamp, UserId, secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::eviction::evict;
use crate::use_case::shared::remove_first;

/// A sign-in that waits for its second factor.
#[derive(Clone, PartialEq)]
pub struct PendingSignIn {
    /// The user who signs in.
    pub user: Stored<User>,
    /// The token of the challenge, which is returned only once.
    pub token: String,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Challenged")
            .field("user", &self.user.id)
            .finish_non_exhaustive()
    }
}

/// The outcome of a correct first factor.
#[derive(Clone, Debug, PartialEq)]
pub enum SignInOutcome {
    /// The sign-in is complete.
    SignedIn(SignedIn),
    /// A second factor is required. There is no session yet.
    SecondFactorRequired(PendingSignIn),
}

/// The first factor of a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum FirstFactor<'a> {
    /// The password of the account.
    Password {
        /// The token of the device, which may be trusted; `None` if the request has none.
        device: Option<&'a str>,
    },
    /// A mailed link, or a password that was set by a mailed link.
    Link,
}

/// Creates a session, or a challenge for a second factor. A password suffices for users without an authenticator app,
/// and on their trusted devices. A link suffices for users without any second factor. Also returns the next token of a
/// trusted device.
///
/// # Errors
/// `BANNED_USER` if the user is banned.
pub(in crate::use_case::iam) async fn begin_or_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    first: FirstFactor<'_>,
    remembered: bool,
) -> Result<(SignInOutcome, Option<String>)> {
    ensure_not_banned(&user)?;
    let factors = EnrolledFactors::of(uow, &user.id).await?;
    let (is_asked, device) = match first {
        FirstFactor::Password { device } => (factors.totp, device),
        FirstFactor::Link => (factors.has_any(), None),
    };
    let trusted = match device.filter(|_| is_asked) {
        Some(token) => rotate_trusted_device(cx, uow, &user, token).await?,
        None => None,
    };
    if !is_asked || trusted.is_some() {
        let signed_in = create(cx, uow, user, remembered, None).await?;
        return Ok((SignInOutcome::SignedIn(signed_in), trusted));
    }
    let challenged = challenge(cx, uow, user, remembered).await?;
    Ok((SignInOutcome::SecondFactorRequired(challenged), None))
}

/// Returns the second factors that can complete the challenge with this token.
///
/// # Errors
/// `INVALID_TWO_FACTOR_COOKIE` if no challenge is pending under this token.
pub async fn challenge_methods(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Vec<ProofMethod>> {
    let challenge = find_challenge(uow, token).await?;
    let factors = EnrolledFactors::of(uow, &challenge.user_id).await?;
    Ok(factors.methods())
}

async fn challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    remembered: bool,
) -> Result<PendingSignIn> {
    evict_challenges(uow, &user).await?;
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let challenge = TwoFactorChallenge {
        token_hash: TokenHash::of(&token),
        user_id: user.id.clone(),
        remembered,
        created_at: now,
        expires_at: now.plus(CHALLENGE_LIFETIME),
    };
    unaudited::insert(uow, challenge).await?;
    let event = AuditEvent {
        action: "two_factor.required",
        entity_id: user.id.to_string(),
        details: Some(json!({ "remembered": remembered })),
        ..AuditEvent::default()
    };
    // The first factor alone does not authenticate the user, so the entry does not name them as actor.
    audited::record_event(cx, uow, event).await?;
    Ok(PendingSignIn { user, token })
}

/// Limits the number of pending challenges of a user; the oldest ones are removed.
async fn evict_challenges(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TwoFactorChallengeQuery::OfUser(user.id.clone());
    let waiting = unowned_records::<TwoFactorChallenge>(uow);
    let waiting = waiting.list(&of_user, 2 * MAX_CHALLENGES).await?;
    let now = uow.now().await?;
    evict(uow, &waiting, MAX_CHALLENGES, |challenge| {
        now >= challenge.expires_at
    })
    .await
}

/// Returns the pending challenge with this token, or `INVALID_TWO_FACTOR_COOKIE`.
pub(in crate::use_case::iam) async fn find_challenge(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Stored<TwoFactorChallenge>> {
    let hash = TokenHash::of(token);
    let found = unowned_records::<TwoFactorChallenge>(uow)
        .find(&hash)
        .await?;
    let now = uow.now().await?;
    let found = found.filter(|found| now < found.expires_at);
    found.ok_or_else(|| Error::refused(Code::InvalidTwoFactorCookie, "Invalid two factor cookie"))
}

/// Creates the session of a sign-in after its second factor, and removes the challenge.
pub(in crate::use_case::iam) async fn complete_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    challenge: &Stored<TwoFactorChallenge>,
    user: Stored<User>,
    method: ProofMethod,
) -> Result<SignedIn> {
    unaudited::remove(uow, challenge).await?;
    let now = uow.now().await?;
    let signed_in = create(cx, uow, user, challenge.remembered, Some(now)).await?;
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({ "method": method, "sessionId": signed_in.session.id })),
        ..AuditEvent::default()
    };
    audited::record_event(&as_user(cx, &signed_in.user), uow, event).await?;
    Ok(signed_in)
}

/// Removes at most `limit` expired challenges, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_challenges(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<TwoFactorChallenge>(uow, &TwoFactorChallengeQuery::ExpiredAt(now), limit).await
}

/// Records that the session's user entered their password again. For a user with a second factor this is not a fresh
/// proof; see [`crate::access::missing_proof`].
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended.
pub async fn reauthenticate_by_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    reauthenticate(cx, scope, uow, ProofMethod::Password).await
}

/// Records a fresh proof of identity in the session and in the audit log.
pub(in crate::use_case::iam) async fn reauthenticate(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<()> {
    let session = record_proof(scope, uow, method).await?;
    let event = AuditEvent {
        action: "session.reauthenticated",
        entity_id: session.id.to_string(),
        details: Some(json!({ "method": method })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// Like [`reauthenticate`], but without an audit entry, for a proof that is a part of an audited change.
pub(in crate::use_case::iam) async fn record_proof(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<Stored<Session>> {
    let session = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let next = session.with_proof(method.strength(), now);
    if method.strength() == ProofStrength::SecondFactor {
        accept_password(uow, &session.user_id).await?;
    }
    unaudited::replace(uow, &session, next).await
}

/// Marks the device as trusted after its user has used a second factor. Returns the device token, which is returned
/// only once.
pub(in crate::use_case::iam) async fn trust_device(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
) -> Result<String> {
    evict_devices(uow, user).await?;
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let device = TrustedDevice {
        token_hash: TokenHash::of(&token),
        user_id: user.id.clone(),
        ip_address: cx.request.ip.clone(),
        user_agent: cx.request.user_agent.clone(),
        created_at: now,
        expires_at: now.plus(DEVICE_TRUST_LIFETIME),
    };
    unaudited::insert(uow, device).await?;
    let event = AuditEvent {
        action: "two_factor.device_trusted",
        entity_id: user.id.to_string(),
        ..AuditEvent::default()
    };
    audited::record_event(&as_user(cx, user), uow, event).await?;
    Ok(token)
}

/// Limits the number of trusted devices of a user; the oldest ones are removed.
async fn evict_devices(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.id.clone());
    let devices = unowned_records::<TrustedDevice>(uow);
    let devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    evict(uow, &devices, MAX_TRUSTED_DEVICES, |device| {
        now >= device.expires_at
    })
    .await
}

/// Replaces the token of a device that the user trusts, and returns the new one. Returns `None` if the device is not
/// trusted. Each token is valid for one sign-in.
pub(super) async fn rotate_trusted_device(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
    token: &str,
) -> Result<Option<String>> {
    let hash = TokenHash::of(token);
    let now = uow.now().await?;
    let found = unowned_records::<TrustedDevice>(uow).find(&hash).await?;
    let found = found.filter(|found| found.user_id == user.id && now < found.expires_at);
    let Some(seen) = found else {
        return Ok(None);
    };
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = TrustedDevice {
        token_hash: TokenHash::of(&token),
        expires_at: now.plus(DEVICE_TRUST_LIFETIME),
        ..(*seen).clone()
    };
    unaudited::remove(uow, &seen).await?;
    unaudited::insert(uow, next).await?;
    Ok(Some(token))
}

/// Returns the devices that the person trusts, newest first, at most [`MAX_TRUSTED_DEVICES`].
///
/// # Errors
/// Only those of the store.
pub async fn list_trusted_devices(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<TrustedDevice>>> {
    let of_user = TrustedDeviceQuery::OfUser(scope.user_id().clone());
    let devices = unowned_records::<TrustedDevice>(uow);
    let mut devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    devices.retain(|device| now < device.expires_at);
    devices.reverse();
    Ok(devices)
}

/// Ends the trust in the device that became trusted at this time.
///
/// # Errors
/// `NOT_FOUND` if the person trusts no such device.
pub async fn remove_trusted_device(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    since: Timestamp,
) -> Result<()> {
    let devices = list_trusted_devices(scope, uow).await?;
    let device = devices.iter().find(|device| device.created_at == since);
    let device = device.ok_or(Error::NotFound(TrustedDevice::KIND))?;
    unaudited::remove(uow, device).await?;
    let event = AuditEvent {
        action: "two_factor.device_distrusted",
        entity_id: scope.user_id().to_string(),
        details: Some(json!({ "since": since, "ipAddress": device.ip_address })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// Removes all trusted devices of the user. Writes no audit entry, because it is a part of an audited change.
pub(in crate::use_case::iam) async fn remove_trusted_devices(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.clone());
    unowned_records::<TrustedDevice>(uow)
        .remove_all(&of_user)
        .await?;
    Ok(())
}

/// Removes at most `limit` expired trusted devices, in the order of their expiry. Returns their number; 0 means that
/// none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_trust(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<TrustedDevice>(uow, &TrustedDeviceQuery::ExpiredAt(now), limit).await
}
