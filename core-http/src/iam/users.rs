//! Users, for operators.

use core_domain::access::OperatorScope;
use core_domain::iam::{Ban, User};
use core_domain::kernel::{Code, Reason, Result, Stored, Timestamp, UserId};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::user;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Versioned, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/core/users/{userId}/ban", "banUser")
            .summary("Bans a user: their sessions and keys end at once, and they sign in no more.")
            .if_match()
            .refuses(&[Code::Conflict])
            .writes(ban),
        post("/api/core/users/{userId}/unban", "unbanUser")
            .summary("Lets a user in again.")
            .if_match()
            .writes(unban),
    ]
}

/// A user, as operators see them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UserView {
    #[serde(flatten)]
    user: User,
    banned_at: Option<Timestamp>,
    ban_reason: Option<Reason>,
}

fn view(user: &Stored<User>) -> Versioned<UserView> {
    Versioned::of(
        user,
        UserView {
            banned_at: user.banned_at,
            ban_reason: user.ban_reason.clone(),
            user: user.edit(),
        },
    )
}

async fn ban(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(UserId,), (), Ban>,
) -> Result<Versioned<UserView>> {
    let user = user::ban(cx, &scope, uow, &input.path.0, input.body).await?;
    Ok(view(&user))
}

async fn unban(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(UserId,)>,
) -> Result<Versioned<UserView>> {
    let user = user::unban(cx, &scope, uow, &input.path.0).await?;
    Ok(view(&user))
}
