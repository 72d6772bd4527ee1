//! Files with lines of the form `NAME=VALUE`.

use std::collections::BTreeMap;

use core_client::Secret;

use crate::failure::{Failure, Result};

/// Maximum length of a name.
const MAX_NAME_LENGTH: usize = 128;

/// Maximum length of a value in bytes.
const MAX_VALUE_BYTES: usize = 5120;

/// Maximum number of secrets of one request, which sets all or none.
const MAX_SECRETS: usize = 100;

/// Parses a file. A line is empty, a comment that begins with `#`, or `NAME=VALUE` with or without `export`. Values in
/// double quotes have the escapes `\n`, `\t`, `\"` and `\\`; values in single quotes have none. If a name occurs more than
/// once, the last value wins.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Secret>> {
    let mut secrets = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The message does not quote the line, because it contains a secret.
        let at_line =
            |failure: &str| Failure::usage(format!("Line {} of the file: {failure}", number + 1));
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| at_line("it is not NAME=VALUE."))?;
        let name = name.trim_end();
        let value = unquote(value.trim()).ok_or_else(|| at_line("the quote is not closed."))?;
        check(name, &value).map_err(|problem| at_line(&problem))?;
        secrets.insert(name.to_owned(), Secret::new(value));
    }
    if secrets.is_empty() {
        return Err(Failure::usage("The file has no NAME=VALUE lines."));
    }
    if secrets.len() > MAX_SECRETS {
        return Err(
            Failure::usage(format!("The file has more than {MAX_SECRETS} secrets."))
                .hint("Split the file: each part is set completely or not at all."),
        );
    }
    Ok(secrets)
}

fn unquote(value: &str) -> Option<String> {
    if let Some(quoted) = value.strip_prefix('\'') {
        return quoted.strip_suffix('\'').map(str::to_owned);
    }
    let Some(quoted) = value.strip_prefix('"') else {
        let comment = value.find(" #").unwrap_or(value.len());
        return Some(value[..comment].trim_end().to_owned());
    };
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => match characters.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
}

/// Returns the reason why a secret is not valid.
pub(crate) fn check(name: &str, value: &str) -> std::result::Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let begins_with_letter = name.starts_with(|c: char| c.is_ascii_uppercase());
    if !begins_with_letter || name.len() > MAX_NAME_LENGTH || !name.chars().all(is_allowed) {
        return Err(format!(
            "{name:?} is not a valid name. Use upper-case letters, digits and underscores, and begin with a letter."
        ));
    }
    if value.is_empty() || value.len() > MAX_VALUE_BYTES {
        return Err(format!(
            "the value of {name} must have 1 to {MAX_VALUE_BYTES} bytes."
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, String)> {
        let secrets = parse(text).unwrap();
        secrets
            .into_iter()
            .map(|(name, value)| (name, value.expose().to_owned()))
            .collect()
    }

    #[test]
    fn comments_quotes_and_exports_are_understood() {
        let text = "# keys\n\nA=plain # comment\nexport B = \"two\\nlines\"\nC='a \"b\" $c'\nD=x=y\nA=last\n";
        let expected = [
            ("A", "last"),
            ("B", "two\nlines"),
            ("C", "a \"b\" $c"),
            ("D", "x=y"),
        ];
        assert_eq!(
            values(text),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn an_invalid_line_is_reported_by_number_without_its_value() {
        for text in [
            "A=1\nb=hunter2",
            "A=1\nhunter2",
            "A=1\nB=\"hunter2",
            "A=1\nB=",
        ] {
            let failure = parse(text).unwrap_err().to_string();
            assert!(
                failure.contains("Line 2") && !failure.contains("hunter2"),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_file_without_secrets_or_with_too_many_is_refused() {
        assert!(parse("# nothing\n").is_err());
        let many: String = (0..101).map(|number| format!("A{number}=x\n")).collect();
        assert!(parse(&many).is_err());
    }
}
