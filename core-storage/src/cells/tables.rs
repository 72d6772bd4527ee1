//! The tables that connect the cells. They belong to no record. All but [`HIDDEN`] and [`CHANGES`] have rows in the home cell
//! only.

use crate::table::{Column, Index, Table, Type, VERSION};

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: false,
    }
}

const fn nullable(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: true,
    }
}

const fn table(name: &'static str, columns: &'static [Column], indexes: &'static [Index]) -> Table {
    Table {
        name,
        columns,
        uniques: &[],
        indexes,
        parent: None,
        append_only: false,
        archive: None,
    }
}

/// The directory: the cell and the organization of every platform.
pub(super) static PLATFORMS: Table = table(
    "cell_platforms",
    &[
        column("platform_id", Type::Text),
        column("cell", Type::Text),
        // Empty if the platform belongs to no organization. NULL if this is not known, because only other rows of the platform
        // were written.
        nullable("organization_id", Type::Text),
        column(VERSION, Type::Int),
    ],
    &[Index::on(&["organization_id", "cell"])],
);

/// The values that are unique over all cells. The key is made of index and values.
pub(super) static UNIQUE_VALUES: Table = table(
    "cell_unique_values",
    &[
        column("id", Type::Text),
        // The platform of the row that has the value. NULL if it is not known.
        nullable("platform_id", Type::Text),
        column(VERSION, Type::Int),
    ],
    &[],
);

/// The decisions about units of work that changed several cells: whether they are committed.
pub(super) static DECISIONS: Table = table(
    "cell_decisions",
    &[
        column("id", Type::Text),
        column("is_committed", Type::Bool),
        column("decided_at", Type::Int),
        column(VERSION, Type::Int),
    ],
    &[Index::on(&["decided_at"])],
);

/// The moves of platforms that have not ended.
pub(super) static MOVES: Table = table(
    "cell_moves",
    &[
        column("platform_id", Type::Text),
        column("source", Type::Text),
        column("target", Type::Text),
        column(VERSION, Type::Int),
    ],
    &[],
);

/// In each cell: the platforms that have or had rows there, and that another cell serves. The rows are copies that are not
/// complete yet, or are left of a platform that was moved.
///
/// It also is the [gate](crate::RowStore::begin_gated) of a database.
pub(crate) static HIDDEN: Table = table(
    "cell_hidden_platforms",
    &[
        column("platform_id", Type::Text),
        column("hidden_at", Type::Int),
        // The random name of the run of the command that moves the platform, or has moved it last.
        column("run", Type::Text),
        column(VERSION, Type::Int),
    ],
    &[],
);

/// In each cell: the rows of platforms that have changed since their move began, see
/// [`set_recording`](crate::RowTx::set_recording).
pub(super) static CHANGES: Table = table(
    "cell_changes",
    &[
        column("id", Type::Text),
        column("platform_id", Type::Text),
        column("table_name", Type::Text),
        column("row_key", Type::Text),
        column(VERSION, Type::Int),
    ],
    &[Index::on(&["platform_id"])],
);

/// The tables of this module.
pub(crate) const ALL: [&Table; 6] = [
    &PLATFORMS,
    &UNIQUE_VALUES,
    &DECISIONS,
    &MOVES,
    &HIDDEN,
    &CHANGES,
];

/// Returns whether the table belongs to no record.
pub(super) fn is_internal(table: &Table) -> bool {
    ALL.iter().any(|internal| internal.name == table.name)
}
