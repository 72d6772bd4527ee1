//! Registering a passkey, by whoever has just proved who they are.

use serde_json::{Value, json};

use super::challenge::{Begun, consume_challenge, internal, store_challenge};
use super::own::of_user;
use crate::access::{AuditEvent, SessionScope, audited, ensure_below, ensure_fresh, unowned};
use crate::iam::{Passkey, PasskeyDevice, PasskeyQuery, ProofMethod, User};
use crate::kernel::{Code, Context, Error, Line, PasskeyId, Result, StoreError, Stored};
use crate::port::{NewPasskey, PasskeyError, PasskeyUser, Passkeys, UnitOfWork};
use crate::use_case::iam::session;
use crate::use_case::iam::two_factor::Verified;
use crate::use_case::iam::user::{ensure_confirmed, person_of_session};
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::verification::mail::Notice;

/// The answer of an authenticator that was to make a passkey.
#[derive(Clone)]
pub struct Registration<'a> {
    /// What the challenge is recognised by.
    pub token: &'a str,
    /// The answer, as the browser wrote it.
    pub response: &'a Value,
    /// How the person calls the passkey.
    pub name: Option<Line<1, 255>>,
}

// The token stays out of logs.
impl std::fmt::Debug for Registration<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Begins to register a passkey for the person of the session.
///
/// # Errors
/// `STEP_UP_REQUIRED` without a fresh proof of who calls; `EMAIL_NOT_VERIFIED`; `LIMIT_REACHED`.
pub async fn begin_registration(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
) -> Result<Begun> {
    ensure_fresh(cx, uow).await?;
    let user = person_of_session(scope, uow).await?;
    ensure_confirmed(&user)?;
    let known = of_user(uow, &user.id).await?;
    ensure_room_for_passkey(cx, &known)?;
    let known: Vec<String> = known.iter().map(|k| k.credential_id.clone()).collect();
    let email = user.email.as_str();
    let name = Some(user.name.as_str()).filter(|name| !name.is_empty());
    let shown = PasskeyUser {
        id: &user.id,
        name: email,
        display_name: name.unwrap_or(email),
    };
    let ceremony = passkeys.begin_registration(&shown, &known);
    let ceremony = ceremony.map_err(|error| internal(&error))?;
    store_challenge(cx, uow, Some(user.id.clone()), ceremony).await
}

fn ensure_room_for_passkey(cx: &Context, known: &[Stored<Passkey>]) -> Result<()> {
    let count = u64::try_from(known.len()).unwrap_or(u64::MAX);
    let limit = cx.limits.passkeys_per_user;
    let message = "You have as many passkeys as one person may have. Remove one first.";
    ensure_below(count, limit, message)
}

/// Keeps the passkey that an authenticator has made. A refusal is written down as well: commit the unit of work whichever it
/// is.
///
/// # Errors
/// `STEP_UP_REQUIRED` without a fresh proof of who calls; `EMAIL_NOT_VERIFIED`; `CHALLENGE_NOT_FOUND`; `LIMIT_REACHED`;
/// `PREVIOUSLY_REGISTERED` when the passkey is known, whosoever it is.
pub async fn complete_registration(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
    notices: Notices<'_>,
    input: &Registration<'_>,
) -> Result<Verified<Stored<Passkey>>> {
    ensure_fresh(cx, uow).await?;
    let user = person_of_session(scope, uow).await?;
    ensure_confirmed(&user)?;
    let state = consume_challenge(uow, input.token, Some(&user.id)).await?;
    let made = match passkeys.complete_registration(&state, input.response) {
        Ok(made) => made,
        Err(error @ PasskeyError::Failed(_)) => return Err(internal(&error)),
        Err(_) => {
            return Ok(Verified::Refused(refused(cx, uow, &user).await?));
        }
    };
    ensure_room_for_passkey(cx, &of_user(uow, &user.id).await?)?;
    let with_credential = PasskeyQuery::WithCredential(made.credential_id.clone());
    if unowned::<Passkey>(uow)
        .first(&with_credential)
        .await?
        .is_some()
    {
        return Ok(Verified::Refused(previously_registered()));
    }
    let passkey = passkey(cx, uow, &user, made, input.name.clone()).await?;
    let kept = audited::insert(&cx.consequence(), scope, uow, passkey, "passkey.added").await;
    let kept = kept.map_err(|error| match error {
        // Somebody was faster.
        Error::Store(StoreError::Conflict { .. }) => previously_registered(),
        error => error,
    })?;
    // The authenticator has just verified the person.
    session::note_proof(scope, uow, ProofMethod::Passkey).await?;
    notices.tell(cx, uow, &user, Notice::PasskeyAdded).await?;
    Ok(Verified::Accepted(kept))
}

fn previously_registered() -> Error {
    Error::refused(Code::PreviouslyRegistered, "Previously registered")
}

async fn refused(cx: &Context, uow: &mut dyn UnitOfWork, user: &User) -> Result<Error> {
    let event = AuditEvent {
        action: "passkey.registration_failed",
        entity_id: user.id.to_string(),
        details: Some(json!({ "reason": "refused" })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await?;
    let message = "Failed to verify registration";
    Ok(Error::refused(Code::FailedToVerifyRegistration, message))
}

async fn passkey(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
    made: NewPasskey,
    name: Option<Line<1, 255>>,
) -> Result<Passkey> {
    let now = uow.now().await?;
    Ok(Passkey {
        id: PasskeyId::generate(now, cx.entropy.as_ref()),
        user_id: user.id.clone(),
        name,
        credential_id: made.credential_id,
        credential: made.credential,
        counter: i64::from(made.counter),
        device_type: if made.backup_eligible {
            PasskeyDevice::MultiDevice
        } else {
            PasskeyDevice::SingleDevice
        },
        backed_up: made.backed_up,
        transports: made.transports.join(","),
        created_at: now,
        updated_at: now,
        last_used_at: None,
    })
}
