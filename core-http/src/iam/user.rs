//! Administration of users by operators.

use std::sync::Arc;

use core_domain::access::OperatorScope;
use core_domain::iam::User;
use core_domain::kernel::{Code, Reason, Result, Stored, Timestamp, UserId};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::user;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use crate::kernel::{
    Cx, Endpoint, Input, Output, Versioned, call_with_id, call_with_id_and_body, delete, post, with,
};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/core/users/{userId}/ban", "banUser")
            .summary("Bans a user from the installation.")
            .description(
                "Ends all sessions of the user at once, cancels pending sign-ins and removes \
                 trusted devices. The user can no longer sign in, and their API keys are \
                 rejected. A repeated call replaces the reason and keeps the time of the ban. \
                 Operators cannot ban themselves.",
            )
            .if_match()
            .refuses(&[Code::Conflict])
            .writes(call_with_id_and_body(user::ban).map(view)),
        post("/api/core/users/{userId}/unban", "unbanUser")
            .summary("Lifts the ban of a user.")
            .description(
                "The user can sign in again, and their API keys are accepted again. Sessions that \
                 the ban ended are not restored. The response is the same for a user who is not \
                 banned.",
            )
            .if_match()
            .writes(call_with_id(user::unban).map(view)),
        delete("/api/core/users/{userId}/factors", "removeUserFactors")
            .summary("Removes all second factors of a user.")
            .description(
                "For a user who lost their authenticator and passkeys. Removes both, ends all \
                 sessions of the user and informs the user by mail. Without any second factor \
                 nothing changes. Requires a proof of identity from the last 10 minutes.",
            )
            .refuses(&[Code::StepUpRequired])
            .writes(with(iam, remove_factors)),
    ]
}

/// A user, with the fields for operators.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UserView {
    #[serde(flatten)]
    user: User,
    /// The time of the ban; `null` if the user is not banned.
    banned_at: Option<Timestamp>,
    /// The reason for the ban; `null` without one.
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

fn view(user: Stored<User>) -> Versioned<UserView> {
    Versioned::of(&user, UserView::new(&user))
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
