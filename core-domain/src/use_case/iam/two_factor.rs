//! The second factor: set up, confirmed by its first code, shown at sign-in and when a fresh proof is asked for, taken away.

use serde_json::json;

use super::session;
use super::session::SignedIn;
use super::user::{PasswordCredential, ensure_confirmed, person_of_password, person_of_session};
use super::verification::Notice;
use super::verification::Notices;
use crate::access::{
    AuditEvent, EnrolledFactors, PublicScope, SessionScope, audited, ensure_fresh, unaudited,
    unowned,
};
use crate::iam::{
    ProofMethod, TotpCode, TotpSecret, TwoFactor, User, new_recovery_codes, recovery_hashes,
};
use crate::kernel::{Cipher, Code, Context, Error, Result, Stored, secret_token};
use crate::port::UnitOfWork;

/// Letters of a secret: 32 of 62 hold 190 bits.
const SECRET_LENGTH: usize = 32;

/// A second factor that was set up. Shown now; the recovery codes never again.
#[derive(Clone)]
pub struct Enrolment {
    /// What an authenticator reads: it holds the secret.
    pub uri: String,
    /// Each is good for one sign-in without the authenticator.
    pub recovery_codes: Vec<String>,
}

// Secrets stay out of logs.
impl std::fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Enrolment(..)")
    }
}

/// Sets up a second factor. Nobody is asked for it before its first code was right; until then it may be set up anew.
/// `checked` is the password that the person has just shown, if they did.
///
/// # Errors
/// `INVALID_PASSWORD` when the password was changed in between; `STEP_UP_REQUIRED` without a fresh proof, unless the person
/// has no second factor and showed their password; `EMAIL_NOT_VERIFIED`; `TWO_FACTOR_ALREADY_ENABLED`.
pub async fn set_up(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    checked: Option<&PasswordCredential>,
    issuer: &str,
) -> Result<Enrolment> {
    let user = person_with_proof(cx, scope, uow, checked).await?;
    ensure_confirmed(&user)?;
    let seen = unowned::<TwoFactor>(uow).find(&user.id).await?;
    if seen.as_ref().is_some_and(|seen| seen.is_confirmed()) {
        return Err(Error::refused(
            Code::TwoFactorAlreadyEnabled,
            "Two factor is enabled already",
        ));
    }
    let now = uow.now().await?;
    let secret = TotpSecret::new(secret_token(cx.entropy.as_ref(), SECRET_LENGTH));
    let recovery_codes = new_recovery_codes(cx.entropy.as_ref());
    let next = TwoFactor {
        user_id: user.id.clone(),
        sealed_secret: cipher.seal(user.id.as_str(), secret.expose())?,
        confirmed_at: None,
        last_step: None,
        recovery_codes: recovery_hashes(&user.id, &recovery_codes),
        // What was tried before counts on: setting up anew is no way to try more codes.
        failures: seen
            .as_ref()
            .map_or_else(Vec::new, |seen| seen.failures.clone()),
        created_at: now,
        updated_at: now,
    };
    let cx = &cx.consequence();
    match &seen {
        Some(seen) => audited::replace(cx, scope, uow, seen, next, "two_factor.set_up").await?,
        None => audited::insert(cx, scope, uow, next, "two_factor.set_up").await?,
    };
    Ok(Enrolment {
        uri: secret.uri(issuer, user.email.as_str()),
        recovery_codes,
    })
}

/// Returns the person of the session after they gave a fresh proof. The password that they have just shown is one, if they have
/// no second factor.
async fn person_with_proof(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
) -> Result<Stored<User>> {
    let user = match checked {
        Some(checked) => person_of_password(scope, uow, checked).await?,
        None => person_of_session(scope, uow).await?,
    };
    if checked.is_none() || EnrolledFactors::of(uow, &user.id).await?.has_any() {
        ensure_fresh(cx, uow).await?;
    }
    Ok(user)
}

async fn find_own(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
) -> Result<(Stored<User>, Stored<TwoFactor>)> {
    let user = person_with_proof(cx, scope, uow, checked).await?;
    let found = unowned::<TwoFactor>(uow).find(&user.id).await?;
    let found = found
        .ok_or_else(|| Error::refused(Code::TwoFactorNotEnabled, "Two factor isn't enabled"))?;
    Ok((user, found))
}

/// Returns what an authenticator reads, once more: for another device, or when the first look was missed.
///
/// # Errors
/// `INVALID_PASSWORD`, `STEP_UP_REQUIRED` as [`set_up`]; `TWO_FACTOR_NOT_ENABLED`.
pub async fn show_uri(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
    issuer: &str,
    notices: Notices<'_>,
) -> Result<String> {
    let (user, found) = find_own(cx, scope, uow, checked).await?;
    let secret = notices
        .cipher
        .open(user.id.as_str(), &found.sealed_secret)?;
    let secret = TotpSecret::new(secret);
    let event = AuditEvent {
        action: "two_factor.secret_shown",
        entity_id: user.id.to_string(),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await?;
    if found.is_confirmed() {
        notices
            .tell(cx, uow, &user, Notice::TwoFactorSecretShown)
            .await?;
    }
    Ok(secret.uri(issuer, user.email.as_str()))
}

/// Creates new recovery codes; the old ones become invalid.
///
/// # Errors
/// `INVALID_PASSWORD`, `STEP_UP_REQUIRED` as [`set_up`]; `TWO_FACTOR_NOT_ENABLED`.
pub async fn renew_recovery_codes(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
    notices: Notices<'_>,
) -> Result<Vec<String>> {
    let (user, seen) = find_own(cx, scope, uow, checked).await?;
    let codes = new_recovery_codes(cx.entropy.as_ref());
    let mut next = seen.edit();
    next.recovery_codes = recovery_hashes(&user.id, &codes);
    let (cx, action) = (&cx.consequence(), "two_factor.recovery_codes_renewed");
    audited::replace(cx, scope, uow, &seen, next, action).await?;
    if seen.is_confirmed() {
        notices
            .tell(cx, uow, &user, Notice::RecoveryCodesRenewed)
            .await?;
    }
    Ok(codes)
}

/// Removes the second factor; no device is trusted any more.
///
/// # Errors
/// `INVALID_PASSWORD`, `STEP_UP_REQUIRED` as [`set_up`]; `TWO_FACTOR_NOT_ENABLED`.
pub async fn disable(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
    notices: Notices<'_>,
) -> Result<()> {
    let (user, seen) = find_own(cx, scope, uow, checked).await?;
    audited::remove(&cx.consequence(), scope, uow, &seen, "two_factor.disabled").await?;
    session::trust_no_device(uow, &user.id).await?;
    if !seen.is_confirmed() {
        return Ok(());
    }
    let disabled = Notice::TwoFactorDisabled;
    notices.tell(cx, uow, &user, disabled).await
}

/// What somebody shows.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// A code of their authenticator.
    Totp(&'a str),
    /// One of their recovery codes.
    RecoveryCode(&'a str),
}

// Codes stay out of logs.
impl std::fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof({})", self.method().as_str())
    }
}

impl Proof<'_> {
    const fn method(self) -> ProofMethod {
        match self {
            Self::Totp(_) => ProofMethod::Totp,
            Self::RecoveryCode(_) => ProofMethod::BackupCode,
        }
    }

    fn wrong(self) -> Error {
        match self {
            Self::Totp(_) => Error::refused(Code::InvalidCode, "Invalid code"),
            Self::RecoveryCode(_) => Error::refused(Code::InvalidBackupCode, "Invalid backup code"),
        }
    }

    fn not_enabled(self) -> Error {
        match self {
            Self::Totp(_) => Error::refused(Code::TotpNotEnabled, "TOTP not enabled"),
            Self::RecoveryCode(_) => {
                Error::refused(Code::BackupCodesNotEnabled, "Backup codes aren't enabled")
            }
        }
    }
}

/// What became of a proof. A refusal is written down as well: commit the unit of work whichever it is.
#[derive(Debug)]
pub enum Verified<T> {
    /// It was right.
    Accepted(T),
    /// It was wrong.
    Refused(Error),
}

impl<T> Verified<T> {
    /// The outcome for the caller, once the unit of work is committed.
    ///
    /// # Errors
    /// The refusal.
    pub fn into_result(self) -> Result<T> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Refused(error) => Err(error),
        }
    }
}

/// A sign-in that is complete.
#[derive(Clone)]
pub struct CompletedSignIn {
    /// The session that began.
    pub signed_in: SignedIn,
    /// The token of the device, if it is trusted from now on. Shown now and never again.
    pub device: Option<String>,
}

// The token stays out of logs.
impl std::fmt::Debug for CompletedSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletedSignIn")
            .field("signed_in", &self.signed_in)
            .finish_non_exhaustive()
    }
}

/// Completes a sign-in that waits: its session begins, and its device is trusted from now on, if wanted.
///
/// # Errors
/// `INVALID_TWO_FACTOR_COOKIE` when it does not wait; `TOTP_NOT_ENABLED` and `BACKUP_CODES_NOT_ENABLED` when the second
/// factor was taken away meanwhile; `RATE_LIMITED` when too many codes were wrong.
pub async fn verify_for_sign_in(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    token: &str,
    proof: Proof<'_>,
    trust: bool,
) -> Result<Verified<CompletedSignIn>> {
    let challenge = session::find_challenge(uow, token).await?;
    let user = unowned::<User>(uow).find(&challenge.user_id).await?;
    let user = user.ok_or_else(|| proof.not_enabled())?;
    let seen = unowned::<TwoFactor>(uow).find(&user.id).await?;
    let seen = seen.filter(|seen| seen.is_confirmed());
    let seen = seen.ok_or_else(|| proof.not_enabled())?;
    if let Verified::Refused(error) = show(cx, uow, notices, &user, &seen, proof).await? {
        return Ok(Verified::Refused(error));
    }
    let done = session::complete_challenge(cx, uow, &challenge, user, proof.method());
    let signed_in = done.await?;
    let device = match trust {
        true => Some(session::trust_device(cx, uow, &signed_in.user).await?),
        false => None,
    };
    Ok(Verified::Accepted(CompletedSignIn { signed_in, device }))
}

/// Takes a code as a fresh proof of who the person of the session is. The first correct code confirms a second factor that was
/// set up.
///
/// # Errors
/// `UNAUTHORIZED` when the session has ended; `TOTP_NOT_ENABLED` and `BACKUP_CODES_NOT_ENABLED`; `STEP_UP_REQUIRED` when the
/// code would confirm a second factor of somebody who has another one and gave no fresh proof by it; `EMAIL_NOT_VERIFIED` when
/// it would confirm one of somebody whose address is not confirmed; `RATE_LIMITED` when too many codes were wrong.
pub async fn verify_in_session(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    proof: Proof<'_>,
) -> Result<Verified<Stored<User>>> {
    let user = person_of_session(scope, uow).await?;
    let seen = unowned::<TwoFactor>(uow).find(&user.id).await?;
    let confirms = matches!(proof, Proof::Totp(_));
    let seen = seen.filter(|seen| confirms || seen.is_confirmed());
    let seen = seen.ok_or_else(|| proof.not_enabled())?;
    if !seen.is_confirmed() {
        ensure_may_confirm(cx, uow, &user).await?;
    }
    if let Verified::Refused(error) = show(cx, uow, notices, &user, &seen, proof).await? {
        return Ok(Verified::Refused(error));
    }
    session::reauthenticate(cx, scope, uow, proof.method()).await?;
    Ok(Verified::Accepted(user))
}

/// Refuses to confirm a second factor of somebody whose address is not confirmed, or who has another second factor and gave no
/// fresh proof by it.
async fn ensure_may_confirm(cx: &Context, uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    ensure_confirmed(user)?;
    if EnrolledFactors::of(uow, &user.id).await?.has_any() {
        ensure_fresh(cx, uow).await?;
    }
    Ok(())
}

/// Uses a code up, or counts it as wrong.
async fn show(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    user: &User,
    seen: &Stored<TwoFactor>,
    proof: Proof<'_>,
) -> Result<Verified<()>> {
    let now = uow.now().await?;
    if let Some(wait) = seen.locked_for(now) {
        return Err(Error::Refused {
            code: Code::RateLimited,
            message: "Too many wrong codes. Please try again later.".to_owned(),
            details: json!({ "retryAfter": wait.as_secs().max(1) }),
        });
    }
    let used = match proof {
        Proof::Totp(code) => {
            let secret =
                TotpSecret::new(notices.cipher.open(user.id.as_str(), &seen.sealed_secret)?);
            let step =
                TotpCode::parse(code).and_then(|code| secret.step_of(code, now, seen.last_step));
            step.map(|step| seen.code_used(now, step))
        }
        Proof::RecoveryCode(code) => seen.recovery_code_used(now, code),
    };
    let Some(next) = used else {
        unaudited::replace(uow, seen, seen.failed(now)).await?;
        let details = json!({ "method": proof.method() });
        record(cx, uow, "two_factor.failed", user, details).await?;
        return Ok(Verified::Refused(proof.wrong()));
    };
    let stored = unaudited::replace(uow, seen, next).await?;
    // Somebody who signs in is known from now on.
    let known = cx.caller.user_id() == Some(&user.id);
    let cx = if known {
        cx
    } else {
        &session::as_user(cx, user)
    };
    if !seen.is_confirmed() {
        record(cx, uow, "two_factor.enabled", user, json!({})).await?;
        let enabled = Notice::TwoFactorEnabled;
        notices.tell(cx, uow, user, enabled).await?;
    }
    if matches!(proof, Proof::RecoveryCode(_)) {
        let left = stored.recovery_codes.len();
        let details = json!({ "left": left });
        record(cx, uow, "two_factor.recovery_code_used", user, details).await?;
        notices
            .tell(cx, uow, user, Notice::RecoveryCodeUsed(left))
            .await?;
    }
    Ok(Verified::Accepted(()))
}

async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    action: &'static str,
    user: &User,
    details: serde_json::Value,
) -> Result<()> {
    let event = AuditEvent {
        action,
        entity_id: user.id.to_string(),
        details: Some(details),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}
