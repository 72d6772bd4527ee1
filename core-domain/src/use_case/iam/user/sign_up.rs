//! Sign-up with an email address and a password.

use serde_json::json;

use super::password::insert_account;
use crate::access::{AuditEvent, PublicScope, audited, unaudited, unowned_records};
use crate::iam::{PasswordHash, User, UserQuery, VerificationPurpose};
use crate::kernel::{
    Code, Context, Email, Error, Line, PersonName, Result, StoreError, Stored, Timestamp, UserId,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, SignedIn};
use crate::use_case::iam::verification::{self, Links, Recipient};

const PURPOSE: VerificationPurpose = VerificationPurpose::EmailVerification;

/// The data of a sign-up.
#[derive(Clone, Debug)]
pub struct SignUp {
    /// The display name; may be empty.
    pub name: PersonName,
    /// The email address, which must be unique.
    pub email: Email,
    /// The URL of the user's picture.
    pub image: Option<Line<0, 2048>>,
    /// The hash of the password, which has passed [`crate::iam::check_password`].
    pub password_hash: PasswordHash,
    /// Whether the browser keeps the session cookie after it is closed.
    pub remembered: bool,
}

/// Creates a user with a password account and a session.
///
/// # Errors
/// `USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL` if the address has a user.
pub async fn sign_up(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    input: &SignUp,
) -> Result<SignedIn> {
    let new = NewUser {
        name: input.name.clone().into(),
        email: input.email.clone(),
        email_verified: false,
        image: input.image.clone(),
    };
    // One audit entry, that of the sign-up, covers user, account and session.
    let user = insert_user(cx, uow, new).await?;
    insert_account(cx, uow, &user.id, &input.password_hash, None).await?;
    let signed_in = session::create(cx, uow, user, input.remembered, None).await?;
    let event = AuditEvent {
        action: "user.signed_up",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({ "email": input.email, "sessionId": signed_in.session.id })),
        ..AuditEvent::default()
    };
    audited::record_event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(signed_in)
}

/// Creates a user who must verify their address before they can sign in, and mails a verification link. If the
/// address already has a user, that user is notified by mail and the response contains an invented user. Thus the
/// response reveals nothing about the address.
///
/// # Errors
/// `USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL` if a concurrent request signed up with the address. The call can be
/// repeated.
pub async fn sign_up_unconfirmed(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    input: &SignUp,
    links: Links<'_>,
    sign_in_page: &str,
) -> Result<User> {
    let new = NewUser {
        name: input.name.clone().into(),
        email: input.email.clone(),
        email_verified: false,
        image: input.image.clone(),
    };
    let with_email = UserQuery::WithEmail(input.email.clone());
    if let Some(known) = unowned_records::<User>(uow).first(&with_email).await? {
        // The same work is done as for a free address.
        let links = Links {
            link: &|_| sign_in_page.to_owned(),
            ..links
        };
        let purpose = VerificationPurpose::AlreadyRegistered;
        verification::send(
            cx,
            uow,
            purpose,
            &input.email,
            None,
            links,
            Recipient::Address,
        )
        .await?;
        record_refusal(cx, uow, known.id.to_string(), &input.email).await?;
        return Ok(new.user(cx, uow.now().await?));
    }
    let user = insert_user(cx, uow, new).await?;
    insert_account(cx, uow, &user.id, &input.password_hash, None).await?;
    verification::send(
        cx,
        uow,
        PURPOSE,
        &input.email,
        None,
        links,
        Recipient::Address,
    )
    .await?;
    let event = AuditEvent {
        action: "user.signed_up",
        entity_id: user.id.to_string(),
        details: Some(json!({ "email": input.email })),
        ..AuditEvent::default()
    };
    audited::record_event(&session::as_user(cx, &user), uow, event).await?;
    Ok(user.into_inner())
}

/// The properties of a new user.
#[derive(Clone, Debug)]
pub(super) struct NewUser {
    pub(super) name: Line<0, 255>,
    pub(super) email: Email,
    pub(super) email_verified: bool,
    pub(super) image: Option<Line<0, 2048>>,
}

impl NewUser {
    fn user(self, cx: &Context, now: Timestamp) -> User {
        User {
            id: UserId::generate(now, cx.entropy.as_ref()),
            name: self.name,
            email: self.email,
            email_verified: self.email_verified,
            image: self.image,
            banned_at: None,
            ban_reason: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// Inserts a user. Writes no audit entry, because it is a part of an audited change.
pub(super) async fn insert_user(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    new: NewUser,
) -> Result<Stored<User>> {
    let user = new.user(cx, uow.now().await?);
    unaudited::insert(uow, user)
        .await
        .map_err(map_email_conflict)
}

fn map_email_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "email", .. }) => Error::refused(
            Code::UserAlreadyExists,
            "User already exists. Use another email.",
        ),
        error => error,
    }
}

/// Records a sign-up that was refused because the address has a user. Needs a unit of work of its own, because the
/// refused one is rolled back.
///
/// # Errors
/// Only those of the store.
pub async fn record_refused_sign_up(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
) -> Result<()> {
    record_refusal(cx, uow, "unknown".to_owned(), email).await
}

async fn record_refusal(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    entity_id: String,
    email: &Email,
) -> Result<()> {
    let event = AuditEvent {
        action: "user.sign_up_refused",
        entity_id,
        details: Some(json!({ "email": email })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}
