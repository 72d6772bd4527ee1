//! The text format of Prometheus, version 0.0.4. It differs from OpenMetrics in the names of counters, and has no units
//! and no end mark.

use super::definition::Description;

/// Converts a rendering from the format of OpenMetrics.
pub(super) fn classic(text: &str, descriptions: &[Description]) -> String {
    let mut converted = String::with_capacity(text.len());
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (start, word, family) = (words.next(), words.next(), words.next());
        let rest = words.next().unwrap_or_default();
        match (start, word, family) {
            (Some("#"), Some("UNIT" | "EOF"), _) => continue,
            (Some("#"), Some(word), Some(family)) => {
                let known = descriptions.iter().find(|known| known.family() == family);
                let name = known.map_or(family, |known| known.name);
                for part in ["# ", word, " ", name, " ", rest] {
                    converted.push_str(part);
                }
            }
            _ => converted.push_str(line),
        }
        converted.push('\n');
    }
    converted
}
