//! Set-up and removal of the second factor, by people who have just proved who they are.

use crate::access::{AuditEvent, EnrolledFactors, SessionScope, audited, ensure_fresh, unowned};
use crate::iam::{TotpSecret, TwoFactor, User, new_recovery_codes, recovery_hashes};
use crate::kernel::{Cipher, Code, Context, Error, Result, Stored, secret_token};
use crate::port::UnitOfWork;
use crate::use_case::iam::session;
use crate::use_case::iam::user::{
    PasswordCredential, ensure_confirmed, person_of_password, person_of_session,
};
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::verification::mail::Notice;

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
