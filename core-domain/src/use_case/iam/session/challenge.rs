//! Sign-ins that wait for their second factor. There is no session before it was shown.

use serde_json::json;

use super::own::{SignedIn, as_user, begin, ensure_not_banned};
use crate::access::{
    AuditEvent, EnrolledFactors, PersonScope, PublicScope, SessionScope, audited, unaudited,
    unowned,
};
use crate::iam::{
    Account, AccountQuery, CHALLENGE_LIFETIME, MAX_CHALLENGES, MAX_TRUSTED_DEVICES, ProofMethod,
    ProofStrength, Session, TRUSTED_FOR, TokenHash, TrustedDevice, TrustedDeviceQuery,
    TwoFactorChallenge, TwoFactorChallengeQuery, User,
};
use crate::kernel::{
    Code, Context, Error, Record, Result, Stored, TOKEN_LENGTH, Timestamp, UserId, secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::eviction::evict;
use crate::use_case::shared::remove_first;

/// A sign-in that waits for its second factor.
#[derive(Clone, PartialEq)]
pub struct Challenged {
    /// Who signs in.
    pub user: Stored<User>,
    /// What the sign-in is recognised by. Shown now and never again.
    pub token: String,
}

// The token stays out of logs.
impl std::fmt::Debug for Challenged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Challenged")
            .field("user", &self.user.id)
            .finish_non_exhaustive()
    }
}

/// What a first factor that was right led to.
#[derive(Clone, Debug, PartialEq)]
pub enum SignInOutcome {
    /// Nothing else is asked for.
    SignedIn(SignedIn),
    /// The second factor is asked for; there is no session yet.
    SecondFactorRequired(Challenged),
}

/// What somebody has shown who signs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum FirstFactor<'a> {
    /// The password of the account.
    Password {
        /// The token of the device, if it has one: it may be trusted.
        device: Option<&'a str>,
    },
    /// A link that was sent by mail, or a password that such a link has set.
    Link,
}

/// Begins a session, or asks for a second factor. A password is enough for people without an authenticator, and on devices that
/// they trust. A link is enough for people without any second factor. Returns the next token of a trusted device too.
///
/// # Errors
/// `BANNED_USER`.
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
        Some(token) => use_trust(cx, uow, &user, token).await?,
        None => None,
    };
    if !is_asked || trusted.is_some() {
        let signed_in = begin(cx, uow, user, remembered, None).await?;
        return Ok((SignInOutcome::SignedIn(signed_in), trusted));
    }
    let challenged = challenge(cx, uow, user, remembered).await?;
    Ok((SignInOutcome::SecondFactorRequired(challenged), None))
}

/// Returns the second factors with which a sign-in that waits under this token can be completed.
///
/// # Errors
/// `INVALID_TWO_FACTOR_COOKIE` when no sign-in waits under the token.
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
) -> Result<Challenged> {
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
    // Who shows one factor is not known to be the user yet.
    audited::event(cx, uow, event).await?;
    Ok(Challenged { user, token })
}

/// Keeps the sign-ins of a user that wait bounded.
async fn evict_challenges(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TwoFactorChallengeQuery::OfUser(user.id.clone());
    let waiting = unowned::<TwoFactorChallenge>(uow);
    let waiting = waiting.list(&of_user, 2 * MAX_CHALLENGES).await?;
    let now = uow.now().await?;
    evict(uow, &waiting, MAX_CHALLENGES, |challenge| {
        now >= challenge.expires_at
    })
    .await
}

/// The sign-in of a token, if it waits.
pub(in crate::use_case::iam) async fn find_challenge(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Stored<TwoFactorChallenge>> {
    let hash = TokenHash::of(token);
    let found = unowned::<TwoFactorChallenge>(uow).find(&hash).await?;
    let now = uow.now().await?;
    let found = found.filter(|found| now < found.expires_at);
    found.ok_or_else(|| Error::refused(Code::InvalidTwoFactorCookie, "Invalid two factor cookie"))
}

/// Begins the session of a sign-in whose second factor was shown; the sign-in waits no more.
pub(in crate::use_case::iam) async fn complete_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    challenge: &Stored<TwoFactorChallenge>,
    user: Stored<User>,
    method: ProofMethod,
) -> Result<SignedIn> {
    unaudited::remove(uow, challenge).await?;
    let now = uow.now().await?;
    let signed_in = begin(cx, uow, user, challenge.remembered, Some(now)).await?;
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({ "method": method, "sessionId": signed_in.session.id })),
        ..AuditEvent::default()
    };
    audited::event(&as_user(cx, &signed_in.user), uow, event).await?;
    Ok(signed_in)
}

/// Removes at most `limit` of the sign-ins that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_challenges(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<TwoFactorChallenge>(uow, &TwoFactorChallengeQuery::ExpiredAt(now), limit).await
}

/// Records that the person showed the password of the session's user. Where the user has a second factor, that is no fresh
/// proof: see [`crate::access::missing_proof`].
///
/// # Errors
/// `UNAUTHORIZED` when the session has ended.
pub async fn reauthenticate_by_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    reauthenticate(cx, scope, uow, ProofMethod::Password).await
}

/// Records that the person of a session proved who they are.
pub(in crate::use_case::iam) async fn reauthenticate(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<()> {
    let session = note_proof(scope, uow, method).await?;
    let event = AuditEvent {
        action: "session.reauthenticated",
        entity_id: session.id.to_string(),
        details: Some(json!({ "method": method })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}

/// As [`reauthenticate`], for a proof that is a part of a change with an audit entry of its own.
pub(in crate::use_case::iam) async fn note_proof(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    method: ProofMethod,
) -> Result<Stored<Session>> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let now = uow.now().await?;
    let next = session.authenticated(method.strength(), now);
    if method.strength() == ProofStrength::SecondFactor {
        accept_password(uow, &session.user_id).await?;
    }
    unaudited::replace(uow, &session, next).await
}

/// Accepts the password of a user who has just shown a second factor as their own, also if a link set it.
pub(super) async fn accept_password(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<()> {
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned::<Account>(uow).first(&password).await?;
    if let Some(account) = account.filter(|account| account.set_by_link_at.is_some()) {
        let mut next = account.edit();
        next.set_by_link_at = None;
        unaudited::replace(uow, &account, next).await?;
    }
    Ok(())
}

/// Trusts the device of somebody who has just shown their second factor. Answers its token, which is never shown again.
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
        expires_at: now.plus(TRUSTED_FOR),
    };
    unaudited::insert(uow, device).await?;
    let event = AuditEvent {
        action: "two_factor.device_trusted",
        entity_id: user.id.to_string(),
        ..AuditEvent::default()
    };
    audited::event(&as_user(cx, user), uow, event).await?;
    Ok(token)
}

/// Keeps the devices of a user bounded.
async fn evict_devices(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.id.clone());
    let devices = unowned::<TrustedDevice>(uow);
    let devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    evict(uow, &devices, MAX_TRUSTED_DEVICES, |device| {
        now >= device.expires_at
    })
    .await
}

/// The next token of a device that the user trusts; `None` for one that they do not, or not any more. A token is good for one
/// sign-in.
pub(super) async fn use_trust(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
    token: &str,
) -> Result<Option<String>> {
    let hash = TokenHash::of(token);
    let now = uow.now().await?;
    let found = unowned::<TrustedDevice>(uow).find(&hash).await?;
    let found = found.filter(|found| found.user_id == user.id && now < found.expires_at);
    let Some(seen) = found else {
        return Ok(None);
    };
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = TrustedDevice {
        token_hash: TokenHash::of(&token),
        expires_at: now.plus(TRUSTED_FOR),
        ..(*seen).clone()
    };
    unaudited::remove(uow, &seen).await?;
    unaudited::insert(uow, next).await?;
    Ok(Some(token))
}

/// Returns the devices that the person trusts, newest first; there are never more than [`MAX_TRUSTED_DEVICES`].
///
/// # Errors
/// When the store failed.
pub async fn list_trusted_devices(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<TrustedDevice>>> {
    let of_user = TrustedDeviceQuery::OfUser(scope.user_id().clone());
    let devices = unowned::<TrustedDevice>(uow);
    let mut devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    devices.retain(|device| now < device.expires_at);
    devices.reverse();
    Ok(devices)
}

/// Ends the person's trust in the device that became trusted at this time.
///
/// # Errors
/// `NOT_FOUND` when there is none.
pub async fn distrust_device(
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
    audited::event(cx, uow, event).await
}

/// Trusts no device of the user any more; the entry is that of what it is a part of.
pub(in crate::use_case::iam) async fn trust_no_device(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.clone());
    unowned::<TrustedDevice>(uow).remove_all(&of_user).await?;
    Ok(())
}

/// Removes at most `limit` of the trusted devices that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_trust(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<TrustedDevice>(uow, &TrustedDeviceQuery::ExpiredAt(now), limit).await
}
