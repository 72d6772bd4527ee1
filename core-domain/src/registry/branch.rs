//! Branches of deployments.

use crate::kernel::{TextError, text};

/// What a branch's name looks like, as a regular expression.
pub const BRANCH_PATTERN: &str = "^[A-Za-z0-9._/-]{1,255}$";

/// The branch that goes live.
pub const PRODUCTION: &str = "production";

fn branch(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    if (1..=255).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(TextError::Malformed)
}

text! {
    /// The branch a site is deployed to, see [`BRANCH_PATTERN`].
    Branch, branch, {
        "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._/-]+$",
        "examples": [PRODUCTION],
    }
}

impl Branch {
    /// The branch that goes live.
    #[must_use]
    pub fn production() -> Self {
        Self(PRODUCTION.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_letters_digits_and_four_signs() {
        for good in [PRODUCTION, "feature/x-1_2.3", &"a".repeat(255)] {
            assert!(Branch::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a:b", "é", "a\n", &"a".repeat(256)] {
            assert!(Branch::parse(bad).is_err(), "{bad}");
        }
    }
}
