//! Readable names for programs, derived from the `User-Agent` header.

/// Marks of browsers and their names. A browser that imitates another one comes first.
const BROWSERS: [(&str, &str); 6] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];

/// Marks of operating systems and their names.
const SYSTEMS: [(&str, &str); 6] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];

/// The number of characters that are shown of an unknown `User-Agent`.
const MAX_UNKNOWN_CHARS: usize = 60;

/// Returns a readable name, such as "Firefox on Linux", or the beginning of the text if the browser is unknown.
pub(super) fn program(user_agent: Option<&str>) -> String {
    let Some(text) = user_agent else {
        return "Unknown program".to_owned();
    };
    let find = |known: &[(&str, &'static str)]| {
        let found = known.iter().find(|(mark, _)| text.contains(mark));
        found.map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => text.chars().take(MAX_UNKNOWN_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agents_are_shown_as_browser_and_system() {
        for (text, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36 Edg/148.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.5.0", "curl"),
            ("core-cli 1.0", "core-cli 1.0"),
        ] {
            assert_eq!(program(Some(text)), name);
        }
        assert_eq!(program(None), "Unknown program");
        assert_eq!(program(Some(&"x".repeat(500))).len(), MAX_UNKNOWN_CHARS);
    }
}
