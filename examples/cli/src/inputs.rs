//! Checks of names, ids and addresses, before anything is sent. The command line and `core.toml` use the same ones.
//!
//! The limits are those of the server; a test compares them with its OpenAPI documents.

use std::net::IpAddr;

use core_client::types::environment::Environment;

/// Maximum length of an id of the server.
pub(crate) const MAX_ID_LENGTH: usize = 128;

/// Maximum length of a branch.
pub(crate) const MAX_BRANCH_LENGTH: usize = 255;

/// Maximum length of the description of a deployment in characters.
pub(crate) const MAX_MESSAGE_LENGTH: usize = 384;

/// Maximum length of the name of a worker or site in characters.
pub(crate) const MAX_RESOURCE_LENGTH: usize = 64;

/// Maximum length of the id and of the version of a feature in characters.
pub(crate) const MAX_FEATURE_LENGTH: usize = 100;

/// Maximum length of the name or id of a stack template in characters.
pub(crate) const MAX_STACK_LENGTH: usize = 128;

/// Maximum length of the version of a stack template.
pub(crate) const MAX_VERSION_LENGTH: usize = 64;

/// Maximum length of the name of a secret.
pub(crate) const MAX_SECRET_NAME_LENGTH: usize = 128;

/// Maximum length of the name of a profile.
const MAX_PROFILE_LENGTH: usize = 64;

/// Maximum length of a hostname, without the dot at its end.
const MAX_HOSTNAME_LENGTH: usize = 253;

/// Maximum length of a label of a hostname.
const MAX_LABEL_LENGTH: usize = 63;

/// The reason why an input is invalid, as the end of a sentence that names the input.
type Checked<T = String> = Result<T, String>;

fn has_only(text: &str, max: usize, is_allowed: impl Fn(u8) -> bool) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// Checks the id of a record.
pub(crate) fn parse_id(text: &str) -> Checked {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    // A dot segment would lead to another path.
    if has_only(text, MAX_ID_LENGTH, is_allowed) && !matches!(text, "." | "..") {
        return Ok(text.to_owned());
    }
    Err(format!(
        "an id has 1 to {MAX_ID_LENGTH} letters, digits and the characters _ . : -"
    ))
}

/// Checks the id or slug of a platform.
pub(crate) fn parse_platform(text: &str) -> Checked {
    parse_id(text).map_err(|_| {
        "it is neither an id nor a slug of a platform; `core-cli platforms` lists yours".to_owned()
    })
}

/// Checks the name of a profile, which is also the name of a file.
pub(crate) fn parse_profile_name(text: &str) -> Checked {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if has_only(text, MAX_PROFILE_LENGTH, is_allowed) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a profile has 1 to {MAX_PROFILE_LENGTH} letters, digits, dashes and underscores"
    ))
}

/// Checks the address of a server. Returns it without the slash at its end.
pub(crate) fn parse_url(text: &str) -> Checked {
    core_client::parse_base_url(text)
        .map_err(|problem| format!("{problem}; an address is like https://api.example.org"))
}

/// Checks the name of a branch.
pub(crate) fn parse_branch(text: &str) -> Checked {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    if has_only(text, MAX_BRANCH_LENGTH, is_allowed) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a branch has 1 to {MAX_BRANCH_LENGTH} letters, digits and the characters . _ / -"
    ))
}

/// Checks a line of text: not blank, and without control characters.
fn parse_line(text: &str, max: usize) -> Checked {
    let is_invisible =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let length = text.chars().count();
    if length > max {
        return Err(format!("it has {length} characters; the maximum is {max}"));
    }
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.contains(is_invisible) {
        return Err("it must be one line without control characters".to_owned());
    }
    Ok(text.to_owned())
}

/// Checks the description of a deployment.
pub(crate) fn parse_message(text: &str) -> Checked {
    parse_line(text, MAX_MESSAGE_LENGTH)
}

/// Checks the name of a worker or site.
pub(crate) fn parse_resource_name(text: &str) -> Checked {
    parse_line(text, MAX_RESOURCE_LENGTH)
}

/// Checks the id of a feature that is activated.
pub(crate) fn parse_new_feature(text: &str) -> Checked {
    if text.contains(['/', '\\']) {
        return Err("the id of a feature has no slashes".to_owned());
    }
    parse_feature(text)
}

/// Checks the id or the version of a feature.
pub(crate) fn parse_feature(text: &str) -> Checked {
    parse_line(text, MAX_FEATURE_LENGTH)
}

/// Checks the name or id of a stack template, which is part of a path.
pub(crate) fn parse_stack(text: &str) -> Checked {
    if matches!(text, "." | "..") {
        return Err("it is no name of a stack".to_owned());
    }
    parse_line(text, MAX_STACK_LENGTH)
}

/// Checks the version of a stack template.
pub(crate) fn parse_stack_version(text: &str) -> Checked {
    let (numbers, label) = text
        .split_once('-')
        .map_or((text, None), |(numbers, label)| (numbers, Some(label)));
    let numbers: Vec<_> = numbers.split('.').collect();
    let is_number = |part: &&str| has_only(part, MAX_VERSION_LENGTH, |byte| byte.is_ascii_digit());
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    let fits = numbers.len() == 3
        && numbers.iter().all(is_number)
        && label.is_none_or(|label| has_only(label, MAX_VERSION_LENGTH, is_allowed));
    if fits && text.len() <= MAX_VERSION_LENGTH {
        return Ok(text.to_owned());
    }
    Err("a version is like 1.2.0 or 1.2.0-rc.1".to_owned())
}

/// Parses the name of an environment.
pub(crate) fn parse_environment(text: &str) -> Checked<Environment> {
    match Environment::from(text.to_owned()) {
        Environment::Other(_) => Err("the environments are dev, stg and prod".to_owned()),
        environment => Ok(environment),
    }
}

/// Checks the name of a secret. The message does not quote it, because a person may have appended the value.
pub(crate) fn check_secret_name(name: &str) -> Checked<()> {
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let begins_with_letter = name.starts_with(|c: char| c.is_ascii_uppercase());
    if begins_with_letter && has_only(name, MAX_SECRET_NAME_LENGTH, is_allowed) {
        return Ok(());
    }
    Err(format!(
        "the name of a secret has 1 to {MAX_SECRET_NAME_LENGTH} upper-case letters, digits and underscores, and begins with a letter"
    ))
}

/// Checks a hostname. Returns it in lower case without the dot at its end. The server checks the rules of international
/// names.
pub(crate) fn parse_hostname(text: &str) -> Checked {
    let refuse = |problem: &str| Err(format!("{problem}; a hostname is like www.example.org"));
    if text.contains("://") || text.contains(['/', '?', '#', '@']) {
        return refuse("it must have no scheme, path or user name");
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    if address.parse::<IpAddr>().is_ok() {
        return refuse("it is an IP address");
    }
    if name.contains(':') {
        return refuse("it must have no port");
    }
    let labels: Vec<_> = name
        .strip_prefix("*.")
        .unwrap_or(&name)
        .split('.')
        .collect();
    let is_label = |label: &&str| {
        let is_allowed = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '-';
        (1..=MAX_LABEL_LENGTH).contains(&label.len())
            && label.chars().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_number = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
    if labels.len() < 2 || labels.last().is_some_and(is_number) {
        return refuse("it must have at least two labels");
    }
    if name.len() > MAX_HOSTNAME_LENGTH || !labels.iter().all(is_label) {
        return refuse("it has an empty, long or invalid label");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostnames_are_normalized() {
        for (text, expected) in [
            ("WWW.Example.org.", "www.example.org"),
            ("*.example.org", "*.example.org"),
            ("b\u{fc}cher.example", "b\u{fc}cher.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(parse_hostname(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn versions_have_three_numbers_and_perhaps_a_label() {
        for good in ["1.2.0", "10.0.3-rc.1"] {
            assert!(parse_stack_version(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "1",
            "1.2",
            "1.2.x",
            "1.2.0-",
            "1.2.0+build",
            "v1.2.0",
            "1.2.0-a_b",
        ] {
            assert!(parse_stack_version(bad).is_err(), "{bad}");
        }
    }
}
