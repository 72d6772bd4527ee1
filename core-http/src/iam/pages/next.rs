//! Where a person goes on to after signing in: a path of ours, and nowhere else.

use core_domain::kernel::{Code, Result};
use schemars::JsonSchema;
use serde::Deserialize;

use super::layout;
use crate::iam::config::{Iam, invalid_target, with_parameters};
use crate::iam::target::Target;
use crate::kernel::PageOr;

/// The page that people land on when none is named.
pub(super) const ACCOUNT: &str = "/account";

/// The page that people are sent to whose proof is not fresh.
pub(super) const CONFIRM: &str = "/account/confirm";

/// The query of a page that leads on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct NextQuery {
    /// A path of ours.
    pub(super) next: Option<Target>,
}

/// The path to go on to; the account when none is named.
///
/// # Errors
/// `INVALID_CALLBACK_URL` for an address that is not ours, or that browsers could read as one.
pub(super) fn next_path(named: Option<&str>) -> Result<&str> {
    let Some(path) = named.filter(|path| !path.is_empty()) else {
        return Ok(ACCOUNT);
    };
    // Browsers read a backslash as a slash and leave out control characters.
    let plain = path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    let ours = path.starts_with('/') && !path.starts_with("//");
    if plain && ours {
        Ok(path)
    } else {
        Err(invalid_target())
    }
}

/// A path with where to go on to afterwards, unless that is the account anyway.
pub(super) fn leading_to(path: &str, next: &str) -> String {
    if next == ACCOUNT {
        return path.to_owned();
    }
    with_parameters(path.to_owned(), &[("next", next)])
}

/// The way to sign in, and back.
pub(super) fn sign_in_first(iam: &Iam, back: &str) -> PageOr {
    layout::to(iam, &leading_to("/sign-in", back))
}

/// The way to a fresh proof, and back.
pub(super) fn confirm_first(iam: &Iam, back: &str) -> PageOr {
    layout::to(iam, &leading_to(CONFIRM, back))
}

/// Back to the account when something was done there, which it tells; whoever must prove who they are does that first, whoever's
/// session has ended signs in, and what is gone already is not shown any more.
pub(super) fn back_to_account(iam: &Iam, outcome: Result<()>, notice: &str) -> Result<PageOr> {
    let Err(error) = outcome else {
        let target = with_parameters(ACCOUNT.to_owned(), &[("notice", notice)]);
        return Ok(layout::to(iam, &target));
    };
    match error.code() {
        Code::Unauthorized => Ok(layout::to(iam, "/sign-in")),
        Code::StepUpRequired => Ok(confirm_first(iam, ACCOUNT)),
        Code::PasskeyNotFound => Ok(layout::to(iam, ACCOUNT)),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_ours_are_gone_on_to() {
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
