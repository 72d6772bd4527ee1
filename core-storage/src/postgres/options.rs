//! How a connection is opened.

use std::str::FromStr;
use std::time::Duration;

use core_domain::kernel::StoreError;
use sqlx::postgres::PgConnectOptions;

use super::PostgresConfig;

/// The longest name that Postgres keeps as it is.
const MAX_NAME: usize = 63;

/// What connections are opened with.
pub(super) fn connect_options(config: &PostgresConfig) -> Result<PgConnectOptions, StoreError> {
    // The cause is left out: it may quote the address, which may hold a password.
    let options = PgConnectOptions::from_str(&config.url)
        .map_err(|_| StoreError::backend("the database address is not valid"))?
        .statement_cache_capacity(512)
        .options([
            ("statement_timeout", millis(config.statement_timeout)),
            ("lock_timeout", millis(config.lock_timeout)),
            (
                "idle_in_transaction_session_timeout",
                millis(config.idle_timeout),
            ),
            // A scan of a small table takes a predicate lock on all of it, and every writer of the table conflicts.
            ("enable_seqscan", "off".to_owned()),
            // Statements are short: compiling one takes longer than running it.
            ("jit", "off".to_owned()),
        ]);
    let options = match &config.root_certificates {
        Some(path) => options.ssl_root_cert(path),
        None => options,
    };
    match &config.schema {
        Some(schema) if is_name(schema) => Ok(options.options([("search_path", schema)])),
        Some(_) => Err(StoreError::backend(
            "the name of the schema is not valid: small letters, digits and _",
        )),
        None => Ok(options),
    }
}

/// Postgres takes 0 as no limit; a limit below a millisecond is one of a millisecond.
fn millis(timeout: Duration) -> String {
    match timeout.as_millis() {
        0 if !timeout.is_zero() => "1".to_owned(),
        // The greatest that Postgres takes.
        millis => millis.min(i32::MAX as u128).to_string(),
    }
}

/// Tells whether it is a name that needs no quotes.
fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    starts && name.len() <= MAX_NAME && name.chars().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_whose_name_could_be_more_than_a_name_is_refused() {
        for name in ["", "1a", "A", "a b", "a\"b", "a,public", &"a".repeat(64)] {
            let mut config = PostgresConfig::new("postgres://localhost/x", [7; 32]);
            config.schema = Some(name.to_owned());
            assert!(connect_options(&config).is_err(), "{name}");
        }
    }

    #[test]
    fn an_address_that_is_not_valid_is_not_shown() {
        let config = PostgresConfig::new("postgres://me:secret@host:port/x", [7; 32]);
        let error = connect_options(&config).expect_err("the port is no number");
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn a_timeout_is_told_in_milliseconds_and_only_zero_means_for_ever() {
        assert_eq!(millis(Duration::ZERO), "0");
        assert_eq!(millis(Duration::from_nanos(1)), "1");
        assert_eq!(millis(Duration::from_secs(20)), "20000");
        assert_eq!(millis(Duration::MAX), i32::MAX.to_string());
    }
}
