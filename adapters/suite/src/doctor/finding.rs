//! The findings of checks.

use std::fmt::{Display, Formatter};

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The subject is as it should be.
    Fine,
    /// The suite works, but an operator should look at it.
    Warning,
    /// The suite does not start, or a part of it fails.
    Failure,
}

/// A finding of a check. Its text names the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject of the check, in one or two words.
    pub subject: &'static str,
    /// The severity of the finding.
    pub severity: Severity,
    /// The finding for an operator, without secrets.
    pub text: String,
}

impl Finding {
    /// Creates a finding that needs no action.
    pub fn fine(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Fine, text)
    }

    /// Creates a finding that an operator should look at.
    pub fn warning(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Warning, text)
    }

    /// Creates a finding that prevents the suite, or a part of it, from working.
    pub fn failure(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Failure, text)
    }

    /// Names the cell that the finding is about.
    pub(super) fn of_cell(self, cell: &str) -> Self {
        Self {
            text: format!("of cell {cell}: {}", self.text),
            ..self
        }
    }

    fn new(subject: &'static str, severity: Severity, text: impl Into<String>) -> Self {
        Self {
            subject,
            severity,
            text: text.into(),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mark = match self.severity {
            Severity::Fine => "ok     ",
            Severity::Warning => "WARNING",
            Severity::Failure => "FAILURE",
        };
        write!(f, "{mark} {:14} {}", self.subject, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_severity_and_subject() {
        let finding = Finding::failure("mail", "no connection").of_cell("b");
        assert_eq!(
            finding.to_string(),
            "FAILURE mail           of cell b: no connection"
        );
        assert!(Finding::fine("mail", "").to_string().starts_with("ok "));
        let severities = [Severity::Fine, Severity::Warning, Severity::Failure];
        assert!(severities.is_sorted());
    }
}
