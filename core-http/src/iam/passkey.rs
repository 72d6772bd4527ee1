//! Passkeys, as better-auth's plugin has them: registered and removed by whoever has just proved who they are, shown to sign
//! in or, within a session, as a fresh proof.

use std::sync::Arc;

use core_domain::access::{PersonScope, PublicScope, SessionScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{PASSKEY_CHALLENGE_LIFETIME, Passkey, User};
use core_domain::kernel::{Code, Error, Line, PasskeyId, Result};
use core_domain::port::{UnitOfWork, transact};
use core_domain::use_case::iam::passkey::{self, Begun, Registration, Showing, Shown};
use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bounds::MAX_PASSKEY_RESPONSE;
use super::config::Iam;
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use super::session::AuthSession;
use super::status::Status;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Row, get, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let strict = |row: Row| style(row).rate(RateClass::Strict);
    vec![
        strict(get(
            "/api/auth/passkey/generate-register-options",
            "generatePasskeyRegistrationOptions",
        ))
        .summary("Begins to register a passkey: what the browser hands to the authenticator.")
        .refuses(&[
            Code::StepUpRequired,
            Code::EmailNotVerified,
            Code::LimitReached,
            Code::PasskeysDisabled,
        ])
        .plain(with(iam, begin_registration)),
        strict(post(
            "/api/auth/passkey/verify-registration",
            "verifyPasskeyRegistration",
        ))
        .summary("Keeps the passkey that the authenticator has made.")
        .refuses(&[
            Code::StepUpRequired,
            Code::EmailNotVerified,
            Code::ChallengeNotFound,
            Code::FailedToVerifyRegistration,
            Code::PreviouslyRegistered,
            Code::LimitReached,
            Code::PasskeysDisabled,
        ])
        .plain(with(iam, complete_registration)),
        strict(get(
            "/api/auth/passkey/generate-authenticate-options",
            "generatePasskeyAuthenticationOptions",
        ))
        .summary("Begins to ask for a passkey, whosoever it is.")
        .refuses(&[Code::PasskeysDisabled])
        .plain(with(iam, begin_authentication)),
        strict(post(
            "/api/auth/passkey/verify-authentication",
            "verifyPasskeyAuthentication",
        ))
        .summary("Signs in by a passkey; within a session of its owner it is a fresh proof.")
        .refuses(&[
            Code::ChallengeNotFound,
            Code::AuthenticationFailed,
            Code::BannedUser,
            Code::PasskeysDisabled,
        ])
        .refuses_as(Code::PasskeyNotFound, StatusCode::UNAUTHORIZED)
        .plain(with(iam, complete_authentication)),
        style(get("/api/auth/passkey/list-user-passkeys", "listPasskeys"))
            .summary("The caller's passkeys.")
            .reads(list),
        style(post("/api/auth/passkey/update-passkey", "updatePasskey"))
            .summary("Calls one of the caller's passkeys otherwise.")
            .refuses(&[Code::PasskeyNotFound])
            .writes(rename),
        style(post("/api/auth/passkey/delete-passkey", "deletePasskey"))
            .summary("Removes one of the caller's passkeys.")
            .refuses(&[Code::PasskeyNotFound, Code::StepUpRequired])
            .writes(with(iam, remove)),
    ]
}

/// Options for `navigator.credentials`, with binary values in base64url; their challenge is good for five minutes, once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct PasskeyOptions(Value);

/// Gives the client the options, and what the challenge is recognised by.
fn begun(iam: &Iam, begun: Begun) -> Output<PasskeyOptions> {
    let age = Some(PASSKEY_CHALLENGE_LIFETIME.as_secs());
    let signed = iam.signer.signed(&begun.token);
    let cookie = iam.names.set(iam.names.passkey(), &signed, age);
    let output = no_store(Output::new(PasskeyOptions(begun.options)));
    with_header(output, header::SET_COOKIE, &cookie)
}

/// Takes away what the challenge was recognised by.
fn used<T>(iam: &Iam, output: Output<T>) -> Output<T> {
    let used = iam.names.set(iam.names.passkey(), "", Some(0));
    no_store(with_header(output, header::SET_COOKIE, &used))
}

/// The token of the request's challenge.
fn token(cx: &Cx, iam: &Iam) -> Result<String> {
    let token = iam.passkey_token(&cx.headers);
    token.ok_or_else(|| Error::refused(Code::ChallengeNotFound, "Challenge not found"))
}

async fn begin_registration(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    _: Input,
) -> Result<Output<PasskeyOptions>> {
    let passkeys = iam.passkeys()?;
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(passkey::begin_registration(cx, &scope, uow, passkeys))
    })
    .await?;
    Ok(begun(&iam, done))
}

/// The body with a new passkey.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyRegistration {
    /// What `navigator.credentials.create` gave, as JSON.
    #[schemars(extend("x-maxBytes" = MAX_PASSKEY_RESPONSE))]
    response: Map<String, Value>,
    /// How the person calls the passkey.
    name: Option<Line<1, 255>>,
}

async fn complete_registration(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), VerifyRegistration>,
) -> Result<Output<Passkey>> {
    let passkeys = iam.passkeys()?;
    let (token, response) = (token(cx, &iam)?, Value::Object(input.body.response));
    let registration = &Registration {
        token: &token,
        response: &response,
        name: input.body.name,
    };
    let notices = iam.notices(cx);
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(passkey::complete_registration(
            cx,
            &scope,
            uow,
            passkeys,
            notices,
            registration,
        ))
    })
    .await?;
    let kept = done.into_result()?;
    Ok(used(&iam, Output::new(kept.into_inner())))
}

async fn begin_authentication(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    _: Input,
) -> Result<Output<PasskeyOptions>> {
    let passkeys = iam.passkeys()?;
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(passkey::begin_authentication(cx, &scope, uow, passkeys))
    })
    .await?;
    Ok(begun(&iam, done))
}

/// The body with a passkey that is shown.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyAuthentication {
    /// What `navigator.credentials.get` gave, as JSON.
    #[schemars(extend("x-maxBytes" = MAX_PASSKEY_RESPONSE))]
    response: Map<String, Value>,
}

/// The session of whoever showed a passkey: a new one, or that of the request.
#[derive(Clone, Serialize, JsonSchema)]
struct PasskeyShown {
    session: AuthSession,
    user: User,
}

async fn complete_authentication(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), VerifyAuthentication>,
) -> Result<Output<PasskeyShown>> {
    let passkeys = iam.passkeys()?;
    let (token, response) = (token(cx, &iam)?, Value::Object(input.body.response));
    let session = authorize_session(cx).ok();
    let showing = Showing {
        token: &token,
        response: &response,
        session: session.as_ref(),
    };
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(passkey::complete_authentication(
            cx, &scope, uow, passkeys, showing,
        ))
    })
    .await?;
    let answer = |session, token, user| {
        let session = AuthSession::new(session, token);
        used(&iam, Output::new(PasskeyShown { session, user }))
    };
    Ok(match done.into_result()? {
        Shown::SignedIn(done) => {
            let output = answer(&done.session, done.token.clone(), done.user.edit());
            let output = set_sign_in_cookies(cx, &iam, output, &done);
            // A sign-in that waited for another second factor waits no more.
            let waited = iam.names.set(iam.names.two_factor(), "", Some(0));
            with_header(output, header::SET_COOKIE, &waited)
        }
        Shown::Reauthenticated { user, session } => {
            let token = iam.presented_token(&cx.headers);
            answer(&session, token.unwrap_or_default(), user.into_inner())
        }
    })
}

async fn list(
    _: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<Passkey>>> {
    let own = passkey::list(&scope, uow).await?;
    let own = own.into_iter().map(|own| own.into_inner());
    Ok(no_store(Output::new(own.collect())))
}

/// The body of a new name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct UpdatePasskey {
    id: PasskeyId,
    /// How the person calls it from now on.
    name: Line<1, 255>,
}

/// The answer to a new name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct UpdatedPasskey {
    passkey: Passkey,
}

async fn rename(
    cx: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdatePasskey>,
) -> Result<Output<UpdatedPasskey>> {
    let UpdatePasskey { id, name } = input.body;
    let renamed = passkey::rename(cx, &scope, uow, &id, name).await?;
    Ok(Output::new(UpdatedPasskey {
        passkey: renamed.into_inner(),
    }))
}

/// The body of a removal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DeletePasskey {
    id: PasskeyId,
}

async fn remove(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeletePasskey>,
) -> Result<Output<Status>> {
    let notices = iam.notices(cx);
    passkey::remove(cx, &scope, uow, &input.body.id, notices).await?;
    Ok(Output::new(Status::OK))
}
