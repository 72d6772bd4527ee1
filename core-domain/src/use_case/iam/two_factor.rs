//! The second factor: set-up, confirmation by the first code, verification at sign-in and for fresh proofs, and
//! removal.

use serde_json::json;

use super::session;
use super::session::SignedIn;
use super::user::{PasswordCredential, ensure_confirmed, person_of_password, person_of_session};
use super::verification::Notice;
use super::verification::Notices;
use crate::access::{
    AuditEvent, EnrolledFactors, PublicScope, SessionScope, audited, ensure_fresh, unaudited,
    unowned_records,
};
use crate::iam::{
    ProofMethod, TotpCode, TotpSecret, TwoFactor, User, new_recovery_codes, recovery_hashes,
};
use crate::kernel::{Cipher, Code, Context, Error, Result, Stored, secret_token};
use crate::port::UnitOfWork;

/// Length of the secret of an authenticator app. 32 base-62 characters have 190 bits.
const SECRET_LENGTH: usize = 32;

/// A second factor that was set up. The recovery codes are returned only once.
#[derive(Clone)]
pub struct Enrolment {
    /// The URI for the QR code that an authenticator app scans. It contains the secret.
    pub uri: String,
    /// The recovery codes. Each can replace the authenticator app once.
    pub recovery_codes: Vec<String>,
}

// The `Debug` output hides all secrets, so that they do not appear in logs.
impl std::fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Enrolment(..)")
    }
}

/// Sets up a second factor. Sign-ins do not require it before the first correct code; until then it can be set up
/// again. `checked` is the password that the person has just entered, if any.
///
/// # Errors
/// - `INVALID_PASSWORD` if the password was changed since it was checked.
/// - `STEP_UP_REQUIRED` without a fresh proof of identity. For a person without a second factor, the password suffices.
/// - `EMAIL_NOT_VERIFIED` if the person's address is not verified.
/// - `TWO_FACTOR_ALREADY_ENABLED` if a confirmed second factor exists.
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
    let seen = unowned_records::<TwoFactor>(uow).find(&user.id).await?;
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
        // Earlier failures stay, so that a new set-up does not allow more attempts.
        failures: seen
            .as_ref()
            .map_or_else(Vec::new, |seen| seen.failures.clone()),
        created_at: now,
        updated_at: now,
    };
    let cx = &cx.without_conditions();
    match &seen {
        Some(seen) => audited::replace(cx, scope, uow, seen, next, "two_factor.set_up").await?,
        None => audited::insert(cx, scope, uow, next, "two_factor.set_up").await?,
    };
    Ok(Enrolment {
        uri: secret.uri(issuer, user.email.as_str()),
        recovery_codes,
    })
}

/// Returns the person of the session after a fresh proof of identity. For a person without a second factor, the
/// password that they have just entered is such a proof.
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
    let found = unowned_records::<TwoFactor>(uow).find(&user.id).await?;
    let found = found
        .ok_or_else(|| Error::refused(Code::TwoFactorNotEnabled, "Two factor isn't enabled"))?;
    Ok((user, found))
}

/// Returns the URI for the QR code again, for example for another device. A confirmed factor's owner is notified by
/// mail.
///
/// # Errors
/// - `INVALID_PASSWORD` and `STEP_UP_REQUIRED` for the reasons in [`set_up`].
/// - `TWO_FACTOR_NOT_ENABLED` if the person has no second factor.
pub async fn get_uri(
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
    audited::record_event(cx, uow, event).await?;
    if found.is_confirmed() {
        notices
            .send(cx, uow, &user, Notice::TwoFactorSecretShown)
            .await?;
    }
    Ok(secret.uri(issuer, user.email.as_str()))
}

/// Creates new recovery codes; the old ones become invalid. A confirmed factor's owner is notified by mail.
///
/// # Errors
/// - `INVALID_PASSWORD` and `STEP_UP_REQUIRED` for the reasons in [`set_up`].
/// - `TWO_FACTOR_NOT_ENABLED` if the person has no second factor.
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
    let (cx, action) = (
        &cx.without_conditions(),
        "two_factor.recovery_codes_renewed",
    );
    audited::replace(cx, scope, uow, &seen, next, action).await?;
    if seen.is_confirmed() {
        notices
            .send(cx, uow, &user, Notice::RecoveryCodesRenewed)
            .await?;
    }
    Ok(codes)
}

/// Removes the second factor and all trusted devices. A confirmed factor's owner is notified by mail.
///
/// # Errors
/// - `INVALID_PASSWORD` and `STEP_UP_REQUIRED` for the reasons in [`set_up`].
/// - `TWO_FACTOR_NOT_ENABLED` if the person has no second factor.
pub async fn disable(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: Option<&PasswordCredential>,
    notices: Notices<'_>,
) -> Result<()> {
    let (user, seen) = find_own(cx, scope, uow, checked).await?;
    audited::remove(
        &cx.without_conditions(),
        scope,
        uow,
        &seen,
        "two_factor.disabled",
    )
    .await?;
    session::remove_trusted_devices(uow, &user.id).await?;
    if !seen.is_confirmed() {
        return Ok(());
    }
    let disabled = Notice::TwoFactorDisabled;
    notices.send(cx, uow, &user, disabled).await
}

/// A code that a person presents as a second factor.
#[derive(Clone, Copy)]
pub enum SecondFactorCode<'a> {
    /// A code of their authenticator app.
    Totp(&'a str),
    /// A recovery code, which can be used once.
    RecoveryCode(&'a str),
}

// The `Debug` output hides the codes, so that they do not appear in logs.
impl std::fmt::Debug for SecondFactorCode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof({})", self.method().as_str())
    }
}

impl SecondFactorCode<'_> {
    const fn method(self) -> ProofMethod {
        match self {
            Self::Totp(_) => ProofMethod::Totp,
            Self::RecoveryCode(_) => ProofMethod::BackupCode,
        }
    }

    fn wrong_code_error(self) -> Error {
        match self {
            Self::Totp(_) => Error::refused(Code::InvalidCode, "Invalid code"),
            Self::RecoveryCode(_) => Error::refused(Code::InvalidBackupCode, "Invalid backup code"),
        }
    }

    fn not_enabled_error(self) -> Error {
        match self {
            Self::Totp(_) => Error::refused(Code::TotpNotEnabled, "TOTP not enabled"),
            Self::RecoveryCode(_) => {
                Error::refused(Code::BackupCodesNotEnabled, "Backup codes aren't enabled")
            }
        }
    }
}

/// The outcome of a verification. A refusal is audited, so the unit of work must be committed in both cases.
#[derive(Debug)]
pub enum Verification<T> {
    /// The proof was correct.
    Accepted(T),
    /// The proof was wrong; contains the error for the caller.
    Refused(Error),
}

impl<T> Verification<T> {
    /// Returns the outcome for the caller. Call it after the unit of work is committed.
    ///
    /// # Errors
    /// Returns the refusal.
    pub fn into_result(self) -> Result<T> {
        match self {
            Self::Accepted(value) => Ok(value),
            Self::Refused(error) => Err(error),
        }
    }
}

/// A completed sign-in.
#[derive(Clone)]
pub struct CompletedSignIn {
    /// The new session with its user.
    pub signed_in: SignedIn,
    /// The token of the device, if it is trusted now. It is returned only once.
    pub device: Option<String>,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for CompletedSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletedSignIn")
            .field("signed_in", &self.signed_in)
            .finish_non_exhaustive()
    }
}

/// Completes a pending sign-in: creates its session, and marks the device as trusted if `trust` is set.
///
/// # Errors
/// - `INVALID_TWO_FACTOR_COOKIE` if no sign-in is pending under this token.
/// - `TOTP_NOT_ENABLED` or `BACKUP_CODES_NOT_ENABLED` if the second factor was removed since the sign-in started.
/// - `RATE_LIMITED` after too many wrong codes; `details.retryAfter` is the number of seconds to wait.
pub async fn verify_for_sign_in(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    token: &str,
    proof: SecondFactorCode<'_>,
    trust: bool,
) -> Result<Verification<CompletedSignIn>> {
    let challenge = session::find_challenge(uow, token).await?;
    let user = unowned_records::<User>(uow)
        .find(&challenge.user_id)
        .await?;
    let user = user.ok_or_else(|| proof.not_enabled_error())?;
    let seen = unowned_records::<TwoFactor>(uow).find(&user.id).await?;
    let seen = seen.filter(|seen| seen.is_confirmed());
    let seen = seen.ok_or_else(|| proof.not_enabled_error())?;
    if let Verification::Refused(error) = verify_code(cx, uow, notices, &user, &seen, proof).await?
    {
        return Ok(Verification::Refused(error));
    }
    let done = session::complete_challenge(cx, uow, &challenge, user, proof.method());
    let signed_in = done.await?;
    let device = match trust {
        true => Some(session::trust_device(cx, uow, &signed_in.user).await?),
        false => None,
    };
    Ok(Verification::Accepted(CompletedSignIn {
        signed_in,
        device,
    }))
}

/// Verifies a code as a fresh proof of identity of the session's user. The first correct code confirms a second factor
/// that was set up.
///
/// # Errors
/// - `UNAUTHORIZED` if the session has ended.
/// - `TOTP_NOT_ENABLED` or `BACKUP_CODES_NOT_ENABLED` if the user has no such factor.
/// - `STEP_UP_REQUIRED` if the code would confirm a factor, and the user gave no fresh proof by another factor that
///   they have.
/// - `EMAIL_NOT_VERIFIED` if the code would confirm a factor, and the user's address is not verified.
/// - `RATE_LIMITED` after too many wrong codes; `details.retryAfter` is the number of seconds to wait.
pub async fn verify_in_session(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    proof: SecondFactorCode<'_>,
) -> Result<Verification<Stored<User>>> {
    let user = person_of_session(scope, uow).await?;
    let seen = unowned_records::<TwoFactor>(uow).find(&user.id).await?;
    let confirms = matches!(proof, SecondFactorCode::Totp(_));
    let seen = seen.filter(|seen| confirms || seen.is_confirmed());
    let seen = seen.ok_or_else(|| proof.not_enabled_error())?;
    if !seen.is_confirmed() {
        ensure_may_confirm(cx, uow, &user).await?;
    }
    if let Verification::Refused(error) = verify_code(cx, uow, notices, &user, &seen, proof).await?
    {
        return Ok(Verification::Refused(error));
    }
    session::reauthenticate(cx, scope, uow, proof.method()).await?;
    Ok(Verification::Accepted(user))
}

/// Checks that the user may confirm a second factor. Their address must be verified. If they have another second
/// factor, they must have given a fresh proof with it.
async fn ensure_may_confirm(cx: &Context, uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    ensure_confirmed(user)?;
    if EnrolledFactors::of(uow, &user.id).await?.has_any() {
        ensure_fresh(cx, uow).await?;
    }
    Ok(())
}

/// Verifies a code. Marks a correct code as used, and counts a wrong one.
async fn verify_code(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
    user: &User,
    seen: &Stored<TwoFactor>,
    proof: SecondFactorCode<'_>,
) -> Result<Verification<()>> {
    let now = uow.now().await?;
    if let Some(wait) = seen.locked_for(now) {
        return Err(Error::Refused {
            code: Code::RateLimited,
            message: "Too many wrong codes. Please try again later.".to_owned(),
            details: json!({ "retryAfter": wait.as_secs().max(1) }),
        });
    }
    let used = match proof {
        SecondFactorCode::Totp(code) => {
            let secret =
                TotpSecret::new(notices.cipher.open(user.id.as_str(), &seen.sealed_secret)?);
            let step =
                TotpCode::parse(code).and_then(|code| secret.step_of(code, now, seen.last_step));
            step.map(|step| seen.with_used_step(now, step))
        }
        SecondFactorCode::RecoveryCode(code) => seen.without_recovery_code(now, code),
    };
    let Some(next) = used else {
        unaudited::replace(uow, seen, seen.with_failure(now)).await?;
        let details = json!({ "method": proof.method() });
        record(cx, uow, "two_factor.failed", user, details).await?;
        return Ok(Verification::Refused(proof.wrong_code_error()));
    };
    let stored = unaudited::replace(uow, seen, next).await?;
    // A user who signs in is authenticated now, and is named as actor in the audit entries.
    let known = cx.caller.user_id() == Some(&user.id);
    let cx = if known {
        cx
    } else {
        &session::as_user(cx, user)
    };
    if !seen.is_confirmed() {
        record(cx, uow, "two_factor.enabled", user, json!({})).await?;
        let enabled = Notice::TwoFactorEnabled;
        notices.send(cx, uow, user, enabled).await?;
    }
    if matches!(proof, SecondFactorCode::RecoveryCode(_)) {
        let left = stored.recovery_codes.len();
        let details = json!({ "left": left });
        record(cx, uow, "two_factor.recovery_code_used", user, details).await?;
        notices
            .send(cx, uow, user, Notice::RecoveryCodeUsed(left))
            .await?;
    }
    Ok(Verification::Accepted(()))
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
    audited::record_event(cx, uow, event).await
}
