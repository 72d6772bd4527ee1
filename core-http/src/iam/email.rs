//! Sign-up and sign-in with an address and a password. Hashing comes first; no unit of work is open meanwhile.

use std::sync::Arc;

use core_domain::iam::{check_password, normal_password};
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::{Mode, PasswordError, transact};
use core_domain::use_case::iam as use_case;
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::cookies::{give, with};
use super::wire::WireUser;
use crate::kernel::{Cx, Input, Output};

/// The body of a sign-up.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignUpEmail {
    #[schemars(length(max = 255))]
    name: String,
    email: Email,
    password: String,
    #[schemars(length(max = 2048))]
    image: Option<String>,
    #[serde(rename = "callbackURL")]
    callback_url: Option<String>,
    remember_me: Option<bool>,
}

/// The answer to a sign-up.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedUp {
    token: String,
    user: WireUser,
}

pub(super) async fn sign_up(
    cx: &Cx,
    iam: Arc<Iam>,
    input: Input<(), (), SignUpEmail>,
) -> Result<Output<SignedUp>> {
    let body = input.body;
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(body.callback_url.as_deref())?;
    let password = normal_password(&body.password);
    check_password(&password)?;
    let password_hash = cx.app.hasher.hash(&password).await.map_err(broken)?;
    let new = &use_case::SignUp {
        name: body.name,
        email: body.email,
        image: body.image,
        password_hash,
        remembered: body.remember_me.unwrap_or(true),
    };
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { use_case::sign_up(cx, uow, new).await })
    })
    .await;
    if outcome
        .as_ref()
        .is_err_and(|e| e.code() == Code::UserAlreadyExists)
    {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(async move { use_case::sign_up_refused(cx, uow, &new.email).await })
        })
        .await?;
    }
    let signed_in = outcome?;
    let answer = SignedUp {
        token: signed_in.token.clone(),
        user: WireUser::from(&*signed_in.user),
    };
    Ok(give(
        &iam,
        Output::new(answer),
        &signed_in.session,
        &signed_in.token,
    ))
}

/// The body of a sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignInEmail {
    email: String,
    password: String,
    #[serde(rename = "callbackURL")]
    callback_url: Option<String>,
    remember_me: Option<bool>,
}

/// The answer to a sign-in.
#[derive(Serialize, JsonSchema)]
pub(super) struct SignedIn {
    redirect: bool,
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    user: WireUser,
}

pub(super) async fn sign_in(
    cx: &Cx,
    iam: Arc<Iam>,
    input: Input<(), (), SignInEmail>,
) -> Result<Output<SignedIn>> {
    let body = input.body;
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(body.callback_url.as_deref())?;
    let email = Email::parse(&body.email)
        .map_err(|_| Error::refused(Code::InvalidEmail, "Invalid email"))?;
    let guess = iam
        .guesses
        .begin(cx.request.ip.as_deref(), &email, cx.app.clock.now())?;
    let checked = check(cx, &email, &body.password).await?;
    iam.guesses.was_right(&guess);
    let entry = &use_case::SignIn {
        checked,
        remembered: body.remember_me.unwrap_or(true),
    };
    let signed_in = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { use_case::sign_in(cx, uow, entry).await })
    })
    .await?;
    let answer = SignedIn {
        redirect: body.callback_url.is_some(),
        token: signed_in.token.clone(),
        url: body.callback_url.clone(),
        user: WireUser::from(&*signed_in.user),
    };
    let mut output = Output::new(answer);
    if let Some(url) = &body.callback_url {
        output = with(output, header::LOCATION, url);
    }
    Ok(give(&iam, output, &signed_in.session, &signed_in.token))
}

/// What is on file for the address, when the password is right. Takes as long when the address is unknown.
async fn check(cx: &Cx, email: &Email, password: &str) -> Result<use_case::PasswordOnFile> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let on_file = use_case::password_on_file(uow.as_mut(), email).await;
    uow.rollback().await;
    let on_file = on_file?;
    let hash = on_file.as_ref().map(|on_file| on_file.hash.as_str());
    let right = cx.app.hasher.verify(&normal_password(password), hash).await;
    let right = right.map_err(broken)?;
    match on_file {
        Some(on_file) if right => Ok(on_file),
        on_file => {
            let known = on_file.as_ref();
            let refusal = transact(cx.app.store.as_ref(), |uow, _| {
                Box::pin(async move { use_case::sign_in_failed(cx, uow, email, known).await })
            })
            .await?;
            Err(refusal)
        }
    }
}

fn broken(error: PasswordError) -> Error {
    match error {
        PasswordError::Busy => Error::Unavailable(error.to_string()),
        _ => Error::Internal(error.to_string()),
    }
}
