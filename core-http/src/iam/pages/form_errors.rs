//! Errors of forms, shown next to the field that they concern. Messages that several pages use are defined here, the
//! others with their page.

use core_domain::kernel::{Code, Error, Result};
use http::StatusCode;
use maud::{Markup, html};

use super::layout::{alert, html_page};
use crate::iam::config::Iam;
use crate::kernel::{Output, PageOr, status_of};

/// The field that a refusal concerns, `None` for the whole form, and the message.
pub(super) type FieldMessage = (Option<&'static str>, &'static str);

/// The error of a form, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct FormErrors {
    status: StatusCode,
    /// The field with the error; `None` for the whole form.
    field: Option<&'static str>,
    words: Option<&'static str>,
}

impl FormErrors {
    /// Creates the value for a form without errors.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Converts an error into the message for its form.
    ///
    /// # Errors
    /// Returns the error itself if it does not concern the entered values.
    pub(super) fn of(error: Error) -> Result<Self> {
        Self::on_page(error, |_| None)
    }

    /// Converts an error into the message for its form, on a page with messages of its own.
    ///
    /// # Errors
    /// Returns the error itself if it does not concern the entered values.
    pub(super) fn on_page(
        error: Error,
        own: impl FnOnce(Code) -> Option<FieldMessage>,
    ) -> Result<Self> {
        let code = error.code();
        let Some((field, words)) = own(code).or_else(|| shared_message(code)) else {
            return Err(error);
        };
        Ok(Self {
            status: status_of(error.code()),
            field,
            words: Some(words),
        })
    }

    /// Moves the message to another field, on a page that uses a different field name.
    pub(super) fn about(self, field: &'static str) -> Self {
        Self {
            field: self.field.map(|_| field),
            ..self
        }
    }

    /// Returns the status code of the page that shows the errors.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns a page with the form and the status code of its errors.
    pub(super) fn page(&self, iam: &Iam, title: &str, content: &Markup) -> PageOr {
        let page = html_page(iam, title, !self.status.is_success(), content);
        PageOr::Page(Output::new(page).status(self.status))
    }

    pub(super) fn of_field(&self, name: &str) -> Option<&'static str> {
        self.words.filter(|_| self.field == Some(name))
    }

    /// Renders the message for the whole form.
    pub(super) fn show(&self) -> Markup {
        let words = self.words.filter(|_| self.field.is_none());
        html! { @if let Some(words) = words { (alert(words)) } }
    }
}

/// Returns the message for a refusal that several pages share.
fn shared_message(code: Code) -> Option<FieldMessage> {
    let in_field = match code {
        Code::InvalidEmail => (
            "email",
            "This is not a valid e-mail address. An address looks like name@example.org.",
        ),
        Code::UserAlreadyExists => (
            "email",
            "An account with this address already exists. Sign in, or set a new password.",
        ),
        Code::InvalidEmailOrPassword => ("password", "The address or the password is wrong."),
        Code::InvalidPassword => ("password", "The password is wrong."),
        Code::PasswordTooShort => (
            "password",
            "This password is too short. Use 8 characters or more.",
        ),
        Code::PasswordTooLong => (
            "password",
            "This password is too long. Use at most 128 characters.",
        ),
        Code::PasswordTooCommon => (
            "password",
            "Many people use this password. Choose one that is harder to guess.",
        ),
        Code::InvalidCode | Code::InvalidBackupCode => (
            "code",
            "This code is wrong, or it was already used. Wait for the next code and try again.",
        ),
        code => return Some((None, of_form(code)?)),
    };
    let (field, words) = in_field;
    Some((Some(field), words))
}

fn of_form(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::BannedUser | Code::AccessDenied => {
            "This account is blocked. Contact the operator of the platform."
        }
        Code::EmailNotVerified => {
            "Your address is not confirmed yet. Open the link in the mail that we sent you, then sign in again."
        }
        Code::InvalidToken => "This link is not valid any more. Ask for a new one.",
        Code::InvalidState => "The opposite decision was already made.",
        Code::AlreadyMember => "You are already a member of this organization.",
        Code::PlatformSuspended => "The platform of this organization is suspended.",
        _ => return None,
    })
}
