//! The patterns of schemas: regular expressions of ECMA-262 without look-around and back-references, translated to the
//! syntax of the `regex` crate.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use regex::Regex;

/// The characters of `\s` in ECMA-262, as ranges of a character class.
const WHITE_SPACE: &str = r"\t-\r \u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF";

/// Compiles a pattern. It matches anywhere in a text, unless it is anchored.
///
/// Every pattern is compiled once in a process, because most of them occur in the schemas of many endpoints. The patterns
/// are those of Rust types, so their number is limited.
///
/// # Errors
/// The reason why the pattern cannot be compiled.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    static COMPILED: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = compiled.get(pattern) {
        return Ok(regex.clone());
    }
    let regex = Regex::new(&translate(pattern)?);
    let regex = regex.map_err(|error| format!("pattern {pattern}: {error}"))?;
    compiled.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

/// Returns the pattern in the syntax of the `regex` crate, with the character classes of ECMA-262.
fn translate(pattern: &str) -> Result<String, String> {
    let mut text = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, in_class) {
            ('\\', _) => translate_escape(chars.next(), in_class, &mut text)
                .ok_or_else(|| format!("pattern {pattern}: unsupported escape"))?,
            ('.', false) => text.push_str(r"[^\n\r\u2028\u2029]"),
            // These are operators inside character classes of the `regex` crate.
            ('[' | '&' | '~', true) => text.extend(['\\', c]),
            ('[', false) => {
                in_class = true;
                text.push('[');
            }
            (']', true) => {
                in_class = false;
                text.push(']');
            }
            (other, _) => text.push(other),
        }
    }
    Ok(text)
}

/// Appends the translation of the character after a backslash; `None` if it cannot be translated.
fn translate_escape(escaped: Option<char>, in_class: bool, text: &mut String) -> Option<()> {
    let class = match escaped? {
        's' | 'S' => WHITE_SPACE,
        'd' | 'D' => "0-9",
        'w' | 'W' => "0-9A-Z_a-z",
        '/' => {
            text.push('/');
            return Some(());
        }
        other => {
            text.extend(['\\', other]);
            return Some(());
        }
    };
    match (escaped?.is_ascii_uppercase(), in_class) {
        (false, true) => text.push_str(class),
        (false, false) => text.push_str(&format!("[{class}]")),
        (true, false) => text.push_str(&format!("[^{class}]")),
        (true, true) => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_classes_are_those_of_ecma_262() {
        let matches = |pattern: &str, text: &str| compile(pattern).unwrap().is_match(text);
        for white in [
            " ", "\t", "\u{b}", "\u{a0}", "\u{2003}", "\u{2028}", "\u{feff}",
        ] {
            assert!(matches(r"^\s$", white), "{white:?}");
            assert!(!matches(r"^\S$", white), "{white:?}");
            assert!(!matches(r"^[^\sx]$", white), "{white:?}");
            assert!(matches(r"^[\sx]+$", &format!("x{white}")), "{white:?}");
        }
        assert!(!matches(r"^\s$", "\u{200b}"));
        assert!(matches("^.$", "\u{85}") && !matches("^.$", "\u{2028}"));
        assert!(matches(r"^\d\w$", "7a") && !matches(r"^\d$", "٧") && !matches(r"^\w$", "ä"));
        assert!(matches(r"^\W[\d&~]+$", "-7&~") && !matches(r"^\D$", "7"));
        assert!(matches(r"^[[a]\/$", "[/") && matches("b", "abc"));
    }

    #[test]
    fn unsupported_patterns_are_refused_with_a_reason() {
        for bad in ["(", "(?!a)", r"[\S]", "\\", r"(a)\1"] {
            assert!(compile(bad).unwrap_err().contains("pattern"), "{bad}");
        }
    }
}
