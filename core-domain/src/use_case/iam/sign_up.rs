//! Sign-up with an address and a password.

use serde_json::json;

use super::begin_session::{SignedIn, as_user, begin_session};
use crate::iam::{Account, CREDENTIAL, User};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, UserId};
use crate::port::{StoreError, Stored, UnitOfWork};
use crate::shared::{Happening, audited};

/// What somebody signs up with.
#[derive(Clone)]
pub struct SignUp {
    /// What they call themselves; may be empty.
    pub name: String,
    /// Their address.
    pub email: Email,
    /// Address of a picture.
    pub image: Option<String>,
    /// The hash of their password, which has passed [`crate::iam::check_password`].
    pub password_hash: String,
    /// Whether the browser shall keep the session.
    pub remembered: bool,
}

// The hash stays out of logs.
impl std::fmt::Debug for SignUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignUp")
            .field("email", &self.email)
            .finish_non_exhaustive()
    }
}

/// Makes the user, their password account and a session.
///
/// # Errors
/// `USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL` when the address has a user.
pub async fn sign_up(cx: &Context, uow: &mut dyn UnitOfWork, input: &SignUp) -> Result<SignedIn> {
    let now = uow.now().await?;
    let user = User {
        id: UserId::generate(now, cx.entropy.as_ref()),
        name: input.name.clone(),
        email: input.email.clone(),
        email_verified: false,
        image: input.image.clone(),
        created_at: now,
        updated_at: now,
    };
    let user = new_user(uow, user).await?;
    let account = Account {
        id: AccountId::generate(now, cx.entropy.as_ref()),
        user_id: user.id.clone(),
        provider: CREDENTIAL.to_owned(),
        password_hash: Some(input.password_hash.clone()),
        created_at: now,
        updated_at: now,
    };
    uow.accounts().insert(account).await?;
    let signed_in = begin_session(cx, uow, user, input.remembered).await?;
    let happening = Happening {
        action: "user.signed_up",
        entity_id: signed_in.user.id.to_string(),
        after: Some(json!({ "email": input.email, "sessionId": signed_in.session.id })),
        ..Happening::default()
    };
    audited(&as_user(cx, &signed_in.user), uow, happening).await?;
    Ok(signed_in)
}

async fn new_user(uow: &mut dyn UnitOfWork, user: User) -> Result<Stored<User>> {
    match uow.users().insert(user).await {
        Err(StoreError::Conflict { index: "email", .. }) => Err(Error::refused(
            Code::UserAlreadyExists,
            "User already exists. Use another email.",
        )),
        other => Ok(other?),
    }
}

/// Records a sign-up that was refused because the address has a user; in a unit of its own, as the refused one is undone.
///
/// # Errors
/// When the store failed.
pub async fn sign_up_refused(cx: &Context, uow: &mut dyn UnitOfWork, email: &Email) -> Result<()> {
    let happening = Happening {
        action: "user.sign_up_refused",
        entity_id: "unknown".to_owned(),
        after: Some(json!({ "email": email })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await
}
