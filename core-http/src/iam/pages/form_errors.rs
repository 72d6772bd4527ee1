//! What is wrong with a form, said to a person beside the field it is about.

use core_domain::kernel::{Code, Error, Result};
use http::StatusCode;
use maud::{Markup, html};

use super::layout::alert;
use crate::kernel::status_of;

/// What is wrong with a form.
#[derive(Clone, Debug, Default)]
pub(super) struct FormErrors {
    status: StatusCode,
    /// The field; `None` for the whole form.
    field: Option<&'static str>,
    words: Option<&'static str>,
}

impl FormErrors {
    /// Nothing is.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// What an error says of a form.
    ///
    /// # Errors
    /// The error, when it is not about what was entered.
    pub(super) fn of(error: Error) -> Result<Self> {
        let Some((field, words)) = explained(error.code()) else {
            return Err(error);
        };
        Ok(Self {
            status: status_of(error.code()),
            field,
            words: Some(words),
        })
    }

    /// The status of the page that shows them.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn of_field(&self, name: &str) -> Option<&'static str> {
        self.words.filter(|_| self.field == Some(name))
    }

    /// What is wrong with the whole form.
    pub(super) fn show(&self) -> Markup {
        let words = self.words.filter(|_| self.field.is_none());
        html! { @if let Some(words) = words { (alert(words)) } }
    }
}

/// The field that a refusal is about, and what to say.
const fn explained(code: Code) -> Option<(Option<&'static str>, &'static str)> {
    let (field, words) = match code {
        Code::InvalidEmail => (
            "email",
            "This is no e-mail address. One looks like name@example.org.",
        ),
        Code::UserAlreadyExists => (
            "email",
            "There is an account with this address already. Sign in, or set a new password.",
        ),
        Code::InvalidEmailOrPassword => ("password", "The address or the password is wrong."),
        Code::InvalidPassword => ("password", "The password is wrong."),
        Code::InvalidNameLength => ("name", "A name has 1 to 32 characters."),
        Code::PasswordTooShort => ("password", "This is too short. Take 8 characters or more."),
        Code::PasswordTooLong => ("password", "This is too long for a password."),
        Code::PasswordTooCommon => (
            "password",
            "Many people use this password. Take one that is harder to guess.",
        ),
        Code::InvalidCode | Code::InvalidBackupCode => (
            "code",
            "This code is wrong, or was used. Wait for the next one, and try again.",
        ),
        Code::NotFound => (
            "user_code",
            "There is no such code. Look at your device once more.",
        ),
        Code::ExpiredToken => (
            "user_code",
            "This code is over. Start again on your device to get a new one.",
        ),
        code => {
            return match of_form(code) {
                Some(words) => Some((None, words)),
                None => None,
            };
        }
    };
    Some((Some(field), words))
}

const fn of_form(code: Code) -> Option<&'static str> {
    match code {
        Code::BannedUser => Some("This account is blocked. Ask whoever runs the platform."),
        Code::EmailNotVerified => Some(
            "Your address is not confirmed yet. Open the link in the mail we sent you, and sign in again.",
        ),
        Code::InvalidToken => Some("This link is not valid any more. Ask for a new one."),
        Code::InvalidState => Some("This was decided already, in another way."),
        Code::AlreadyMember => Some("You are a member of this organization already."),
        Code::PlatformSuspended => Some("The platform of this organization is suspended."),
        Code::Forbidden => Some("You may not give a key this access."),
        Code::Conflict => Some(
            "You have too many keys already, or the organization has no platform. Delete a key first.",
        ),
        Code::MembershipLimitReached => Some("This organization cannot have more members."),
        _ => None,
    }
}
