//! Showing a passkey: that signs in, also somebody who has a second factor, as it is possession and verification at once.
//! Within a session of its owner it is a fresh proof.

use serde_json::{Value, json};

use super::challenge::{Begun, consume_challenge, internal, store_challenge};
use crate::access::{AuditEvent, PublicScope, SessionScope, audited, unowned};
use crate::iam::{Passkey, PasskeyQuery, ProofMethod, Session, User};
use crate::kernel::{Code, Context, Error, Result, Stored};
use crate::port::{PasskeyError, Passkeys, ShownPasskey, UnitOfWork, UsedPasskey};
use crate::use_case::iam::session::{self, SignedIn};
use crate::use_case::iam::two_factor::Verified;

/// What sign-ins and proofs by a passkey are written down as.
const METHOD: ProofMethod = ProofMethod::Passkey;

/// The answer of an authenticator that was to show a passkey.
#[derive(Clone, Copy)]
pub struct Showing<'a> {
    /// What the challenge is recognised by.
    pub token: &'a str,
    /// The answer, as the browser wrote it.
    pub response: &'a Value,
    /// The session of the request, if it has one.
    pub session: Option<&'a SessionScope>,
}

// The token stays out of logs.
impl std::fmt::Debug for Showing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Showing")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// What a passkey that was right led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A new session.
    SignedIn(SignedIn),
    /// The session of the request goes on; its user has proved who they are.
    Reauthenticated {
        /// Who.
        user: Stored<User>,
        /// The session.
        session: Stored<Session>,
    },
}

/// Begins to ask for a passkey, whosoever it is.
///
/// # Errors
/// When the store failed.
pub async fn begin_authentication(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
) -> Result<Begun> {
    let ceremony = passkeys.begin_authentication();
    let ceremony = ceremony.map_err(|error| internal(&error))?;
    store_challenge(cx, uow, None, ceremony).await
}

/// Signs in whoever shows a passkey; whoever is signed in already as its owner has given a fresh proof. A refusal is written
/// down as well: commit the unit of work whichever it is.
///
/// # Errors
/// `CHALLENGE_NOT_FOUND`.
pub async fn complete_authentication(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    passkeys: &dyn Passkeys,
    input: Showing<'_>,
) -> Result<Verified<Shown>> {
    let state = consume_challenge(uow, input.token, None).await?;
    let Some(seen) = find(uow, passkeys, input.response).await? else {
        failed(cx, uow, None, "passkey.failed", "unknown").await?;
        let unknown = Error::refused(Code::PasskeyNotFound, "Passkey not found");
        return Ok(Verified::Refused(unknown));
    };
    let shown = ShownPasskey {
        user_id: &seen.user_id,
        credential: &seen.credential,
    };
    let (action, reason) = match passkeys.complete_authentication(&state, input.response, &shown) {
        Ok(used) => return accept(cx, scope, uow, &seen, used, input.session).await,
        Err(error @ PasskeyError::Failed(_)) => return Err(internal(&error)),
        Err(PasskeyError::CounterWentBack) => ("passkey.counter_went_back", "counter"),
        Err(_) => ("passkey.failed", "refused"),
    };
    let refused = failed(cx, uow, Some(&seen), action, reason).await?;
    Ok(Verified::Refused(refused))
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
    unowned::<Passkey>(uow).first(&with_credential).await
}

async fn accept(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Passkey>,
    used: UsedPasskey,
    session: Option<&SessionScope>,
) -> Result<Verified<Shown>> {
    let user = unowned::<User>(uow).find(&seen.user_id).await?;
    let Some(user) = user else {
        let refused = failed(cx, uow, Some(seen), "passkey.failed", "no user").await?;
        return Ok(Verified::Refused(refused));
    };
    if let Err(banned) = session::ensure_not_banned(&user) {
        failed(cx, uow, Some(seen), "passkey.failed", "banned").await?;
        return Ok(Verified::Refused(banned));
    }
    keep_use(&session::as_user(cx, &user), scope, uow, seen, used).await?;
    if let Some(own) = own_session(uow, &user, session).await? {
        session::reauthenticate(cx, own, uow, METHOD).await?;
        let session = unowned::<Session>(uow).get(own.session_id()).await?;
        return Ok(Verified::Accepted(Shown::Reauthenticated { user, session }));
    }
    let now = uow.now().await?;
    let signed_in = session::begin(cx, uow, user, true, Some(now)).await?;
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
    audited::event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(Verified::Accepted(Shown::SignedIn(signed_in)))
}

/// The session of the request, if it is one of this user.
async fn own_session<'s>(
    uow: &mut dyn UnitOfWork,
    user: &User,
    session: Option<&'s SessionScope>,
) -> Result<Option<&'s SessionScope>> {
    let Some(scope) = session else {
        return Ok(None);
    };
    let found = unowned::<Session>(uow).find(scope.session_id()).await?;
    let is_own = found.is_some_and(|found| found.user_id == user.id);
    Ok(Some(scope).filter(|_| is_own))
}

async fn keep_use(
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
    audited::replace(&cx.consequence(), scope, uow, seen, next, "passkey.used").await?;
    Ok(())
}

/// Writes a refusal down, and gives the one that all have in common. Who shows a passkey that is refused is not known to be
/// its owner.
async fn failed(
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
    audited::event(cx, uow, event).await?;
    let message = "Authentication failed";
    Ok(Error::refused(Code::AuthenticationFailed, message))
}
