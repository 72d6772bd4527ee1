//! The pages, as a browser without JavaScript uses them.

mod account;
mod api_keys;
mod devices;
mod errors;
mod forms;
mod invitations;
mod layout;
mod links;
mod passkeys;
mod security;
mod two_factor;

use core_domain::kernel::Caller;
use serde_json::Value;

use super::{ADA, EVE, FORM_CONTENT_TYPE, Headers, cookies};
use crate::world::{Answer, ORIGIN, PASSWORD, Person, World};

pub(super) const ACCEPT_HTML: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
pub(super) const OWN_ORIGIN: (&str, &str) = ("origin", ORIGIN);

impl World {
    /// Requests a page as a browser does.
    pub(super) async fn page(&self, path: &str, headers: Headers<'_>) -> Answer {
        let headers = [&[ACCEPT_HTML], headers].concat();
        let nobody = Caller::Anonymous;
        self.iam
            .send(&nobody, "GET", path, &headers, Value::Null)
            .await
    }

    /// Requests a page with the session cookie of a person.
    pub(super) async fn page_of(&self, person: &Person, path: &str) -> Answer {
        self.page(path, &[("cookie", &person.cookie)]).await
    }

    /// Posts a form as a browser does, with these additional headers.
    pub(super) async fn form(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: Headers<'_>,
    ) -> Answer {
        let headers = [&[ACCEPT_HTML, ("content-type", FORM_CONTENT_TYPE)], headers].concat();
        let text = serde_urlencoded::to_string(fields).unwrap();
        self.post_with(path, &headers, &text).await
    }

    /// Posts a form of our own page with the session cookie of a person.
    pub(super) async fn form_of(
        &self,
        person: &Person,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Answer {
        self.form(path, fields, &[OWN_ORIGIN, ("cookie", &person.cookie)])
            .await
    }
}

/// Returns the text of a page, which must have this status.
#[track_caller]
pub(super) fn text(answer: &Answer, status: u16) -> String {
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert_eq!(answer.status, status, "{text}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    text
}

/// Returns the target of a redirect with status 303.
#[track_caller]
pub(super) fn location(answer: &Answer) -> &str {
    let text = String::from_utf8_lossy(&answer.bytes);
    assert_eq!(answer.status, 303, "{text}");
    answer.header("location")
}
