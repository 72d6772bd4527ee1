//! What people say of themselves, and how they prove who they are.

use std::sync::Arc;

use core_domain::access::{AccountScope, PersonScope, PublicScope, SessionScope};
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
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, get, patch, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/update-user", "updateUser")
            .summary("Changes the caller's name or picture.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::EmailCanNotBeUpdated])
            .writes(with(iam, update_user)),
        get("/api/auth/list-accounts", "listAccounts")
            .summary("The ways the caller proves who they are.")
            .errors(ErrorStyle::TopLevelCode)
            .reads(list_accounts),
        get("/api/auth/profile", "getProfile")
            .summary("The caller, or the owner of the personal API key that it comes with.")
            .errors(ErrorStyle::TopLevelCode)
            .reads(profile),
        patch("/api/auth/profile", "updateProfile")
            .summary("Changes what the caller says of themselves.")
            .errors(ErrorStyle::TopLevelCode)
            .if_match()
            .writes(update_profile),
        get("/api/auth/ok", "authOk")
            .summary("A sign of life, for clients of the library.")
            .errors(ErrorStyle::TopLevelCode)
            .plain(alive),
    ]
}

/// The body of a change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct UpdateUserBody {
    name: Option<PersonName>,
    /// Address of a picture; `null` takes it away.
    #[serde(default)]
    image: Patch<Line<0, 2048>>,
    /// Refused: an address is changed in no such way.
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

/// A way a person proves who they are.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AccountView {
    id: AccountId,
    account_id: UserId,
    provider_id: String,
    user_id: UserId,
    /// Always empty: nobody else vouches for accounts here.
    scopes: Vec<String>,
    created_at: Timestamp,
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

async fn list_accounts(
    _: &Cx,
    scope: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<AccountView>>> {
    let accounts = user::list_accounts(&scope, uow).await?;
    let views = accounts.iter().map(|account| AccountView::new(account));
    Ok(Output::new(views.collect()))
}

async fn profile(
    _: &Cx,
    scope: AccountScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Stored<User>> {
    user::profile(&scope, uow).await
}

/// The body of a change of the profile.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct UpdateProfile {
    name: Option<PlainName<1, 255>>,
    /// Address of a picture; `null` takes it away.
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

/// A sign of life.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct Alive {
    /// Always true.
    ok: bool,
}

async fn alive(_: &Cx, _: PublicScope, _: Input) -> Result<Output<Alive>> {
    Ok(Output::new(Alive { ok: true }))
}
