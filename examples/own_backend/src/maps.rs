//! The maps of a table: its rows by key, and one map for each index.

use core_domain::kernel::StoreError;
use core_storage::{Filter, IndexPredicate, Row, Table, Unique, Value};
use redb::{ReadableTable, TableDefinition, WriteTransaction};

use crate::encoding::{decode_row, encode, encode_row};

/// The map of a table's rows by key.
pub(crate) const fn rows_of(
    table: &Table,
) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(table.name)
}

/// An index, unique or not: its columns, and the predicates that limit it.
#[derive(Clone, Copy)]
pub(crate) struct Index {
    pub(crate) columns: &'static [&'static str],
    pub(crate) predicates: &'static [IndexPredicate],
    unique: Option<&'static Unique>,
}

/// Returns the indexes of a table, including one for its parent column.
pub(crate) fn indexes(table: &'static Table) -> impl Iterator<Item = Index> {
    let uniques = table.uniques.iter().map(|unique| Index {
        columns: unique.columns,
        predicates: unique.predicates,
        unique: Some(unique),
    });
    let others = table.indexes.iter().map(|index| Index {
        columns: index.columns,
        predicates: index.predicates,
        unique: None,
    });
    let parent = table.parent.iter().map(|parent| Index {
        columns: std::slice::from_ref(parent),
        predicates: &[],
        unique: None,
    });
    uniques.chain(others).chain(parent)
}

impl Index {
    /// The name of the index's map.
    pub(crate) fn name(&self, table: &Table) -> String {
        format!(
            "{}.{}.{:?}",
            table.name,
            self.columns.join("."),
            self.predicates
        )
    }

    fn covers(&self, table: &Table, row: &Row) -> bool {
        let predicates = self.predicates.iter().copied().map(Filter::of_index);
        Filter::And(predicates.collect()).matches(table, row)
    }

    /// Encodes the values of the index's columns.
    fn encoded_columns(&self, table: &Table, row: &Row) -> Vec<u8> {
        let mut bytes = Vec::new();
        for column in self.columns {
            encode(&mut bytes, table.value(row, column));
        }
        bytes
    }

    /// Returns the row's key in the index; `None` if the index does not cover the row.
    fn index_key(&self, table: &Table, row: &Row) -> Option<Vec<u8>> {
        let mut entry = self.encoded_columns(table, row);
        encode(&mut entry, table.value(row, table.key()));
        self.covers(table, row).then_some(entry)
    }

    /// Returns whether no other row may have the same values in the index.
    fn is_exclusive(&self, table: &Table, row: &Row) -> bool {
        let is_null = |column: &&str| table.value(row, column).is_null();
        self.unique.is_some() && self.covers(table, row) && !self.columns.iter().any(is_null)
    }
}

fn key_of(row: &Row) -> &str {
    row.first().and_then(Value::as_text).unwrap_or_default()
}

pub(crate) fn backend_error(error: impl Into<redb::Error>) -> StoreError {
    StoreError::backend(error.into())
}

/// Returns the first unique index in which a row with another key has the same values.
pub(crate) fn conflict(
    transaction: &WriteTransaction,
    table: &'static Table,
    row: &Row,
) -> Result<Option<&'static str>, StoreError> {
    for index in indexes(table).filter(|index| index.is_exclusive(table, row)) {
        let name = index.name(table);
        let map = TableDefinition::<&[u8], &str>::new(&name);
        let map = transaction.open_table(map).map_err(backend_error)?;
        let place = index.encoded_columns(table, row);
        let range = map.range(place.as_slice()..).map_err(backend_error)?;
        for entry in range {
            let (entry, key) = entry.map_err(backend_error)?;
            if !entry.value().starts_with(&place) {
                break;
            }
            if key.value() != key_of(row) {
                return Ok(index.unique.map(|unique| unique.name));
            }
        }
    }
    Ok(None)
}

/// Inserts the row, or replaces `old`, and updates the indexes.
pub(crate) fn upsert(
    transaction: &WriteTransaction,
    table: &'static Table,
    old: Option<&Row>,
    row: &Row,
) -> Result<(), StoreError> {
    let mut rows = transaction
        .open_table(rows_of(table))
        .map_err(backend_error)?;
    let bytes = encode_row(row);
    rows.insert(key_of(row), bytes.as_slice())
        .map_err(backend_error)?;
    for index in indexes(table) {
        let before = old.and_then(|old| index.index_key(table, old));
        let after = index.index_key(table, row);
        if before == after {
            continue;
        }
        let name = index.name(table);
        let map = TableDefinition::<&[u8], &str>::new(&name);
        let mut map = transaction.open_table(map).map_err(backend_error)?;
        if let Some(before) = before {
            map.remove(before.as_slice()).map_err(backend_error)?;
        }
        if let Some(after) = after {
            map.insert(after.as_slice(), key_of(row))
                .map_err(backend_error)?;
        }
    }
    Ok(())
}

/// Removes the row and its index entries.
pub(crate) fn remove(
    transaction: &WriteTransaction,
    table: &'static Table,
    row: &Row,
) -> Result<(), StoreError> {
    let mut rows = transaction
        .open_table(rows_of(table))
        .map_err(backend_error)?;
    rows.remove(key_of(row)).map_err(backend_error)?;
    for index in indexes(table) {
        let Some(entry) = index.index_key(table, row) else {
            continue;
        };
        let name = index.name(table);
        let map = TableDefinition::<&[u8], &str>::new(&name);
        let mut map = transaction.open_table(map).map_err(backend_error)?;
        map.remove(entry.as_slice()).map_err(backend_error)?;
    }
    Ok(())
}

/// Returns the row with this key.
pub(crate) fn get(
    rows: &impl ReadableTable<&'static str, &'static [u8]>,
    key: &str,
) -> Result<Option<Row>, StoreError> {
    let stored = rows.get(key).map_err(backend_error)?;
    stored.map(|bytes| decode_row(bytes.value())).transpose()
}
