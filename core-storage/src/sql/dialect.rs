//! The databases whose SQL is known.

use crate::table::Type;

/// A database with its own words. Another database that understands one of the two is driven with that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite; tables are `STRICT`, so that it enforces their types.
    Sqlite,
    /// Postgres; text is compared by its bytes, whatever the database's locale.
    Postgres,
}

impl Dialect {
    /// Both, in the order their migrations are written in.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// The type of a column, as a column definition spells it.
    #[must_use]
    pub const fn type_name(self, of: Type) -> &'static str {
        match (of, self) {
            (Type::Bool, Self::Postgres) => "BOOLEAN",
            (Type::Int, Self::Postgres) => "BIGINT",
            (Type::Text | Type::Json, Self::Postgres) => "TEXT COLLATE \"C\"",
            (Type::Bool | Type::Int, Self::Sqlite) => "INTEGER",
            (Type::Text | Type::Json, Self::Sqlite) => "TEXT",
        }
    }

    /// Whether a list of values is one bound array, so that the text is the same for any number of values and many rows
    /// are written with one statement. Where it is not, the database is in this process and rows are written one by one.
    pub(crate) const fn has_arrays(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// Whether the planner must see a limit to prefer the index that has the rows in order over sorting all of them.
    pub(crate) const fn plans_by_limit(self) -> bool {
        matches!(self, Self::Postgres)
    }

    /// What casts a bound array to the type of a column.
    pub(crate) const fn array_cast(of: Type) -> &'static str {
        match of {
            Type::Bool => "::BOOLEAN[]",
            Type::Int => "::BIGINT[]",
            Type::Text | Type::Json => "::TEXT[]",
        }
    }

    /// What locks the rows of a select and skips those another unit has locked.
    pub(crate) const fn row_lock(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// The instant of the transaction in milliseconds since the epoch.
    pub(crate) const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "SELECT CAST(FLOOR(EXTRACT(EPOCH FROM now()) * 1000) AS BIGINT)",
        }
    }
}
