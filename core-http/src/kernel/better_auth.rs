//! How better-auth words what our envelope words differently; its clients show these texts.

use core_domain::kernel::{Code, Error, Issue};

/// The code and message to answer with.
pub(super) fn to_better_auth(error: &Error, code: Code, message: String) -> (Code, String) {
    match (error, code) {
        (Error::Invalid(issues), _) => (code, faults(issues)),
        (_, Code::MalformedJson) => (Code::BadRequest, "Invalid JSON in request body".to_owned()),
        (Error::Unauthorized, _) => (code, "Unauthorized".to_owned()),
        _ => (code, message),
    }
}

/// `[body.name] Invalid input: ...; [body.email] ...`
fn faults(issues: &[Issue]) -> String {
    let faults: Vec<String> = issues.iter().map(fault).collect();
    faults.join("; ")
}

fn fault(issue: &Issue) -> String {
    let place: Vec<&str> = std::iter::once("body")
        .chain(issue.path.iter().map(String::as_str))
        .collect();
    let words = match (issue.code, issue.path.last().map(String::as_str)) {
        ("required", _) => "Invalid input: expected string, received undefined",
        (_, Some("email")) if issue.code != "invalid_type" => "Invalid email address",
        ("invalid_type", _) => "Invalid input: wrong type",
        _ => issue.message.as_str(),
    };
    format!("[{}] {words}", place.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_joined_and_say_where_they_are() {
        let issues = vec![
            Issue::field("name", "required", "is required"),
            Issue::field("email", "invalid_format", "must be of the format email"),
        ];
        let (code, message) = to_better_auth(
            &Error::Invalid(issues),
            Code::ValidationError,
            String::new(),
        );
        assert_eq!(code, Code::ValidationError);
        assert_eq!(
            message,
            "[body.name] Invalid input: expected string, received undefined; \
             [body.email] Invalid email address"
        );
    }
}
