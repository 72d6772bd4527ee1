//! Users, for operators.

use std::sync::Arc;

use core_domain::access::OperatorScope;
use core_domain::iam::{Ban, User};
use core_domain::kernel::{Code, Reason, Result, Stored, Timestamp, UserId};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::user;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, Output, Versioned, delete, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
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
        delete("/api/core/users/{userId}/factors", "removeUserFactors")
            .summary(
                "Removes the authenticator and the passkeys of a user who has lost them, and ends their sessions.",
            )
            .refuses(&[Code::StepUpRequired])
            .writes(with(iam, remove_factors)),
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

impl UserView {
    fn new(user: &Stored<User>) -> Self {
        Self {
            banned_at: user.banned_at,
            ban_reason: user.ban_reason.clone(),
            user: user.edit(),
        }
    }
}

fn view(user: &Stored<User>) -> Versioned<UserView> {
    Versioned::of(user, UserView::new(user))
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

async fn remove_factors(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(UserId,)>,
) -> Result<Output<UserView>> {
    let notices = iam.notices(cx);
    let user = user::remove_factors(cx, &scope, uow, &input.path.0, notices).await?;
    Ok(Output::new(UserView::new(&user)))
}
