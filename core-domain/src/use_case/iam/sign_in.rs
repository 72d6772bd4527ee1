//! Sign-in with an address and a password. The slow check lies between [`password_on_file`] and [`sign_in`].

use serde_json::json;

use super::begin_session::{SignedIn, as_user, begin_session};
use crate::iam::{AccountQuery, UserQuery};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, UserId};
use crate::port::UnitOfWork;
use crate::shared::{Happening, audited};

/// The password account behind an address.
#[derive(Clone, PartialEq)]
pub struct PasswordOnFile {
    /// Whose it is.
    pub user_id: UserId,
    /// The account.
    pub account_id: AccountId,
    /// The hash to check against.
    pub hash: String,
}

// The hash stays out of logs.
impl std::fmt::Debug for PasswordOnFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordOnFile")
            .field("user_id", &self.user_id)
            .field("account_id", &self.account_id)
            .finish_non_exhaustive()
    }
}

/// A sign-in whose password was found right.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// What the password was checked against.
    pub checked: PasswordOnFile,
    /// Whether the browser shall keep the session.
    pub remembered: bool,
}

/// The password to check for an address; `None` when nobody has it, or has no password.
///
/// # Errors
/// When the store failed.
pub async fn password_on_file(
    uow: &mut dyn UnitOfWork,
    email: &Email,
) -> Result<Option<PasswordOnFile>> {
    let with_email = UserQuery::WithEmail(email.clone());
    let Some(user) = uow.users().first(&with_email).await? else {
        return Ok(None);
    };
    let password_of = AccountQuery::PasswordOf(user.id.clone());
    let account = uow.accounts().first(&password_of).await?;
    Ok(account.and_then(|account| {
        let hash = account.password_hash.clone()?;
        Some(PasswordOnFile {
            user_id: user.id.clone(),
            account_id: account.id.clone(),
            hash,
        })
    }))
}

/// The one refusal of a sign-in: the same whether the address or the password was wrong.
fn refusal() -> Error {
    Error::refused(Code::InvalidEmailOrPassword, "Invalid email or password")
}

/// Begins a session, provided the password is still the one that was checked.
///
/// # Errors
/// `INVALID_EMAIL_OR_PASSWORD` when it was changed in between.
pub async fn sign_in(cx: &Context, uow: &mut dyn UnitOfWork, input: &SignIn) -> Result<SignedIn> {
    let checked = &input.checked;
    let account = uow.accounts().get(checked.account_id.as_str()).await?;
    let unchanged = account.is_some_and(|a| a.password_hash.as_deref() == Some(&checked.hash));
    let user = uow.users().get(checked.user_id.as_str()).await?;
    let Some(user) = user.filter(|_| unchanged) else {
        return Err(refusal());
    };
    let signed_in = begin_session(cx, uow, user, input.remembered).await?;
    let happening = Happening {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        after: Some(json!({ "accountId": checked.account_id, "sessionId": signed_in.session.id })),
        ..Happening::default()
    };
    audited(&as_user(cx, &signed_in.user), uow, happening).await?;
    Ok(signed_in)
}

/// Records a sign-in that failed, and gives the refusal to answer with.
///
/// # Errors
/// When the store failed.
pub async fn sign_in_failed(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    known: Option<&PasswordOnFile>,
) -> Result<Error> {
    let happening = Happening {
        action: "user.sign_in_failed",
        entity_id: known.map_or_else(|| "unknown".to_owned(), |k| k.user_id.to_string()),
        after: Some(json!({ "email": email, "accountId": known.map(|k| &k.account_id) })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(refusal())
}
