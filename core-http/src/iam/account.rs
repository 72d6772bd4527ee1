//! The caller's profile and the ways in which the caller can sign in.

use std::sync::Arc;

use core_domain::access::{PersonScope, PublicScope};
use core_domain::iam::{Account, UpdateUser, User};
use core_domain::kernel::{
    AccountId, Code, Error, Line, Patch, PersonName, PlainName, Result, Stored, Timestamp, UserId,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::user;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::MAX_EMAIL_TEXT;
use super::config::Iam;
use super::cookies::set_session_cookie;
use super::identify::PresentedSession;
use super::status::Status;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, call, get, patch, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/update-user", "updateUser")
            .summary("Updates the caller's name or picture.")
            .description(
                "Changes the fields that are present and keeps the others; a body without any \
                 field is rejected. The email address cannot be changed here. If the request \
                 carries a session token, the session cookie is set again.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::EmailCanNotBeUpdated])
            .writes(with(iam, update_user)),
        get("/api/auth/list-accounts", "listAccounts")
            .summary("Lists the caller's sign-in accounts.")
            .description(
                "Returns the password account of the caller, or an empty list if the caller has \
                 no password. Passkeys and mailed links are not accounts.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .reads(call(user::list_accounts).map(|accounts| {
                let views = accounts.iter().map(|account| AccountView::new(account));
                Output::new(views.collect::<Vec<_>>())
            })),
        get("/api/auth/profile", "getProfile")
            .summary("Returns the caller's profile.")
            .description(
                "Returns the user of the session. For a request with a personal API key, it \
                 returns the owner of the key.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .reads(call(user::get_profile)),
        patch("/api/auth/profile", "updateProfile")
            .summary("Updates the caller's profile.")
            .description(
                "Changes the fields that are present and keeps the others. The change is recorded \
                 in the audit log.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .if_match()
            .writes(update_profile),
        get("/api/auth/ok", "authOk")
            .summary("Reports that the authentication routes are available.")
            .description(
                "Always returns `true`. The route exists for clients of the better-auth library; \
                 it does not check the store.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .plain(report_availability),
    ]
}

/// The fields of the user to change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct UpdateUserBody {
    /// The new name of the user. If absent, the name is kept.
    name: Option<PersonName>,
    /// URL of the user's picture, at most 2048 characters. `null` removes the picture; if absent, it is kept.
    #[serde(default)]
    image: Patch<Line<0, 2048>>,
    /// Always rejected: the email address cannot be changed with this operation.
    #[serde(default)]
    #[schemars(extend("x-maxBytes" = MAX_EMAIL_TEXT))]
    email: Option<Value>,
}

async fn update_user(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateUserBody>,
) -> Result<Output<Status>> {
    let body = input.body;
    if body.email.is_some() {
        let message = "Email can not be updated";
        return Err(Error::refused(Code::EmailCanNotBeUpdated, message));
    }
    if body.name.is_none() && body.image == Patch::Keep {
        return Err(Error::refused(Code::BadRequest, "No fields to update"));
    }
    let command = UpdateUser {
        name: body.name,
        image: body.image,
    };
    user::update(cx, &scope, uow, command).await?;
    let answer = Output::new(Status::OK);
    let presented = PresentedSession::of(cx, &iam).await?;
    let held = presented
        .as_ref()
        .and_then(|p| Some((p.details.as_ref()?, &p.token)));
    Ok(match held {
        Some((found, token)) => set_session_cookie(&iam, answer, &found.session, token),
        None => answer,
    })
}

/// An account that a user signs in with.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AccountView {
    /// The id of the account.
    id: AccountId,
    /// The user's id at the provider; the same as `userId`.
    account_id: UserId,
    /// The provider of the account; `credential` for a password.
    provider_id: String,
    /// The user who owns the account.
    user_id: UserId,
    /// Always empty, because no external provider is supported.
    scopes: Vec<String>,
    /// The time at which the account was created.
    created_at: Timestamp,
    /// The time of the last change of the account.
    updated_at: Timestamp,
}

impl AccountView {
    fn new(account: &Account) -> Self {
        Self {
            id: account.id.clone(),
            account_id: account.user_id.clone(),
            provider_id: account.provider.clone(),
            user_id: account.user_id.clone(),
            scopes: Vec::new(),
            created_at: account.created_at,
            updated_at: account.updated_at,
        }
    }
}

/// The fields of the profile to change.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct UpdateProfile {
    /// The new name, 1 to 255 characters. If absent, the name is kept.
    name: Option<PlainName<1, 255>>,
    /// URL of the user's picture, at most 2048 characters. `null` removes the picture; if absent, it is kept.
    #[serde(default)]
    #[schemars(url, length(max = 2048), example = "https://example.org/ada.png")]
    image: Patch<Line<0, 2048>>,
}

async fn update_profile(
    cx: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateProfile>,
) -> Result<Stored<User>> {
    let command = UpdateUser {
        name: input.body.name.map(PlainName::into),
        image: input.body.image,
    };
    user::update(cx, &scope, uow, command).await
}

/// The response of the availability check.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct Availability {
    /// Always `true` in this response.
    ok: bool,
}

async fn report_availability(_: &Cx, _: PublicScope, _: Input) -> Result<Output<Availability>> {
    Ok(Output::new(Availability { ok: true }))
}
