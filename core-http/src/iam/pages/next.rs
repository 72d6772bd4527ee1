//! The page that a person sees after signing in or confirming their identity. It is always a path of IAM.

use core_domain::kernel::{Code, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::layout;
use crate::iam::config::{Iam, invalid_target, with_parameters};
use crate::iam::target::Target;
use crate::kernel::PageOr;

/// Path of the account page, the default target.
pub(super) const ACCOUNT: &str = "/account";

/// Path of the page that asks for a fresh proof of identity.
pub(super) const CONFIRM: &str = "/account/confirm";

/// The query of a page that redirects afterwards.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct NextQuery {
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    pub(super) next: Option<Target>,
}

/// Returns the path to redirect to. Default: the account page.
///
/// # Errors
/// Returns `INVALID_CALLBACK_URL` for a URL of another site, and for a text that browsers could interpret as one.
pub(super) fn next_path(named: Option<&str>) -> Result<&str> {
    let Some(path) = named.filter(|path| !path.is_empty()) else {
        return Ok(ACCOUNT);
    };
    // Browsers treat a backslash as a slash and ignore control characters.
    let plain = path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    let ours = path.starts_with('/') && !path.starts_with("//");
    if plain && ours {
        Ok(path)
    } else {
        Err(invalid_target())
    }
}

/// Returns a path with `next` in its query, unless `next` is the default.
pub(super) fn with_next(path: &str, next: &str) -> String {
    if next == ACCOUNT {
        return path.to_owned();
    }
    with_parameters(path.to_owned(), &[("next", next)])
}

/// Redirects to the sign-in page and from there back to this path.
pub(super) fn sign_in_first(iam: &Iam, back: &str) -> PageOr {
    layout::redirect(iam, &with_next("/sign-in", back))
}

/// Redirects to the page that asks for a fresh proof, and from there back to this path.
pub(super) fn confirm_first(iam: &Iam, back: &str) -> PageOr {
    layout::redirect(iam, &with_next(CONFIRM, back))
}

/// Redirects to the account page after an action. The page shows the notice if the action succeeded. Without a session
/// the target is the sign-in page, and without a fresh proof the page that asks for one. A passkey that no longer
/// exists is not an error.
pub(super) fn back_to_account(iam: &Iam, outcome: Result<()>, notice: &str) -> Result<PageOr> {
    let Err(error) = outcome else {
        let target = with_parameters(ACCOUNT.to_owned(), &[("notice", notice)]);
        return Ok(layout::redirect(iam, &target));
    };
    match error.code() {
        Code::Unauthorized => Ok(layout::redirect(iam, "/sign-in")),
        Code::StepUpRequired => Ok(confirm_first(iam, ACCOUNT)),
        Code::PasskeyNotFound => Ok(layout::redirect(iam, ACCOUNT)),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_site_are_accepted_as_next() {
        for (named, path) in [
            (None, "/account"),
            (Some(""), "/account"),
            (
                Some("/device?user_code=BCDF-GHJK"),
                "/device?user_code=BCDF-GHJK",
            ),
        ] {
            assert_eq!(next_path(named).ok(), Some(path));
        }
        for foreign in [
            "//evil.net",
            "/\\evil.net",
            "/\t/evil.net",
            "https://evil.net/",
            "javascript:alert(1)",
            "account",
            "/caf\u{e9}",
        ] {
            assert!(next_path(Some(foreign)).is_err(), "{foreign}");
        }
    }
}
