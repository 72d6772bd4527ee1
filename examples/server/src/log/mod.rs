//! The log: one line per event, on standard error.

mod json;
mod writer;

use tracing_subscriber::EnvFilter;

use self::json::{JsonEvent, JsonMembers};
pub(crate) use self::writer::LogGuard;
use self::writer::{LogWriter, WhenFull};
use crate::config::{Config, LogForm};

/// Starts the log. When the guard is dropped, all waiting lines are written and the log ends.
pub(crate) fn start(config: &Config) -> std::io::Result<LogGuard> {
    let when_full = if config.log_lossy {
        WhenFull::Drop
    } else {
        WhenFull::Wait
    };
    let (writer, guard) = LogWriter::start(std::io::stderr(), when_full)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&config.log_level))
        .with_writer(writer);
    match config.log_form {
        LogForm::Json => log.event_format(JsonEvent).fmt_fields(JsonMembers).init(),
        LogForm::Text => log.init(),
    }
    Ok(guard)
}
