//! Passkeys, in the format of better-auth's plugin. Registering and removing one requires a fresh proof of identity. A
//! passkey signs in, or proves the identity of a signed-in user again.

use std::sync::Arc;

use core_domain::access::{PersonScope, PublicScope, SessionScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{PASSKEY_CHALLENGE_LIFETIME, Passkey, User};
use core_domain::kernel::{Code, Error, Line, PasskeyId, Result, Stored};
use core_domain::port::{UnitOfWork, transact};
use core_domain::use_case::iam::passkey::{
    self, PasskeyAssertion, PasskeyOutcome, Registration, StartedCeremony,
};
use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bounds::MAX_PASSKEY_RESPONSE;
use super::config::Iam;
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use super::session::AuthSession;
use super::status::Status;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Row, call, get, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let strict = |row: Row| style(row).rate(RateClass::Strict);
    vec![
        strict(get(
            "/api/auth/passkey/generate-register-options",
            "generatePasskeyRegistrationOptions",
        ))
        .summary("Starts the registration of a passkey.")
        .description(
            "Returns the options for `navigator.credentials.create` and sets a cookie that \
             identifies the challenge. The challenge is valid for five minutes and can be used \
             once. Requires a proof of identity from the last 10 minutes and a verified email \
             address.",
        )
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
        .summary("Completes the registration of a passkey.")
        .description(
            "Verifies the authenticator's response and stores the passkey. Verifying the response \
             uses up the challenge, even if the response is refused. The registration also counts \
             as a fresh proof of identity. The owner is informed by mail.",
        )
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
        .summary("Starts an authentication with a passkey.")
        .description(
            "Returns the options for `navigator.credentials.get` and sets a cookie that \
             identifies the challenge. The challenge is valid for five minutes, can be used once, \
             and accepts the passkey of any user.",
        )
        .refuses(&[Code::PasskeysDisabled])
        .plain(with(iam, begin_authentication)),
        strict(post(
            "/api/auth/passkey/verify-authentication",
            "verifyPasskeyAuthentication",
        ))
        .summary("Signs in with a passkey.")
        .description(
            "Starts a session; a second factor is not required in addition. If the request \
             already has a session of the passkey's owner, that session is kept and the passkey \
             counts as a fresh proof of identity. Verifying the response uses up the challenge, \
             even if the response is refused.",
        )
        .refuses(&[
            Code::ChallengeNotFound,
            Code::AuthenticationFailed,
            Code::BannedUser,
            Code::PasskeysDisabled,
        ])
        .refuses_as(Code::PasskeyNotFound, StatusCode::UNAUTHORIZED)
        .plain(with(iam, complete_authentication)),
        style(get("/api/auth/passkey/list-user-passkeys", "listPasskeys"))
            .summary("Lists the caller's passkeys.")
            .description("Returns all passkeys of the user, oldest first.")
            .reads(call(passkey::list).map(|own| {
                let own = own.into_iter().map(Stored::into_inner);
                no_store(Output::new(own.collect::<Vec<_>>()))
            })),
        style(post("/api/auth/passkey/update-passkey", "updatePasskey"))
            .summary("Renames one of the caller's passkeys.")
            .description("Changes only the name. The change is recorded in the audit log.")
            .refuses(&[Code::PasskeyNotFound])
            .writes(rename),
        style(post("/api/auth/passkey/delete-passkey", "deletePasskey"))
            .summary("Removes one of the caller's passkeys.")
            .description(
                "The passkey can no longer sign in; existing sessions are kept. Requires a proof \
                 of identity from the last 10 minutes. The owner is informed by mail.",
            )
            .refuses(&[Code::PasskeyNotFound, Code::StepUpRequired])
            .writes(with(iam, remove)),
    ]
}

/// Options for `navigator.credentials`, with binary values in base64url. Their challenge is valid for five minutes and
/// can be used once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct PasskeyOptions(Value);

/// Returns the options and sets the cookie that identifies the challenge.
fn set_passkey_challenge(iam: &Iam, begun: StartedCeremony) -> Output<PasskeyOptions> {
    let age = Some(PASSKEY_CHALLENGE_LIFETIME.as_secs());
    let signed = iam.signer.sign(&begun.token);
    let cookie = iam.names.set(iam.names.passkey(), &signed, age);
    let output = no_store(Output::new(PasskeyOptions(begun.options)));
    with_header(output, header::SET_COOKIE, &cookie)
}

/// Clears the cookie of the used challenge.
fn clear_passkey_challenge<T>(iam: &Iam, output: Output<T>) -> Output<T> {
    let used = iam.names.set(iam.names.passkey(), "", Some(0));
    no_store(with_header(output, header::SET_COOKIE, &used))
}

/// Returns the token of the request's challenge.
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
    Ok(set_passkey_challenge(&iam, done))
}

/// The authenticator's response to the registration.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyRegistration {
    /// The result of `navigator.credentials.create`, as JSON.
    #[schemars(extend("x-maxBytes" = MAX_PASSKEY_RESPONSE))]
    response: Map<String, Value>,
    /// The name of the passkey, 1 to 255 characters. Default: none.
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
    Ok(clear_passkey_challenge(
        &iam,
        Output::new(kept.into_inner()),
    ))
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
    Ok(set_passkey_challenge(&iam, done))
}

/// The authenticator's response to the authentication.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyAuthentication {
    /// The result of `navigator.credentials.get`, as JSON.
    #[schemars(extend("x-maxBytes" = MAX_PASSKEY_RESPONSE))]
    response: Map<String, Value>,
}

/// The session after the authentication: a new one, or the session of the request.
#[derive(Clone, Serialize, JsonSchema)]
struct PasskeySession {
    /// The session of the user.
    session: AuthSession,
    /// The owner of the passkey.
    user: User,
}

async fn complete_authentication(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), VerifyAuthentication>,
) -> Result<Output<PasskeySession>> {
    let passkeys = iam.passkeys()?;
    let (token, response) = (token(cx, &iam)?, Value::Object(input.body.response));
    let session = authorize_session(cx).ok();
    let showing = PasskeyAssertion {
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
        clear_passkey_challenge(&iam, Output::new(PasskeySession { session, user }))
    };
    Ok(match done.into_result()? {
        PasskeyOutcome::SignedIn(done) => {
            let output = answer(&done.session, done.token.clone(), done.user.edit());
            let output = set_sign_in_cookies(cx, &iam, output, &done);
            // The passkey replaces any other second factor that the sign-in was waiting for.
            let waited = iam.names.set(iam.names.two_factor(), "", Some(0));
            with_header(output, header::SET_COOKIE, &waited)
        }
        PasskeyOutcome::Reauthenticated { user, session } => {
            let token = iam.presented_token(&cx.headers);
            answer(&session, token.unwrap_or_default(), user.into_inner())
        }
    })
}

/// The passkey to rename and its new name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct UpdatePasskey {
    /// The id of the passkey.
    id: PasskeyId,
    /// The new name, 1 to 255 characters.
    name: Line<1, 255>,
}

/// The renamed passkey.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct UpdatedPasskey {
    /// The passkey with its new name.
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

/// The passkey to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DeletePasskey {
    /// The id of the passkey.
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
