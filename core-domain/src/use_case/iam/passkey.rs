//! Registers, renames and removes passkeys, and uses them to sign in or as a fresh proof of identity.

use serde_json::{Value, json};

use super::eviction::evict;
use super::session;
use super::session::SignedIn;
use super::two_factor::Verification;
use super::user::{ensure_confirmed, person_of_session};
use super::verification::Notice;
use super::verification::Notices;
use crate::access::{
    AuditEvent, PersonScope, PublicScope, SessionScope, all_unowned, audited, ensure_below,
    ensure_fresh, unaudited, unowned_records,
};
use crate::iam::{
    MAX_PASSKEY_REGISTRATIONS, PASSKEY_CHALLENGE_LIFETIME, Passkey, PasskeyChallenge,
    PasskeyChallengeQuery, PasskeyDeviceType, PasskeyQuery, ProofMethod, Session, TokenHash, User,
};
use crate::kernel::{
    Code, Context, Error, JsonText, Line, PasskeyId, Result, StoreError, Stored, TOKEN_LENGTH,
    UserId, secret_token,
};
use crate::port::{
    NewPasskey, PasskeyCeremony, PasskeyError, PasskeyUser, Passkeys, PresentedPasskey, UnitOfWork,
    UsedPasskey,
};
use crate::use_case::shared::remove_first;

/// A started WebAuthn ceremony.
#[derive(Clone, PartialEq)]
pub struct StartedCeremony {
    /// The options for the browser's WebAuthn call.
    pub options: Value,
    /// The token of the challenge, which is returned only once.
    pub token: String,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for StartedCeremony {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Stores the state that the response is verified against. `user_id` is the user who registers a passkey; `None` for a
/// sign-in.
async fn store_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user_id: Option<UserId>,
    ceremony: PasskeyCeremony,
) -> Result<StartedCeremony> {
    if let Some(user) = &user_id {
        evict_registrations(uow, user).await?;
    }
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let challenge = PasskeyChallenge {
        token_hash: TokenHash::of(&token),
        user_id,
        state: ceremony.state,
        created_at: now,
        expires_at: now.plus(PASSKEY_CHALLENGE_LIFETIME),
    };
    unaudited::insert(uow, challenge).await?;
    Ok(StartedCeremony {
        options: ceremony.options,
        token,
    })
}

/// Limits the number of pending registrations of a user; the oldest ones are removed.
async fn evict_registrations(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<()> {
    let of_user = PasskeyChallengeQuery::OfUser(user.clone());
    let waiting = unowned_records::<PasskeyChallenge>(uow);
    let waiting = waiting
        .list(&of_user, 2 * MAX_PASSKEY_REGISTRATIONS)
        .await?;
    let now = uow.now().await?;
    evict(uow, &waiting, MAX_PASSKEY_REGISTRATIONS, |challenge| {
        now >= challenge.expires_at
    })
    .await
}

/// Finds and removes the challenge with this token. `user` must be the user of the challenge; `None` for a sign-in
/// challenge.
async fn consume_challenge(
    uow: &mut dyn UnitOfWork,
    token: &str,
    user: Option<&UserId>,
) -> Result<JsonText> {
    let hash = TokenHash::of(token);
    let found = unowned_records::<PasskeyChallenge>(uow).find(&hash).await?;
    let now = uow.now().await?;
    let found = found.filter(|found| now < found.expires_at && found.user_id.as_ref() == user);
    let found =
        found.ok_or_else(|| Error::refused(Code::ChallengeNotFound, "Challenge not found"))?;
    unaudited::remove(uow, &found).await?;
    Ok(found.into_inner().state)
}

/// Converts a failure of the passkey library to an internal error.
fn internal_error(error: &PasskeyError) -> Error {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    Error::Internal(text)
}

/// Removes at most `limit` expired challenges, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_passkey_challenges(
    uow: &mut dyn UnitOfWork,
    limit: u32,
) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<PasskeyChallenge>(uow, &PasskeyChallengeQuery::ExpiredAt(now), limit).await
}

/// Returns the passkeys of a user, oldest first.
async fn of_user(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<Vec<Stored<Passkey>>> {
    let of_user = PasskeyQuery::OfUser(user.clone());
    all_unowned::<Passkey>(uow, of_user).await
}

/// Returns the person's passkeys, oldest first. A limit keeps the list short.
///
/// # Errors
/// Only those of the store.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<Passkey>>> {
    of_user(uow, scope.user_id()).await
}

/// Returns a passkey of the person. A passkey of another user is reported as missing.
async fn find_own(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
) -> Result<Stored<Passkey>> {
    let found = unowned_records::<Passkey>(uow).find(id).await?;
    let found = found.filter(|found| found.user_id == *scope.user_id());
    found.ok_or_else(|| Error::refused(Code::PasskeyNotFound, "Passkey not found"))
}

/// Renames a passkey of the person.
///
/// # Errors
/// `PASSKEY_NOT_FOUND` if the person has no passkey with this id.
pub async fn rename(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
    name: Line<1, 255>,
) -> Result<Stored<Passkey>> {
    let seen = find_own(scope, uow, id).await?;
    let mut next = seen.edit();
    next.name = Some(name);
    audited::replace(cx, scope, uow, &seen, next, "passkey.renamed").await
}

/// Removes a passkey of the person and notifies them by mail. The passkey can no longer sign in.
///
/// # Errors
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
/// - `PASSKEY_NOT_FOUND` if the person has no passkey with this id.
pub async fn remove(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &PasskeyId,
    notices: Notices<'_>,
) -> Result<()> {
    ensure_fresh(cx, uow).await?;
    let seen = find_own(scope, uow, id).await?;
    audited::remove(cx, scope, uow, &seen, "passkey.removed").await?;
    let owner = unowned_records::<User>(uow).get(scope.user_id()).await?;
    notices.send(cx, uow, &owner, Notice::PasskeyRemoved).await
}

/// The response of an authenticator to a registration.
#[derive(Clone)]
pub struct Registration<'a> {
    /// The token of the challenge.
    pub token: &'a str,
    /// The response, as the browser sent it.
    pub response: &'a Value,
    /// The display name for the passkey.
    pub name: Option<Line<1, 255>>,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for Registration<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Starts the registration of a passkey for the person of the session.
///
/// # Errors
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
/// - `EMAIL_NOT_VERIFIED` if the person's address is not verified.
/// - `LIMIT_REACHED` if the person has the maximum number of passkeys.
pub async fn begin_registration(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
) -> Result<StartedCeremony> {
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
    let ceremony = ceremony.map_err(|error| internal_error(&error))?;
    store_challenge(cx, uow, Some(user.id.clone()), ceremony).await
}

fn ensure_room_for_passkey(cx: &Context, known: &[Stored<Passkey>]) -> Result<()> {
    let count = u64::try_from(known.len()).unwrap_or(u64::MAX);
    let limit = cx.limits.passkeys_per_user;
    let message = "You already have the maximum number of passkeys. Remove one first.";
    ensure_below(count, limit, message)
}

/// Stores the passkey that an authenticator has created, and notifies the person by mail. A refusal is audited, so the
/// unit of work must be committed in both cases.
///
/// # Errors
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
/// - `EMAIL_NOT_VERIFIED` if the person's address is not verified.
/// - `CHALLENGE_NOT_FOUND` if no registration of the person is pending under this token.
/// - `LIMIT_REACHED` if the person has the maximum number of passkeys.
/// - `PREVIOUSLY_REGISTERED` if any user has registered this passkey.
pub async fn complete_registration(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
    notices: Notices<'_>,
    input: &Registration<'_>,
) -> Result<Verification<Stored<Passkey>>> {
    ensure_fresh(cx, uow).await?;
    let user = person_of_session(scope, uow).await?;
    ensure_confirmed(&user)?;
    let state = consume_challenge(uow, input.token, Some(&user.id)).await?;
    let made = match passkeys.complete_registration(&state, input.response) {
        Ok(made) => made,
        Err(error @ PasskeyError::Failed(_)) => return Err(internal_error(&error)),
        Err(_) => {
            return Ok(Verification::Refused(
                record_failed_registration(cx, uow, &user).await?,
            ));
        }
    };
    ensure_room_for_passkey(cx, &of_user(uow, &user.id).await?)?;
    let with_credential = PasskeyQuery::WithCredential(made.credential_id.clone());
    if unowned_records::<Passkey>(uow)
        .first(&with_credential)
        .await?
        .is_some()
    {
        return Ok(Verification::Refused(previously_registered()));
    }
    let passkey = passkey(cx, uow, &user, made, input.name.clone()).await?;
    let kept = audited::insert(
        &cx.without_conditions(),
        scope,
        uow,
        passkey,
        "passkey.added",
    )
    .await;
    let kept = kept.map_err(|error| match error {
        // A concurrent request registered the same passkey.
        Error::Store(StoreError::Conflict { .. }) => previously_registered(),
        error => error,
    })?;
    // The authenticator has just verified the person.
    session::record_proof(scope, uow, ProofMethod::Passkey).await?;
    notices.send(cx, uow, &user, Notice::PasskeyAdded).await?;
    Ok(Verification::Accepted(kept))
}

fn previously_registered() -> Error {
    Error::refused(Code::PreviouslyRegistered, "Previously registered")
}

async fn record_failed_registration(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
) -> Result<Error> {
    let event = AuditEvent {
        action: "passkey.registration_failed",
        entity_id: user.id.to_string(),
        details: Some(json!({ "reason": "refused" })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await?;
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
            PasskeyDeviceType::MultiDevice
        } else {
            PasskeyDeviceType::SingleDevice
        },
        backed_up: made.backed_up,
        transports: made.transports.join(","),
        created_at: now,
        updated_at: now,
        last_used_at: None,
    })
}

/// The method that audit entries of passkey sign-ins and proofs name.
const METHOD: ProofMethod = ProofMethod::Passkey;

/// The response of an authenticator to an authentication.
#[derive(Clone, Copy)]
pub struct PasskeyAssertion<'a> {
    /// The token of the challenge.
    pub token: &'a str,
    /// The response, as the browser sent it.
    pub response: &'a Value,
    /// The session of the request, if there is one.
    pub session: Option<&'a SessionScope>,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for PasskeyAssertion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Showing")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The outcome of a successful passkey authentication.
#[derive(Clone, Debug, PartialEq)]
pub enum PasskeyOutcome {
    /// A new session was created.
    SignedIn(SignedIn),
    /// The session of the request continues, with a fresh proof of its user's identity.
    Reauthenticated {
        /// The user of the session.
        user: Stored<User>,
        /// The session of the request.
        session: Stored<Session>,
    },
}

/// Starts an authentication that any passkey can complete.
///
/// # Errors
/// Only those of the store.
pub async fn begin_authentication(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
) -> Result<StartedCeremony> {
    let ceremony = passkeys.begin_authentication();
    let ceremony = ceremony.map_err(|error| internal_error(&error))?;
    store_challenge(cx, uow, None, ceremony).await
}

/// Completes an authentication. If the session of the request belongs to the passkey's owner, the passkey is a fresh
/// proof of identity. Otherwise a new session is created. A refusal is audited, so the unit of work must be committed
/// in both cases.
///
/// # Errors
/// `CHALLENGE_NOT_FOUND` if no authentication is pending under this token.
pub async fn complete_authentication(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
    input: PasskeyAssertion<'_>,
) -> Result<Verification<PasskeyOutcome>> {
    let state = consume_challenge(uow, input.token, None).await?;
    let Some(seen) = find(uow, passkeys, input.response).await? else {
        record_failed_authentication(cx, uow, None, "passkey.failed", "unknown").await?;
        let unknown = Error::refused(Code::PasskeyNotFound, "Passkey not found");
        return Ok(Verification::Refused(unknown));
    };
    let shown = PresentedPasskey {
        user_id: &seen.user_id,
        credential: &seen.credential,
    };
    let (action, reason) = match passkeys.complete_authentication(&state, input.response, &shown) {
        Ok(used) => return accept(cx, scope, uow, &seen, used, input.session).await,
        Err(error @ PasskeyError::Failed(_)) => return Err(internal_error(&error)),
        Err(PasskeyError::CounterNotIncreased) => ("passkey.counter_went_back", "counter"),
        Err(_) => ("passkey.failed", "refused"),
    };
    let refused = record_failed_authentication(cx, uow, Some(&seen), action, reason).await?;
    Ok(Verification::Refused(refused))
}

async fn find(
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
    response: &Value,
) -> Result<Option<Stored<Passkey>>> {
    let Ok(id) = passkeys.credential_id(response) else {
        return Ok(None);
    };
    let with_credential = PasskeyQuery::WithCredential(id);
    unowned_records::<Passkey>(uow)
        .first(&with_credential)
        .await
}

async fn accept(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Passkey>,
    used: UsedPasskey,
    session: Option<&SessionScope>,
) -> Result<Verification<PasskeyOutcome>> {
    let user = unowned_records::<User>(uow).find(&seen.user_id).await?;
    let Some(user) = user else {
        let refused =
            record_failed_authentication(cx, uow, Some(seen), "passkey.failed", "no user").await?;
        return Ok(Verification::Refused(refused));
    };
    if let Err(banned) = session::ensure_not_banned(&user) {
        record_failed_authentication(cx, uow, Some(seen), "passkey.failed", "banned").await?;
        return Ok(Verification::Refused(banned));
    }
    update_after_use(&session::as_user(cx, &user), scope, uow, seen, used).await?;
    if let Some(own) = own_session(uow, &user, session).await? {
        session::reauthenticate(cx, own, uow, METHOD).await?;
        let session = unowned_records::<Session>(uow)
            .get(own.session_id())
            .await?;
        return Ok(Verification::Accepted(PasskeyOutcome::Reauthenticated {
            user,
            session,
        }));
    }
    let now = uow.now().await?;
    let signed_in = session::create(cx, uow, user, true, Some(now)).await?;
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({
            "method": METHOD,
            "passkeyId": seen.id,
            "sessionId": signed_in.session.id,
        })),
        ..AuditEvent::default()
    };
    audited::record_event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(Verification::Accepted(PasskeyOutcome::SignedIn(signed_in)))
}

/// Returns the session of the request if it belongs to this user.
async fn own_session<'s>(
    uow: &mut dyn UnitOfWork,
    user: &User,
    session: Option<&'s SessionScope>,
) -> Result<Option<&'s SessionScope>> {
    let Some(scope) = session else {
        return Ok(None);
    };
    let found = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let is_own = found.is_some_and(|found| found.user_id == user.id);
    Ok(Some(scope).filter(|_| is_own))
}

async fn update_after_use(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Passkey>,
    used: UsedPasskey,
) -> Result<()> {
    let mut next = seen.edit();
    next.credential = used.credential;
    next.counter = i64::from(used.counter);
    next.backed_up = used.backed_up;
    next.last_used_at = Some(uow.now().await?);
    audited::replace(
        &cx.without_conditions(),
        scope,
        uow,
        seen,
        next,
        "passkey.used",
    )
    .await?;
    Ok(())
}

/// Records a failed authentication and returns the same error for every reason. The audit entry does not name the owner
/// as actor, because a refused passkey does not authenticate them.
async fn record_failed_authentication(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    seen: Option<&Stored<Passkey>>,
    action: &'static str,
    reason: &'static str,
) -> Result<Error> {
    let details = json!({ "reason": reason, "userId": seen.map(|seen| &seen.user_id) });
    let event = AuditEvent {
        action,
        entity_id: seen.map_or_else(|| "unknown".to_owned(), |seen| seen.id.to_string()),
        details: Some(details),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await?;
    let message = "Authentication failed";
    Ok(Error::refused(Code::AuthenticationFailed, message))
}
