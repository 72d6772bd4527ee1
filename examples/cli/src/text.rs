//! Values as text for people.

/// Returns a text without control characters, which names from the server could contain.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Returns a size with a unit.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Returns a time in Unix seconds as text.
pub(crate) fn time(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "-".to_owned(), |time| short_time(&time.to_string()))
}

/// Returns the date and the minutes of a time in RFC 3339.
pub(crate) fn short_time(text: &str) -> String {
    match text.get(..16) {
        Some(minutes) => minutes.replace('T', " "),
        None => text.to_owned(),
    }
}

/// Returns a text, or a dash without one.
pub(crate) fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or("-")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
    }

    #[test]
    fn times_are_shortened_to_minutes() {
        assert_eq!(time(Some(1_768_469_400)), "2026-01-15 09:30");
        assert_eq!(time(None), "-");
        assert_eq!(short_time("2026-01-15T09:30:12.345Z"), "2026-01-15 09:30");
    }
}
