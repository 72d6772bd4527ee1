//! The settings of a session.

use std::time::Duration;

use core_domain::kernel::StoreError;

/// The maximum length of a name in bytes. Postgres truncates longer ones.
const MAX_NAME_BYTES: usize = 63;

/// The timeouts that the server enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTimeouts {
    /// `statement_timeout`: the maximum duration of a statement. Zero means no limit. Default: 20 s.
    pub statement: Duration,
    /// `lock_timeout`: the maximum time that a statement waits for a lock. Zero means no limit. Default: 5 s.
    pub lock: Duration,
    /// `idle_in_transaction_session_timeout`: the time without a statement after which the server ends a transaction
    /// and releases its locks. Zero means no limit. Default: 30 s.
    pub idle: Duration,
    /// `client_connection_check_interval`: how often the server checks during a statement whether this process is still
    /// connected. Zero leaves the server's setting unchanged; servers before version 14 require zero. Default: 1 s.
    pub client_check_interval: Duration,
}

impl Default for SessionTimeouts {
    fn default() -> Self {
        Self {
            statement: Duration::from_secs(20),
            lock: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            client_check_interval: Duration::from_secs(1),
        }
    }
}

impl SessionTimeouts {
    /// Returns the names and values of the settings that a session needs, the schema excluded. The values need no
    /// quotes.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("statement_timeout", millis(self.statement)),
            ("lock_timeout", millis(self.lock)),
            ("idle_in_transaction_session_timeout", millis(self.idle)),
        ];
        if !self.client_check_interval.is_zero() {
            let interval = millis(self.client_check_interval);
            settings.push(("client_connection_check_interval", interval));
        }
        // A sequential scan of a small table takes a predicate lock on the whole table, which conflicts with every
        // writer of the table.
        settings.push(("enable_seqscan", "off".to_owned()));
        // Statements are short, so JIT compilation takes longer than execution.
        settings.push(("jit", "off".to_owned()));
        settings
    }

    /// Returns the maximum wait for a reply; `None` means no limit. It is longer than the statement timeout by the
    /// margin, so a live server ends the statement first.
    #[must_use]
    pub fn answer_timeout(&self, margin: Duration) -> Option<Duration> {
        let limit = self.statement;
        (!limit.is_zero()).then(|| limit.saturating_add(margin))
    }
}

/// Formats a timeout in milliseconds. In Postgres 0 means no limit, so a timeout below one millisecond becomes 1.
fn millis(timeout: Duration) -> String {
    match timeout.as_millis() {
        0 if !timeout.is_zero() => "1".to_owned(),
        // The maximum value in Postgres.
        millis => millis.min(i32::MAX as u128).to_string(),
    }
}

/// Checks that the name of a schema consists of lower-case letters, digits and `_`, so that it needs no quotes.
///
/// # Errors
/// [`StoreError::Backend`] if it does not, or if it is longer than 63 bytes.
pub fn check_schema_name(name: &str) -> Result<(), StoreError> {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if starts && name.len() <= MAX_NAME_BYTES && name.chars().all(of_name) {
        return Ok(());
    }
    Err(StoreError::backend(
        "the name of the schema is invalid: use lower-case letters, digits and _",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_that_needs_quotes_is_refused() {
        for name in ["", "1a", "A", "a b", "a\"b", "a,public", &"a".repeat(64)] {
            assert!(check_schema_name(name).is_err(), "{name}");
        }
        assert!(check_schema_name("core_1").is_ok());
    }

    #[test]
    fn timeouts_are_in_milliseconds_and_only_zero_means_no_limit() {
        assert_eq!(millis(Duration::ZERO), "0");
        assert_eq!(millis(Duration::from_nanos(1)), "1");
        assert_eq!(millis(Duration::from_secs(20)), "20000");
        assert_eq!(millis(Duration::MAX), i32::MAX.to_string());
    }

    #[test]
    fn the_client_check_is_set_only_if_it_has_an_interval() {
        let mut timeouts = SessionTimeouts::default();
        let is_set = |timeouts: &SessionTimeouts| {
            let settings = timeouts.settings();
            settings
                .iter()
                .any(|(name, _)| *name == "client_connection_check_interval")
        };
        assert!(is_set(&timeouts));
        timeouts.client_check_interval = Duration::ZERO;
        assert!(!is_set(&timeouts));
    }
}
