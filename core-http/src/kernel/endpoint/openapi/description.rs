//! The descriptions of operations and of error responses, derived from rows.

use core_domain::access::Requirement;
use core_domain::gateway::{RateClass, RateKind, RatePlan};
use core_domain::kernel::Code;
use core_domain::shared::RESPONSE_LIFETIME;
use http::Method;

use super::parameters::takes_query;
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::endpoint::service_error::ServiceError;

/// Returns the description of an operation in Markdown: that of its row, followed by the row's declarations about
/// callers, headers, dry runs, rate limits and aliases.
///
/// # Errors
/// [`ServiceError::Schema`] if the schema of the query cannot be compiled.
pub(super) fn of_operation(endpoint: &Endpoint) -> Result<String, ServiceError> {
    let mut paragraphs = vec![
        endpoint.row.description.to_owned(),
        callers(endpoint),
        features(endpoint)?,
        rate_limit(endpoint.rate_class()),
        aliases(&endpoint.row.aliases),
    ];
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    Ok(paragraphs.join("\n\n"))
}

/// Describes which callers the endpoint accepts.
fn callers(endpoint: &Endpoint) -> String {
    let text = match endpoint.requirement() {
        Requirement::Public => "No credential is required.",
        Requirement::SignedIn => "Any authenticated caller can use this operation.",
        Requirement::Person => "Requires a signed-in person. API keys are refused.",
        Requirement::Account => {
            "Requires a signed-in person, or a personal API key of that person."
        }
        Requirement::Session => "Requires a session of a person. API keys are refused.",
        Requirement::Operator => "Operators and services only.",
        Requirement::Service => {
            "Services only, with the service key or a service token as the credential."
        }
        Requirement::NewOrganization => {
            "Requires a session of a person who can create an organization. API keys are refused."
        }
        Requirement::Permission(permission) => {
            let place = place(endpoint.path());
            return format!("Requires the permission `{}` {place}.", permission.as_str());
        }
        Requirement::SessionPermission(permission) => {
            let place = place(endpoint.path());
            return format!(
                "Requires a session of a person with the permission `{}` {place}. API keys are \
                 refused.",
                permission.as_str()
            );
        }
        _ => "",
    };
    text.to_owned()
}

/// Returns where a caller of this path needs a permission.
fn place(path: &str) -> &'static str {
    if path.contains("{platformId}") {
        "on the platform"
    } else if path.contains("{orgId}") {
        "in the organization"
    } else if path.contains("{jobId}") {
        "on the platform of the job"
    } else {
        "for the platform or organization that the request concerns"
    }
}

/// Describes the request headers and query parameters that many endpoints share.
fn features(endpoint: &Endpoint) -> Result<String, ServiceError> {
    let mut sentences = Vec::new();
    if endpoint.takes_idempotency_keys() {
        let hours = RESPONSE_LIFETIME.as_secs() / 3_600;
        sentences.push(format!(
            "Accepts `Idempotency-Key`: a repeated request with the same key gets the stored \
             response for {hours} hours, and is not executed again."
        ));
    }
    if endpoint.honours_if_match() {
        sentences.push(
            "Honours `If-Match`: the request is refused if the record has none of these entity \
             tags."
                .to_owned(),
        );
    }
    if endpoint.row.if_none_match {
        sentences.push(
            "Honours `If-None-Match: *`: the request is refused if the record exists.".to_owned(),
        );
    }
    if endpoint.shapes()?.answer.etag && endpoint.method() == Method::GET {
        sentences.push(
            "Honours `If-None-Match`: the response is 304 if the record still has one of these \
             entity tags."
                .to_owned(),
        );
    }
    if takes_query(endpoint, "dryRun")? {
        sentences.push(
            "Supports dry runs: `dryRun=true` returns the plan and changes nothing.".to_owned(),
        );
    }
    Ok(sentences.join(" "))
}

/// Describes the rate class of an endpoint, with its default quota. Empty for the default class.
fn rate_limit(class: RateClass) -> String {
    if class == RateClass::Default {
        return String::new();
    }
    let plan = RatePlan::default();
    let policy = plan.policy(RateKind::from(class));
    format!(
        "Has the rate limit `{}`: by default, {} requests of a client in {} seconds.",
        policy.name(),
        policy.quota(),
        policy.window().as_secs()
    )
}

/// Describes the other paths of an endpoint. Empty if there are none.
fn aliases(paths: &[&str]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("Also available at {}.", paths.join(", "))
}

/// Returns the description of an error response: a Markdown list of its codes with the cause of each.
pub(super) fn of_codes(codes: &[Code]) -> String {
    let line = |code: &Code| {
        let cause = with_small_letter(code.description());
        format!("- `{}`: {cause}", code.as_str())
    };
    let lines: Vec<String> = codes.iter().map(line).collect();
    lines.join("\n")
}

/// Returns a sentence with a small first letter, unless its first word is an abbreviation.
fn with_small_letter(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next();
    let second = letters.clone().next();
    match first {
        Some(first) if !second.is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => sentence.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_start_with_a_small_letter_unless_with_an_abbreviation() {
        for (sentence, expected) in [
            ("Another record has it.", "another record has it."),
            ("A record has it.", "a record has it."),
            ("OAuth: it has expired.", "OAuth: it has expired."),
            ("`id` is missing.", "`id` is missing."),
            ("", ""),
        ] {
            assert_eq!(with_small_letter(sentence), expected);
        }
    }

    #[test]
    fn error_responses_list_every_code() {
        let text = of_codes(&[Code::NotFound, Code::SlugTaken]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("- `NOT_FOUND`: "), "{text}");
        assert!(lines[1].starts_with("- `SLUG_TAKEN`: "), "{text}");
    }
}
