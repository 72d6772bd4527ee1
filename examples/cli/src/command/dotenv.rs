//! Files with lines of the form `NAME=VALUE`.

use std::collections::BTreeMap;

use core_client::Secret;

use crate::failure::{Failure, Result};
use crate::inputs::check_secret_name;

/// Maximum length of a value in bytes.
pub(crate) const MAX_VALUE_BYTES: usize = 5120;

/// Maximum number of secrets of one request, which sets all or none.
pub(crate) const MAX_SECRETS: usize = 100;

/// Parses a file. A line is empty, a comment that begins with `#`, or `NAME=VALUE` with or without `export`. Values in
/// double quotes have the escapes `\n`, `\t`, `\"` and `\\`; values in single quotes have none. If a name occurs more than
/// once, the last value wins.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Secret>> {
    let mut secrets = BTreeMap::new();
    // Editors on Windows begin files with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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
        let at_line = |problem: String| at_line(&format!("{problem}."));
        check_secret_name(name).map_err(at_line)?;
        let value = unquote(value.trim()).map_err(|problem| at_line(problem.to_owned()))?;
        check_value(&value)
            .map_err(|problem| at_line(format!("the value of {name} is invalid: {problem}")))?;
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

/// Returns a value without its quotes and the comment after it.
fn unquote(value: &str) -> std::result::Result<String, &'static str> {
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        let comment = value.find(" #").unwrap_or(value.len());
        return Ok(value[..comment].trim_end().to_owned());
    };
    let mut text = String::new();
    let mut characters = value.chars();
    characters.next();
    loop {
        match characters.next() {
            None => return Err("the quote is not closed"),
            Some(end) if end == quote => break,
            Some('\\') if quote == '"' => match characters.next() {
                None => return Err("the quote is not closed"),
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
            },
            Some(other) => text.push(other),
        }
    }
    let after = characters.as_str();
    if after.trim().is_empty() || (after.starts_with(' ') && after.trim_start().starts_with('#')) {
        return Ok(text);
    }
    Err("there is text after the closing quote")
}

/// Checks the value of a secret. Returns the reason why it is invalid.
pub(crate) fn check_value(value: &str) -> std::result::Result<(), String> {
    match value.len() {
        0 => Err("it is empty".to_owned()),
        1..=MAX_VALUE_BYTES => Ok(()),
        length => Err(format!(
            "it has {length} bytes; the maximum is {MAX_VALUE_BYTES}"
        )),
    }
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
            "A=1\nB='hunter2",
            "A=1\nB='a' hunter2",
            "A=1\nB=\"a\"hunter2",
            "A=1\nhunter2=",
        ] {
            let failure = parse(text).unwrap_err().to_string();
            assert!(
                failure.contains("Line 2") && !failure.contains("hunter2"),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_comment_may_follow_a_quoted_value() {
        assert_eq!(
            values("\u{feff}A='x' # one\nB=\"y # z\"\n"),
            [("A", "x"), ("B", "y # z")].map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn a_file_without_secrets_or_with_too_many_is_refused() {
        assert!(parse("# nothing\n").is_err());
        let many: String = (0..101).map(|number| format!("A{number}=x\n")).collect();
        assert!(parse(&many).is_err());
    }
}
