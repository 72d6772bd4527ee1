//! The supported SQL dialects.

use crate::table::Type;

/// An SQL dialect. A database that is compatible with one of the dialects can use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite. Tables are `STRICT`, so that SQLite enforces their types.
    Sqlite,
    /// Postgres. Text is compared by its bytes, whatever the locale of the database.
    Postgres,
}

impl Dialect {
    /// All dialects, in the order in which their migrations are written.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Returns the type of a column for its definition.
    #[must_use]
    pub const fn type_name(self, of: Type) -> &'static str {
        match (of, self) {
            (Type::Bool, Self::Postgres) => "BOOLEAN",
            (Type::Int, Self::Postgres) => "BIGINT",
            (Type::Text | Type::Json, Self::Postgres) => "TEXT COLLATE \"C\"",
            (Type::Uuid, Self::Postgres) => "UUID",
            (Type::Bool | Type::Int, Self::Sqlite) => "INTEGER",
            (Type::Text | Type::Uuid | Type::Json, Self::Sqlite) => "TEXT",
        }
    }

    /// Returns whether a list of values is bound as one array. The statement text is then the same for any number of
    /// values, and many rows are written with one statement. Without arrays the database runs in this process, and rows
    /// are written one by one.
    pub(crate) const fn has_arrays(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Returns whether the limit must be in the statement text. Without it the planner would sort all rows instead of
    /// using the index with the requested order.
    pub(crate) const fn plans_by_limit(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Returns the cast of a bound array to the type of a column.
    pub(crate) const fn array_cast(of: Type) -> &'static str {
        match of {
            Type::Bool => "::BOOLEAN[]",
            Type::Int => "::BIGINT[]",
            Type::Text | Type::Json => "::TEXT[]",
            Type::Uuid => "::UUID[]",
        }
    }

    /// Returns the clause that locks the selected rows and skips those that another unit has locked.
    pub(crate) const fn row_lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns the query for the time of the transaction, in milliseconds since the Unix epoch.
    pub(crate) const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM now()) * 1000) AS BIGINT)",
        }
    }
}
