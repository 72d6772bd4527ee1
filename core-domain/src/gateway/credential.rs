//! The credentials of requests.

use crate::iam::API_KEY_PREFIX;
use crate::kernel::Secret;

/// Maximum length of a credential in bytes. A longer credential is malformed.
const MAX_CREDENTIAL_BYTES: usize = 8 * 1024;

/// The credential of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The token of `Authorization: Bearer`: the service key or a session token.
    Bearer(Secret),
    /// The value of `x-api-key`: an API key.
    ApiKey(Secret),
}

/// The reasons why the credential of a request is refused without a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// A credential header occurs more than once, which is ambiguous. Refused with 400.
    #[error("The request carries a credential header more than once.")]
    Repeated,
    /// The text cannot be a credential. Refused with 401; the other header is not tried.
    #[error("The credential is malformed.")]
    Malformed,
}

fn parse_visible_ascii(text: &[u8]) -> Result<&str, CredentialError> {
    let fine = !text.is_empty()
        && text.len() <= MAX_CREDENTIAL_BYTES
        && text.iter().all(u8::is_ascii_graphic);
    if !fine {
        return Err(CredentialError::Malformed);
    }
    std::str::from_utf8(text).map_err(|_| CredentialError::Malformed)
}

fn bearer(value: &[u8]) -> Result<Credential, CredentialError> {
    let space = value
        .iter()
        .position(|b| *b == b' ')
        .ok_or(CredentialError::Malformed)?;
    let (scheme, rest) = value.split_at(space);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(CredentialError::Malformed);
    }
    let token_at = rest
        .iter()
        .position(|b| *b != b' ')
        .ok_or(CredentialError::Malformed)?;
    parse_visible_ascii(&rest[token_at..]).map(|token| Credential::Bearer(Secret::new(token)))
}

fn api_key(value: &[u8]) -> Result<Credential, CredentialError> {
    let key = parse_visible_ascii(value)?;
    if key.len() > API_KEY_PREFIX.len() && key.starts_with(API_KEY_PREFIX) {
        Ok(Credential::ApiKey(Secret::new(key)))
    } else {
        Err(CredentialError::Malformed)
    }
}

/// Returns the credential in the lines of `Authorization` and `x-api-key`. If both headers are present, `Authorization`
/// decides. A malformed credential is never replaced by the other header.
///
/// # Errors
/// [`CredentialError::Repeated`] if a header has two lines; [`CredentialError::Malformed`] if the text cannot be a
/// credential.
pub fn read_credential<'h>(
    authorization: impl IntoIterator<Item = &'h [u8]>,
    x_api_key: impl IntoIterator<Item = &'h [u8]>,
) -> Result<Option<Credential>, CredentialError> {
    match (single_line(authorization)?, single_line(x_api_key)?) {
        (Some(value), _) => bearer(value).map(Some),
        (None, Some(value)) => api_key(value).map(Some),
        (None, None) => Ok(None),
    }
}

/// Returns the line of a header that may occur only once.
fn single_line<'h>(
    lines: impl IntoIterator<Item = &'h [u8]>,
) -> Result<Option<&'h [u8]>, CredentialError> {
    let mut lines = lines.into_iter();
    match (lines.next(), lines.next()) {
        (_, Some(_)) => Err(CredentialError::Repeated),
        (line, None) => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(token: &str) -> Credential {
        Credential::Bearer(Secret::new(token))
    }

    #[test]
    fn line_22_the_scheme_is_case_insensitive_and_the_token_is_unchanged() {
        for value in ["Bearer a.B-c==", "bearer a.B-c==", "BEARER  a.B-c=="] {
            assert_eq!(
                read_credential([value.as_bytes()], []),
                Ok(Some(session("a.B-c=="))),
                "{value}"
            );
        }
    }

    #[test]
    fn line_22_a_bad_bearer_does_not_fall_through_to_the_api_key() {
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Basic abc",
            "Bearer a b",
            "Bearer \u{e9}",
            "abc",
        ] {
            assert_eq!(
                read_credential([value.as_bytes()], [b"core_abc".as_slice()]),
                Err(CredentialError::Malformed),
                "{value}"
            );
        }
    }

    #[test]
    fn line_22_a_header_on_two_lines_is_refused_even_when_both_agree() {
        let line: &[u8] = b"Bearer a";
        assert_eq!(
            read_credential([line, line], []),
            Err(CredentialError::Repeated)
        );
        let key: &[u8] = b"core_a";
        assert_eq!(
            read_credential([], [key, key]),
            Err(CredentialError::Repeated)
        );
    }

    #[test]
    fn api_keys_begin_with_core() {
        assert_eq!(
            read_credential([], [b"core_abc".as_slice()]),
            Ok(Some(Credential::ApiKey(Secret::new("core_abc"))))
        );
        for value in ["abc", "core_", "", "CORE_abc"] {
            assert_eq!(
                read_credential([], [value.as_bytes()]),
                Err(CredentialError::Malformed)
            );
        }
    }

    #[test]
    fn line_22_credentials_longer_than_8_kib_are_malformed() {
        let long = format!("Bearer {}", "x".repeat(MAX_CREDENTIAL_BYTES + 1));
        assert_eq!(
            read_credential([long.as_bytes()], []),
            Err(CredentialError::Malformed)
        );
    }

    #[test]
    fn without_headers_there_is_no_credential() {
        assert_eq!(read_credential([], []), Ok(None));
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        assert!(!format!("{:?}", session("top-secret")).contains("top"));
    }

    proptest! {
        #[test]
        fn line_22_a_token_is_returned_unchanged_or_refused(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let line = [b"Bearer ".as_slice(), &value].concat();
            if let Ok(Some(Credential::Bearer(token))) = read_credential([line.as_slice()], []) {
                let written: Vec<u8> = value.iter().copied().skip_while(|b| *b == b' ').collect();
                prop_assert_eq!(token.expose().as_bytes(), written.as_slice());
            }
        }
    }
}
