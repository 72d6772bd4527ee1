//! Showing the second factor. Wrong codes are counted in the unit of work that looks at them, so many at once are counted
//! too; what was right is used up in it, so it counts once.

use serde_json::json;

use crate::access::{
    AuditEvent, EnrolledFactors, PublicScope, SessionScope, audited, ensure_fresh, unaudited,
    unowned,
};
use crate::iam::{ProofMethod, TotpCode, TotpSecret, TwoFactor, User};
use crate::kernel::{Code, Context, Error, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, SignedIn};
use crate::use_case::iam::user::{ensure_confirmed, person_of_session};
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::verification::mail::Notice;

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
