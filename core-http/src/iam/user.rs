//! Sign-up and sign-in with an address and a password. Hashing comes first; no unit of work is open meanwhile.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::{PasswordHash, User, check_password, normal_password};
use core_domain::kernel::{Code, Email, Error, Line, PersonName, Result};
use core_domain::port::{HashForm, Mode, PasswordError, transact};
use core_domain::use_case::iam::session::{self, SignInOutcome};
use core_domain::use_case::iam::user::{self, PasswordCredential, PasswordSignIn, SignIn, SignUp};
use core_domain::use_case::iam::verification::Links;
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempt::begin_sign_in_attempt;
use super::bounds::{MAX_EMAIL_TEXT, MAX_PASSWORD_TEXT, MAX_TARGET};
use super::challenge::{TwoFactorRedirect, set_challenge_cookie, set_trust_cookie};
use super::config::Iam;
use super::cookies::{set_sign_in_cookies, with_header};
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-up/email", "signUpEmail")
            .summary("Signs somebody up with an address and a password, and in.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .takes_forms()
            .refuses(&[
                Code::UserAlreadyExists,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
                Code::InvalidCallbackUrl,
            ])
            .plain(with(iam, sign_up)),
        post("/api/auth/sign-in/email", "signInEmail")
            .summary("Signs somebody in with an address and a password; with a second factor, once a code of it was shown.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .takes_forms()
            .refuses(&[
                Code::InvalidEmailOrPassword,
                Code::InvalidEmail,
                Code::InvalidCallbackUrl,
                Code::EmailNotVerified,
            ])
            .plain(with(iam, sign_in)),
    ]
}

/// The body of a sign-up.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignUpEmail {
    /// The person's name; may be empty.
    name: PersonName,
    email: Email,
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    /// Address of a picture.
    image: Option<Line<0, 2048>>,
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = MAX_TARGET), regex(pattern = r"^[^\u0000]*$"), example = "/dashboard")]
    callback_url: Option<String>,
    remember_me: Option<bool>,
}

/// The answer to a sign-up.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedUp {
    /// Null where the address must be confirmed first; whether it has a user is said by mail then.
    token: Option<String>,
    user: User,
}

async fn sign_up(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignUpEmail>,
) -> Result<Output<SignedUp>> {
    let body = input.body;
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(body.callback_url.as_deref())?;
    let newcomer = Newcomer {
        name: body.name,
        email: body.email,
        image: body.image,
        remembered: body.remember_me.unwrap_or(true),
    };
    let target = body.callback_url.as_deref();
    let signed_in = match signed_up(cx, &iam, &scope, newcomer, &body.password, target).await? {
        SignUpOutcome::SignedIn(signed_in) => signed_in,
        SignUpOutcome::LinkSent(user) => {
            return Ok(Output::new(SignedUp {
                token: None,
                user: *user,
            }));
        }
    };
    let answer = Output::new(SignedUp {
        token: Some(signed_in.token.clone()),
        user: signed_in.user.edit(),
    });
    Ok(set_sign_in_cookies(cx, &iam, answer, &signed_in))
}

/// What somebody new says of themselves.
pub(super) struct Newcomer {
    pub(super) name: PersonName,
    pub(super) email: Email,
    pub(super) image: Option<Line<0, 2048>>,
    pub(super) remembered: bool,
}

/// What a sign-up led to.
pub(super) enum SignUpOutcome {
    /// There is a session.
    SignedIn(session::SignedIn),
    /// The address must be confirmed first. The user is made up where the address has one.
    LinkSent(Box<User>),
}

/// Signs somebody up with a password, and in, unless their address must be confirmed first: by a link that leads to `target`.
pub(super) async fn signed_up(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    newcomer: Newcomer,
    password: &str,
    target: Option<&str>,
) -> Result<SignUpOutcome> {
    let password = normal_password(password)?;
    check_password(&password)?;
    let hash = cx.app.hasher.hash(&password).await.map_err(broken)?;
    let command = &SignUp {
        name: newcomer.name,
        email: newcomer.email,
        image: newcomer.image,
        password_hash: PasswordHash::new(hash),
        remembered: newcomer.remembered,
    };
    if iam.options.require_email_verification {
        let user = signed_up_unconfirmed(cx, iam, scope, command, target).await?;
        return Ok(SignUpOutcome::LinkSent(Box::new(user)));
    }
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::sign_up(cx, scope, uow, command))
    })
    .await;
    let exists = |error: &Error| error.code() == Code::UserAlreadyExists;
    if outcome.as_ref().is_err_and(exists) {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::sign_up_refused(cx, scope, uow, &command.email))
        })
        .await?;
    }
    outcome.map(SignUpOutcome::SignedIn)
}

async fn signed_up_unconfirmed(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    command: &SignUp,
    target: Option<&str>,
) -> Result<User> {
    let link = |token: &str| iam.verification_link(token, target);
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    let page = &iam.link("/sign-in", &[]);
    let sign_up = async || {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::sign_up_unconfirmed(
                cx, scope, uow, command, links, page,
            ))
        })
        .await
    };
    match sign_up().await {
        // Somebody else was faster, so the address has a user now.
        Err(error) if error.code() == Code::UserAlreadyExists => sign_up().await,
        outcome => outcome,
    }
}

/// The body of a sign-in.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInEmail {
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = MAX_TARGET), regex(pattern = r"^[^\u0000]*$"), example = "/dashboard")]
    callback_url: Option<String>,
    remember_me: Option<bool>,
}

/// The answer to a sign-in.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum SignInAnswer {
    /// There is a session.
    SignedIn(Box<SignedIn>),
    /// The second factor is asked for.
    Asked(TwoFactorRedirect),
}

/// The session that a sign-in began.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedIn {
    redirect: bool,
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    user: User,
}

async fn sign_in(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignInEmail>,
) -> Result<Output<SignInAnswer>> {
    let body = input.body;
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(body.callback_url.as_deref())?;
    let remembered = body.remember_me.unwrap_or(true);
    let credentials = [body.email.as_str(), body.password.as_str()];
    let target = body.callback_url.as_deref();
    let begun = signed_in(cx, &iam, &scope, credentials, remembered, target).await?;
    let signed_in = match begun.outcome {
        SignInOutcome::SignedIn(signed_in) => signed_in,
        SignInOutcome::SecondFactorRequired(challenged) => {
            let asked = Output::new(SignInAnswer::Asked(TwoFactorRedirect::ASKED));
            return Ok(set_challenge_cookie(&iam, asked, &challenged));
        }
    };
    let mut answer = Output::new(SignInAnswer::SignedIn(Box::new(SignedIn {
        redirect: body.callback_url.is_some(),
        token: signed_in.token.clone(),
        url: body.callback_url.clone(),
        user: signed_in.user.edit(),
    })));
    if let Some(url) = &body.callback_url {
        answer = with_header(answer, header::LOCATION, url);
    }
    let answer = set_trust_cookie(&iam, answer, begun.device.as_deref());
    Ok(set_sign_in_cookies(cx, &iam, answer, &signed_in))
}

/// Signs somebody in with an address and a password. Where the address must be confirmed first and is not, a link is sent that
/// leads to `target`.
pub(super) async fn signed_in(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    [email, password]: [&str; 2],
    remembered: bool,
    target: Option<&str>,
) -> Result<PasswordSignIn> {
    let email =
        Email::parse(email).map_err(|_| Error::refused(Code::InvalidEmail, "Invalid email"))?;
    let checked = checked_password(cx, iam, scope, &email, password).await?;
    let mut command = SignIn {
        checked,
        remembered,
        confirmed_only: iam.options.require_email_verification,
        device: iam.device_token(&cx.headers),
    };
    let begun = begin(cx, scope, &command).await;
    let changed = |error: &Error| error.code() == Code::InvalidEmailOrPassword;
    let begun = if begun.as_ref().is_err_and(changed) {
        // The password was changed while it was checked, or hashed anew by another sign-in with it.
        command.checked = check(cx, scope, &email, password).await?;
        begin(cx, scope, &command).await
    } else {
        begun
    };
    let unconfirmed = |error: &Error| error.code() == Code::EmailNotVerified;
    if begun.as_ref().is_err_and(unconfirmed) {
        let link = |token: &str| iam.verification_link(token, target);
        let links = Links {
            link: &link,
            cipher: &cx.app.cipher,
        };
        let (checked, email) = (&command.checked, &email);
        let refusal = transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::refuse_unconfirmed(
                cx, scope, uow, checked, email, links,
            ))
        })
        .await?;
        return Err(refusal);
    }
    let signed_in = begun?;
    if let Err(error) = renew_hash(cx, scope, &command.checked, password).await {
        tracing::warn!(?error, "a password could not be hashed anew");
    }
    Ok(signed_in)
}

/// Checks the password of an address, and counts it as a failed sign-in if it is wrong.
///
/// # Errors
/// `INVALID_EMAIL_OR_PASSWORD`; `RATE_LIMITED` when too many were wrong, whether this one is or not.
pub(super) async fn checked_password(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    email: &Email,
    password: &str,
) -> Result<PasswordCredential> {
    let attempt = begin_sign_in_attempt(cx, iam, email).await?;
    let checked = check(cx, scope, email, password).await?;
    iam.failed_sign_ins.succeeded(&attempt).await;
    Ok(checked)
}

async fn begin(cx: &Cx, scope: &PublicScope, command: &SignIn) -> Result<PasswordSignIn> {
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::sign_in(cx, scope, uow, command))
    })
    .await
}

/// Hashes a password that was found right anew, when its hash is not as hashes are made today.
async fn renew_hash(
    cx: &Cx,
    scope: &PublicScope,
    checked: &PasswordCredential,
    password: &str,
) -> Result<()> {
    if cx.app.hasher.form(checked.hash.expose()) != HashForm::Outdated {
        return Ok(());
    }
    let password = normal_password(password)?;
    let hash = &PasswordHash::new(cx.app.hasher.hash(&password).await.map_err(broken)?);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::rehash_password(cx, scope, uow, checked, hash))
    })
    .await?;
    Ok(())
}

/// What is on file for the address, when the password is right. Takes as long when the address is unknown.
async fn check(
    cx: &Cx,
    scope: &PublicScope,
    email: &Email,
    password: &str,
) -> Result<PasswordCredential> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let on_file = user::password_credential(uow.as_mut(), email).await;
    uow.rollback().await;
    let on_file = on_file?;
    let hash = on_file.as_ref().map(|on_file| on_file.hash.expose());
    // A text that no password can be is wrong without being looked at, as slowly as any other.
    let normal = normal_password(password).unwrap_or_default();
    let right = cx.app.hasher.verify(&normal, hash).await;
    let right = right.map_err(broken)? && !normal.is_empty();
    match on_file {
        Some(on_file) if right => Ok(on_file),
        on_file => {
            let known = on_file.as_ref();
            let refusal = transact(cx.app.store.as_ref(), |uow, _| {
                Box::pin(user::sign_in_failed(cx, scope, uow, email, known))
            })
            .await?;
            Err(refusal)
        }
    }
}

pub(super) fn broken(error: PasswordError) -> Error {
    match error {
        PasswordError::Busy => Error::Unavailable(error.to_string()),
        _ => Error::Internal(error.to_string()),
    }
}
