//! Why no migration is written.

use std::path::PathBuf;

/// Why no migration is written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The command line is not valid.
    #[error("{0}")]
    Usage(String),
    /// The files that exist are not in order.
    #[error("{0}")]
    Files(String),
    /// The difference cannot be written without a decision; one line each.
    #[error("{}", .0.join("\n"))]
    Undecided(Vec<String>),
    /// The files that exist, or the text to be written, do not run.
    #[error("{what}: {source}")]
    Sql {
        /// Which text.
        what: String,
        /// The database's error.
        source: rusqlite::Error,
    },
    /// The text runs and does not lead to the described schema.
    #[error("the migration would not lead to the described schema; still different: {0}")]
    Incomplete(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl WriteError {
    /// Names the SQL that failed.
    pub(crate) fn sql(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> Self {
        let what = what.into();
        |source| Self::Sql { what, source }
    }

    /// Names the file that failed.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}
