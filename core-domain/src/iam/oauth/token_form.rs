//! What tokens look like, so that none is taken for one of another kind.

/// What access tokens begin with. Session tokens are of letters and digits alone.
pub const ACCESS_TOKEN_PREFIX: &str = "cat_";

/// What refresh tokens begin with.
pub const REFRESH_TOKEN_PREFIX: &str = "crt_";

/// Tells whether a text has the form of an access token.
#[must_use]
pub fn is_access_token(text: &str) -> bool {
    let secret = text.strip_prefix(ACCESS_TOKEN_PREFIX);
    secret.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_session_token_and_no_refresh_token_has_the_form_of_an_access_token() {
        assert!(is_access_token("cat_abcXYZ019"));
        for other in [
            "", "cat_", "catabc", "cat_a.b", "cat_a b", "crt_abc", "CAT_abc",
        ] {
            assert!(!is_access_token(other), "{other}");
        }
    }
}
