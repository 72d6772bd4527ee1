//! Removal of all second factors of a user.

use crate::access::{Covers, OperatorScope, all_unowned, audited, ensure_fresh, unowned};
use crate::iam::{Passkey, PasskeyQuery, TwoFactor, User};
use crate::kernel::{Context, Result, Stored, Unowned, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, Kept};
use crate::use_case::iam::verification::Notices;
use crate::use_case::iam::verification::mail::Notice;

/// The reason for which all second factors of a user are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactorRemoval {
    /// They were enrolled before anybody had confirmed the address.
    Unverified,
    /// An operator removes them, because the user has lost them.
    ByOperator,
}

impl FactorRemoval {
    /// The actions in the audit: of the authenticator, and of each passkey.
    const fn actions(self) -> [&'static str; 2] {
        match self {
            Self::Unverified => [
                "two_factor.unverified_removed",
                "passkey.unverified_removed",
            ],
            Self::ByOperator => [
                "two_factor.removed_by_operator",
                "passkey.removed_by_operator",
            ],
        }
    }
}

/// Removes the authenticator and the passkeys of a user who has lost them. Their sessions end, and no device is trusted any
/// more. Without factors nothing happens.
///
/// # Errors
/// `NOT_FOUND`; `STEP_UP_REQUIRED` without a fresh proof of the operator.
pub async fn remove_factors(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    ensure_fresh(cx, uow).await?;
    let user = unowned::<User>(uow).get(user).await?;
    let cx = &cx.consequence();
    if remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::ByOperator).await? {
        session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
        notices.tell(cx, uow, &user, Notice::FactorsRemoved).await?;
    }
    Ok(user)
}

/// Removes the authenticator and the passkeys of a user. Returns whether there were any.
pub(super) async fn remove_all_factors(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    reason: FactorRemoval,
) -> Result<bool> {
    let [of_two_factor, of_passkey] = reason.actions();
    let two_factor = unowned::<TwoFactor>(uow).find(user).await?;
    if let Some(seen) = &two_factor {
        audited::remove(cx, scope, uow, seen, of_two_factor).await?;
    }
    let passkeys = PasskeyQuery::OfUser(user.clone());
    let passkeys = all_unowned::<Passkey>(uow, passkeys).await?;
    for passkey in &passkeys {
        audited::remove(cx, scope, uow, passkey, of_passkey).await?;
    }
    Ok(two_factor.is_some() || !passkeys.is_empty())
}
