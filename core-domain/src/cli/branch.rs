//! Branches of deployments.

/// The branch that goes live.
pub const PRODUCTION: &str = "production";

/// What a branch's name looks like, as a regular expression.
pub const BRANCH_PATTERN: &str = "^[A-Za-z0-9._/-]{1,255}$";

/// Tells whether a text names a branch, see [`BRANCH_PATTERN`].
#[must_use]
pub fn is_branch(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    (1..=255).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_letters_digits_and_four_signs() {
        for good in [PRODUCTION, "feature/x-1_2.3", &"a".repeat(255)] {
            assert!(is_branch(good), "{good}");
        }
        for bad in ["", "a b", "a:b", "é", "a\n", &"a".repeat(256)] {
            assert!(!is_branch(bad), "{bad}");
        }
    }
}
