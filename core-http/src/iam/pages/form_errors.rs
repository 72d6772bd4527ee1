//! What is wrong with a form, said to a person beside the field it is about. What several pages say stands here; what a page
//! alone says stands with it.

use core_domain::kernel::{Code, Error, Result};
use http::StatusCode;
use maud::{Markup, html};

use super::layout::{alert, html_page};
use crate::iam::config::Iam;
use crate::kernel::{Output, PageOr, status_of};

/// The field that a refusal is about, `None` for the whole form, and what to say.
pub(super) type Words = (Option<&'static str>, &'static str);

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
        Self::on_page(error, |_| None)
    }

    /// As [`FormErrors::of`], on a page that has words of its own.
    ///
    /// # Errors
    /// As [`FormErrors::of`].
    pub(super) fn on_page(error: Error, own: impl FnOnce(Code) -> Option<Words>) -> Result<Self> {
        let code = error.code();
        let Some((field, words)) = own(code).or_else(|| shared(code)) else {
            return Err(error);
        };
        Ok(Self {
            status: status_of(error.code()),
            field,
            words: Some(words),
        })
    }

    /// The same about another field, on a page whose field has another name.
    pub(super) fn about(self, field: &'static str) -> Self {
        Self {
            field: self.field.map(|_| field),
            ..self
        }
    }

    /// The status of the page that shows them.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns a page with the form, in the status of the errors.
    pub(super) fn page(&self, iam: &Iam, title: &str, content: &Markup) -> PageOr {
        let page = html_page(iam, title, !self.status.is_success(), content);
        PageOr::Page(Output::new(page).status(self.status))
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

/// What several pages say of a refusal.
fn shared(code: Code) -> Option<Words> {
    let in_field = match code {
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
        code => return Some((None, of_form(code)?)),
    };
    let (field, words) = in_field;
    Some((Some(field), words))
}

fn of_form(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::BannedUser | Code::AccessDenied => {
            "This account is blocked. Ask whoever runs the platform."
        }
        Code::EmailNotVerified => {
            "Your address is not confirmed yet. Open the link in the mail we sent you, and sign in again."
        }
        Code::InvalidToken => "This link is not valid any more. Ask for a new one.",
        Code::InvalidState => "This was decided already, in another way.",
        Code::AlreadyMember => "You are a member of this organization already.",
        Code::PlatformSuspended => "The platform of this organization is suspended.",
        _ => return None,
    })
}
