//! Sign-up and sign-in with an email address and a password. Hashing is slow, so it happens before a unit of work is
//! opened.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::{PasswordHash, User, check_password, normalize_password};
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
            .summary("Signs a new user up with email address and password.")
            .description(
                "Creates the user with the password and starts a session. If the installation \
                 requires verified addresses, no session starts: a verification link is mailed \
                 and `token` is `null`. In that case the response for an existing address looks \
                 the same, and its owner is informed by mail.",
            )
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
            .summary("Signs a user in with email address and password.")
            .description(
                "Starts a session. For users with a second factor, the response is \
                 `twoFactorRedirect` instead, unless the device is trusted; the sign-in then \
                 waits 10 minutes for a code. Failed attempts are counted per client and account \
                 and delay further attempts. With `callbackURL` the response names that URL in \
                 `url` and in the `Location` header; the status code stays 200. For an address \
                 that must be verified first, a new verification link is mailed.",
            )
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

/// The data of the new user.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignUpEmail {
    /// The user's name; may be empty.
    name: PersonName,
    /// The user's email address. It must not belong to another user.
    email: Email,
    /// The password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    /// URL of the user's picture, at most 2048 characters. Default: none.
    image: Option<Line<0, 2048>>,
    /// Redirect target of the verification link: a path of IAM or a URL of a trusted origin. Default: `/`.
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = MAX_TARGET), regex(pattern = r"^[^\u0000]*$"), example = "/dashboard")]
    callback_url: Option<String>,
    /// Whether the session outlasts the browser session. If false, it ends with the browser, after one day at the
    /// latest. Default: true.
    remember_me: Option<bool>,
}

/// The new user and the token of the session.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedUp {
    /// The token of the new session; `null` if the address must be verified first.
    token: Option<String>,
    /// The new user. If the address must be verified first and already has a user, these values are made up.
    user: User,
}

async fn sign_up(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignUpEmail>,
) -> Result<Output<SignedUp>> {
    let body = input.body;
    iam.ensure_trusted_origin(cx)?;
    iam.ensure_trusted_target(body.callback_url.as_deref())?;
    let newcomer = NewUserInput {
        name: body.name,
        email: body.email,
        image: body.image,
        remembered: body.remember_me.unwrap_or(true),
    };
    let target = body.callback_url.as_deref();
    let signed_in =
        match sign_up_with_password(cx, &iam, &scope, newcomer, &body.password, target).await? {
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

/// The data that a new user enters.
pub(super) struct NewUserInput {
    pub(super) name: PersonName,
    pub(super) email: Email,
    pub(super) image: Option<Line<0, 2048>>,
    pub(super) remembered: bool,
}

/// The outcome of a sign-up.
pub(super) enum SignUpOutcome {
    /// The user is signed in.
    SignedIn(session::SignedIn),
    /// The address must be verified first. If it already has a user, this user is made up.
    LinkSent(Box<User>),
}

/// Signs a new user up with a password and signs them in. If the address must be verified first, a link that redirects
/// to `target` is sent instead.
pub(super) async fn sign_up_with_password(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    newcomer: NewUserInput,
    password: &str,
    target: Option<&str>,
) -> Result<SignUpOutcome> {
    let password = normalize_password(password)?;
    check_password(&password)?;
    let hash = cx.app.hasher.hash(&password).await.map_err(hashing_error)?;
    let command = &SignUp {
        name: newcomer.name,
        email: newcomer.email,
        image: newcomer.image,
        password_hash: PasswordHash::new(hash),
        remembered: newcomer.remembered,
    };
    if iam.options.require_email_verification {
        let user = sign_up_unconfirmed(cx, iam, scope, command, target).await?;
        return Ok(SignUpOutcome::LinkSent(Box::new(user)));
    }
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::sign_up(cx, scope, uow, command))
    })
    .await;
    let exists = |error: &Error| error.code() == Code::UserAlreadyExists;
    if outcome.as_ref().is_err_and(exists) {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::record_refused_sign_up(cx, scope, uow, &command.email))
        })
        .await?;
    }
    outcome.map(SignUpOutcome::SignedIn)
}

async fn sign_up_unconfirmed(
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
        // A concurrent sign-up created the user first. The second call takes the path for existing users.
        Err(error) if error.code() == Code::UserAlreadyExists => sign_up().await,
        outcome => outcome,
    }
}

/// The credentials of the user.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInEmail {
    /// The user's email address.
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    /// The current password of the user.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    /// Redirect target after the sign-in: a path of IAM or a URL of a trusted origin. Default: none.
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = MAX_TARGET), regex(pattern = r"^[^\u0000]*$"), example = "/dashboard")]
    callback_url: Option<String>,
    /// Whether the session outlasts the browser session. If false, it ends with the browser, after one day at the
    /// latest. Default: true.
    remember_me: Option<bool>,
}

/// The response to a sign-in.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum SignInAnswer {
    /// The user is signed in.
    SignedIn(Box<SignedIn>),
    /// The user must complete the second factor.
    Asked(TwoFactorRedirect),
}

/// The session that the sign-in started.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedIn {
    /// Whether the client should redirect to `url`.
    redirect: bool,
    /// The token of the new session.
    token: String,
    /// The `callbackURL` of the request; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The user who is signed in.
    user: User,
}

async fn sign_in(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignInEmail>,
) -> Result<Output<SignInAnswer>> {
    let body = input.body;
    iam.ensure_trusted_origin(cx)?;
    iam.ensure_trusted_target(body.callback_url.as_deref())?;
    let remembered = body.remember_me.unwrap_or(true);
    let credentials = [body.email.as_str(), body.password.as_str()];
    let target = body.callback_url.as_deref();
    let begun = sign_in_with_password(cx, &iam, &scope, credentials, remembered, target).await?;
    let signed_in = match begun.outcome {
        SignInOutcome::SignedIn(signed_in) => signed_in,
        SignInOutcome::SecondFactorRequired(challenged) => {
            let asked = Output::new(SignInAnswer::Asked(TwoFactorRedirect::REQUIRED));
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

/// Signs a user in with an email address and a password. If the address must be verified first and is not, a link that
/// redirects to `target` is sent.
pub(super) async fn sign_in_with_password(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    [email, password]: [&str; 2],
    remembered: bool,
    target: Option<&str>,
) -> Result<PasswordSignIn> {
    let email =
        Email::parse(email).map_err(|_| Error::refused(Code::InvalidEmail, "Invalid email"))?;
    let checked = check_counted_password(cx, iam, scope, &email, password).await?;
    let mut command = SignIn {
        checked,
        remembered,
        require_verified_email: iam.options.require_email_verification,
        device: iam.device_token(&cx.headers),
    };
    let begun = begin(cx, scope, &command).await;
    let changed = |error: &Error| error.code() == Code::InvalidEmailOrPassword;
    let begun = if begun.as_ref().is_err_and(changed) {
        // The stored hash changed during the check: the password was changed, or a concurrent sign-in renewed its hash.
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
        tracing::warn!(?error, "failed to renew an outdated password hash");
    }
    Ok(signed_in)
}

/// Checks the password of an address. A wrong password counts as a failed sign-in.
///
/// # Errors
/// Returns `INVALID_EMAIL_OR_PASSWORD` if the address or the password is wrong. Returns `RATE_LIMITED` after too many
/// wrong passwords, whether or not this one is right.
pub(super) async fn check_counted_password(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    email: &Email,
    password: &str,
) -> Result<PasswordCredential> {
    let attempt = begin_sign_in_attempt(cx, iam, email).await?;
    let checked = check(cx, scope, email, password).await?;
    iam.failed_sign_ins.record_success(&attempt).await;
    Ok(checked)
}

async fn begin(cx: &Cx, scope: &PublicScope, command: &SignIn) -> Result<PasswordSignIn> {
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::sign_in(cx, scope, uow, command))
    })
    .await
}

/// Hashes a correct password again if its stored hash uses outdated parameters.
async fn renew_hash(
    cx: &Cx,
    scope: &PublicScope,
    checked: &PasswordCredential,
    password: &str,
) -> Result<()> {
    if cx.app.hasher.form(checked.hash.expose()) != HashForm::Outdated {
        return Ok(());
    }
    let password = normalize_password(password)?;
    let hash = &PasswordHash::new(cx.app.hasher.hash(&password).await.map_err(hashing_error)?);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::rehash_password(cx, scope, uow, checked, hash))
    })
    .await?;
    Ok(())
}

/// Returns the stored credential of the address if the password is right. The check takes equally long for an unknown
/// address.
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
    // An invalid password text is checked as an empty one: it always fails, but takes equally long.
    let normal = normalize_password(password).unwrap_or_default();
    let right = cx.app.hasher.verify(&normal, hash).await;
    let right = right.map_err(hashing_error)? && !normal.is_empty();
    match on_file {
        Some(on_file) if right => Ok(on_file),
        on_file => {
            let known = on_file.as_ref();
            let refusal = transact(cx.app.store.as_ref(), |uow, _| {
                Box::pin(user::record_failed_sign_in(cx, scope, uow, email, known))
            })
            .await?;
            Err(refusal)
        }
    }
}

/// Converts a hashing error into the error for the client. Too many concurrent hashes are reported as unavailable.
pub(super) fn hashing_error(error: PasswordError) -> Error {
    match error {
        PasswordError::Busy => Error::Unavailable(error.to_string()),
        _ => Error::Internal(error.to_string()),
    }
}
