//! Errors as OAuth clients read them (RFC 6749, section 5.2).

use core_domain::kernel::{Code, Error};
use http::StatusCode;
use serde_json::{Value, json};

use super::status::status_of;

/// The body of an error for a client that sent a form.
pub(super) fn body(error: &Error, message: &str) -> Value {
    json!({
        "error": word(error.code()),
        "error_description": description(error, message),
    })
}

/// The word of RFC 6749 or RFC 8628 for a code.
fn word(code: Code) -> &'static str {
    if code.as_str().starts_with(|c: char| c.is_ascii_lowercase()) {
        return code.as_str();
    }
    match status_of(code) {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Code::AccessDenied.as_str(),
        // A client that polls goes on, and more slowly.
        StatusCode::TOO_MANY_REQUESTS => Code::SlowDown.as_str(),
        StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request",
    }
}

/// The message, with what is wrong where; of the characters that RFC 6749 allows there.
fn description(error: &Error, message: &str) -> String {
    let issues = match error {
        Error::Invalid(issues) => issues.as_slice(),
        _ => &[],
    };
    let mut text = message.to_owned();
    for issue in issues {
        text.push_str(&format!(" {} {}.", issue.path.join("."), issue.message));
    }
    let allowed = |c: &char| matches!(c, ' '..='!' | '#'..='[' | ']'..='~');
    text.chars().filter(allowed).collect()
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Issue;

    use super::*;

    #[test]
    fn every_code_has_a_word_in_lower_case() {
        for code in Code::ALL {
            let word = word(*code);
            assert!(
                word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{code}"
            );
        }
        assert_eq!(word(Code::SlowDown), "slow_down");
        assert_eq!(word(Code::ValidationError), "invalid_request");
        assert_eq!(word(Code::InternalError), "server_error");
    }

    #[test]
    fn a_description_names_what_is_wrong_in_allowed_characters() {
        let error = Error::Invalid(vec![Issue::field(
            "client_id",
            "required",
            "is \"required\"",
        )]);
        let told = description(&error, "The request is not valid.");
        assert_eq!(told, "The request is not valid. client_id is required.");
    }
}
