//! Step-up authentication: a fresh proof of identity for changes that a stolen session alone must not make.

use serde_json::json;

use super::records::unowned_records;
use super::signed_in::PersonScope;
use crate::iam::{
    Account, AccountQuery, Passkey, PasskeyQuery, ProofMethod, ProofStrength, Session,
    SessionValidity, TwoFactor,
};
use crate::kernel::{Caller, Code, Context, Error, Result, UserId};
use crate::port::UnitOfWork;

/// Checks that the caller has proved their identity within the last 10 minutes. A user with an enrolled second factor
/// must have used it. Call this after the scope is created, so that the error reveals nothing about records that the
/// caller may not see. Marks the unit of work; see
/// [`Effects::needs_fresh_proof`](crate::kernel::Effects::needs_fresh_proof).
///
/// # Errors
/// - `UNAUTHORIZED` if the session has ended.
/// - `STEP_UP_REQUIRED` if the proof is missing or too old; `details.methods` lists the accepted proofs.
pub async fn ensure_fresh(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<()> {
    uow.effects().mark_fresh_proof();
    let Some(methods) = missing_proof(cx, uow).await? else {
        return Ok(());
    };
    Err(Error::Refused {
        code: Code::StepUpRequired,
        message: "This operation needs a recent proof of your identity. Confirm your identity and try again.".to_owned(),
        details: json!({ "methods": methods }),
    })
}

/// Returns the proofs of which the caller must give one; `None` if they gave one within the last 10 minutes. Services
/// and API keys authenticate with every request and need none. A person without a session always needs one, even if a
/// service calls for them.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended.
pub async fn missing_proof(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<Vec<ProofMethod>>> {
    let Caller::User {
        user_id,
        session_id,
        ..
    } = &*cx.caller
    else {
        return Ok(None);
    };
    let Some(session) = session_id else {
        return proof_methods_of_user(uow, user_id).await.map(Some);
    };
    let now = uow.now().await?;
    let session = unowned_records::<Session>(uow).find(session).await?;
    let session = session.filter(|session| session.user_id == *user_id);
    let session = session.ok_or(Error::Unauthorized)?;
    if session.validity(now) == SessionValidity::Expired {
        return Err(Error::Unauthorized);
    }
    let factors = EnrolledFactors::of(uow, user_id).await?;
    if session.is_fresh(factors.required_strength(), now) {
        return Ok(None);
    }
    proof_methods_with_factors(uow, user_id, factors)
        .await
        .map(Some)
}

/// Returns the ways in which a person can prove their identity again.
///
/// # Errors
/// Only those of the store.
pub async fn proof_methods(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<ProofMethod>> {
    proof_methods_of_user(uow, scope.user_id()).await
}

/// The second factors that a user has enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnrolledFactors {
    /// Whether the user has a confirmed authenticator app, whose codes sign-in requires.
    pub(crate) totp: bool,
    /// Whether the user has unused recovery codes.
    pub(crate) recovery_codes: bool,
    /// Whether the user has at least one passkey.
    pub(crate) passkey: bool,
}

impl EnrolledFactors {
    /// Reads the factors of a user.
    ///
    /// # Errors
    /// Only those of the store.
    pub(crate) async fn of(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<Self> {
        let two_factor = unowned_records::<TwoFactor>(uow).find(user).await?;
        let two_factor = two_factor.filter(|two_factor| two_factor.is_confirmed());
        let passkeys = PasskeyQuery::OfUser(user.clone());
        let passkey = unowned_records::<Passkey>(uow).first(&passkeys).await?;
        Ok(Self {
            totp: two_factor.is_some(),
            recovery_codes: two_factor.is_some_and(|found| !found.recovery_codes.is_empty()),
            passkey: passkey.is_some(),
        })
    }

    /// Returns whether the user has at least one second factor. Recovery codes alone are not a factor.
    pub(crate) const fn has_any(self) -> bool {
        self.totp || self.passkey
    }

    /// Returns the proofs that are possible with these factors.
    pub(crate) fn methods(self) -> Vec<ProofMethod> {
        let candidates = [
            (self.totp, ProofMethod::Totp),
            (self.recovery_codes, ProofMethod::BackupCode),
            (self.passkey, ProofMethod::Passkey),
        ];
        let enrolled = candidates
            .into_iter()
            .filter(|(is_enrolled, _)| *is_enrolled);
        enrolled.map(|(_, method)| method).collect()
    }

    const fn required_strength(self) -> ProofStrength {
        if self.has_any() {
            ProofStrength::SecondFactor
        } else {
            ProofStrength::SingleFactor
        }
    }
}

async fn proof_methods_of_user(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Vec<ProofMethod>> {
    let factors = EnrolledFactors::of(uow, user).await?;
    proof_methods_with_factors(uow, user, factors).await
}

async fn proof_methods_with_factors(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    factors: EnrolledFactors,
) -> Result<Vec<ProofMethod>> {
    if factors.has_any() {
        return Ok(factors.methods());
    }
    let has_password = has_password(uow, user).await?;
    Ok(vec![if has_password {
        ProofMethod::Password
    } else {
        ProofMethod::SignIn
    }])
}

async fn has_password(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<bool> {
    let password = AccountQuery::PasswordOf(user.clone());
    let account = unowned_records::<Account>(uow).first(&password).await?;
    Ok(account.is_some_and(|account| account.password_hash.is_some()))
}
