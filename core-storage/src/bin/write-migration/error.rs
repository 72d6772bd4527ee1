//! The reasons why no migration is written.

use std::path::PathBuf;

/// The reason why no migration is written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The names of the existing files are invalid or incomplete.
    #[error("{0}")]
    Files(String),
    /// A decision is missing or invalid. One line for each problem.
    #[error("{}", .0.join("\n"))]
    Undecided(Vec<String>),
    /// The SQL of an existing file or of the new migration fails.
    #[error("{what}: {source}")]
    Sql {
        /// The SQL that failed.
        what: String,
        /// The error of the database.
        source: rusqlite::Error,
    },
    /// The migration runs but does not lead to the described schema.
    #[error("the migration does not lead to the described schema; remaining differences: {0}")]
    Incomplete(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl WriteError {
    /// Adds the name of the SQL that failed.
    pub(crate) fn sql(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> Self {
        let what = what.into();
        |source| Self::Sql { what, source }
    }

    /// Adds the path of the file that failed.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}
