//! Values that are unique over all cells. A unique index holds within one database. For these indexes, the home cell has a
//! row for each value, which the unit writes together with the row that has the value. It names the platform of that row, so
//! that a query for the value needs no other cell.

use std::collections::BTreeSet;

use core_domain::kernel::StoreError;

use super::place::{Place, place_of};
use super::tables::UNIQUE_VALUES;
use crate::filter::Filter;
use crate::row_store::RowTx;
use crate::table::{Table, Unique};
use crate::value::{ReadRow, Row, Value};

/// The indexes whose values are unique over all cells, by table. All other unique indexes contain the id of a platform, or
/// of something that belongs to one.
const INDEXES: [(&str, &[&str]); 4] = [
    ("platforms", &["slug"]),
    ("dns_records", &["hostname"]),
    ("custom_domains", &["hostname"]),
    ("resources", &["name"]),
];

/// A value of an index that is unique over all cells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UniqueValue {
    id: String,
    /// The platform of the row that has the value.
    platform: Option<String>,
    /// The name that a conflict reports.
    index: &'static str,
}

impl UniqueValue {
    /// Returns the key of its row.
    pub(super) fn id(&self) -> &str {
        &self.id
    }
}

/// Returns the indexes of the table whose values are unique over all cells.
fn indexes(table: &'static Table) -> impl Iterator<Item = &'static Unique> {
    let names = INDEXES.iter().find(|(name, _)| *name == table.name);
    let names = names.map_or(&[][..], |(_, names)| names);
    let uniques = table.uniques.iter();
    uniques.filter(|unique| names.contains(&unique.name))
}

/// Returns whether the table has such an index.
pub(super) fn has_any(table: &'static Table) -> bool {
    indexes(table).next().is_some()
}

/// Returns whether a change of one of the columns can change such a value.
pub(super) fn depend_on(table: &'static Table, set: &[(&'static str, Value)]) -> bool {
    indexes(table).any(|unique| set.iter().any(|(column, _)| unique.depends_on(column)))
}

/// Returns the tables with such an index.
pub(super) fn tables() -> Vec<&'static Table> {
    let mut tables = crate::tables::all();
    tables.retain(|table| has_any(table));
    tables
}

/// Returns the values of a row.
pub(super) fn of_row(table: &'static Table, row: &Row) -> Vec<UniqueValue> {
    let platform = match place_of(table) {
        Place::Named(column, naming) => {
            let name = table.value(row, column).as_text();
            name.and_then(|name| naming.platform(name))
        }
        _ => None,
    };
    let value = |unique: &'static Unique| {
        if !Filter::covered_by(unique).matches(table, row) {
            return None;
        }
        let values = unique.columns.iter().map(|column| table.value(row, column));
        let texts: Option<Vec<String>> = values.map(text).collect();
        Some(UniqueValue {
            id: id_of(table, unique, &texts?),
            platform: platform.clone(),
            index: unique.name,
        })
    };
    indexes(table).filter_map(value).collect()
}

/// Returns the id of the value that every row has that matches the filter; `None` if the filter names no value.
pub(super) fn id_in(table: &'static Table, filter: &Filter) -> Option<String> {
    indexes(table).find_map(|unique| {
        let predicates = unique.predicates.iter().copied();
        let mut covered = predicates.map(Filter::of_index);
        if !covered.all(|predicate| filter.requires(&predicate)) {
            return None;
        }
        let value = |column: &&'static str| match filter.values_of(column)? {
            [value] => text(value),
            _ => None,
        };
        let texts: Option<Vec<String>> = unique.columns.iter().map(value).collect();
        Some(id_of(table, unique, &texts?))
    })
}

/// The row that has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// No row has it, unless a process without cells wrote the row, at home.
    None,
    /// A row of this platform.
    Platform(String),
    /// A row of a platform that is not known.
    Unknown,
}

/// Reads which row has the value with this id, in a unit of the home cell.
pub(super) async fn holder(home: &mut dyn RowTx, id: &str) -> Result<Holder, StoreError> {
    let mut holder = Holder::None;
    let mut visit = |row: &dyn ReadRow| {
        let platform = row.read(1)?.as_text().map(str::to_owned);
        holder = platform.map_or(Holder::Unknown, Holder::Platform);
        Ok(())
    };
    home.get(&UNIQUE_VALUES, id, &Filter::all(), &mut visit)
        .await?;
    Ok(holder)
}

/// Returns the value as text; `None` for NULL, which a unique index does not cover.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.to_string()),
    }
}

/// Returns the id of a value. Lengths separate the texts, so that different values have different ids.
fn id_of(table: &Table, unique: &Unique, texts: &[String]) -> String {
    let mut id = format!("{}.{}", table.name, unique.name);
    for text in texts {
        id.push_str(&format!(" {}:{text}", text.len()));
    }
    id
}

/// The change of the unique values by a write.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) added: Vec<UniqueValue>,
    pub(super) removed: Vec<UniqueValue>,
}

impl Change {
    /// Returns the change from the values of the old rows to those of the new ones.
    pub(super) fn between(old: Vec<UniqueValue>, new: Vec<UniqueValue>) -> Self {
        let old: BTreeSet<UniqueValue> = old.into_iter().collect();
        let new: BTreeSet<UniqueValue> = new.into_iter().collect();
        Self {
            added: new.difference(&old).cloned().collect(),
            removed: old.difference(&new).cloned().collect(),
        }
    }
}

/// Records that rows have these values.
///
/// # Errors
/// [`StoreError::Conflict`] if one of them is taken. Nothing was changed.
pub(super) async fn take(
    home: &mut dyn RowTx,
    table: &'static Table,
    values: &[UniqueValue],
) -> Result<(), StoreError> {
    for (at, value) in values.iter().enumerate() {
        let inserted = home.insert(&UNIQUE_VALUES, row(value)).await;
        if let Err(error) = inserted {
            if at > 0 {
                release(home, &values[..at]).await?;
            }
            return Err(in_records(error, table, value.index));
        }
    }
    Ok(())
}

/// Records that no row has these values any more.
pub(super) async fn release(
    home: &mut dyn RowTx,
    values: &[UniqueValue],
) -> Result<(), StoreError> {
    let keys = values.iter().map(|value| Value::text(&value.id));
    let with_keys = Filter::In(UNIQUE_VALUES.key(), keys.collect());
    home.delete(&UNIQUE_VALUES, &with_keys).await?;
    Ok(())
}

/// Returns the row of a value.
pub(super) fn row(value: &UniqueValue) -> Row {
    let platform = value.platform.as_deref();
    let platform = platform.map_or(Value::Null, Value::text);
    vec![Value::text(&value.id), platform, Value::Int(1)]
}

/// Names the table and the index of the records in a conflict.
fn in_records(error: StoreError, table: &'static Table, index: &'static str) -> StoreError {
    match error {
        StoreError::Conflict { .. } => StoreError::Conflict {
            table: table.name,
            index,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PLATFORM;

    #[test]
    fn every_unique_index_over_several_platforms_is_unique_over_all_cells() {
        // These contain the id of something that belongs to one platform.
        let of_one_platform = [
            "builds.job",
            "dlq_entries.open",
            "feature_activations.feature",
            "job_events.seq",
            "jobs.running",
            "resource_secrets.name",
            "webhook_deliveries.event",
            "workspace_stacks.default",
            "workspace_stacks.name",
            // A key of the host program or of the suite, which contains the id of what the job is about.
            "jobs.idempotency_key",
        ];
        for table in crate::tables::all() {
            if place_of(table) == Place::Home {
                continue;
            }
            for unique in table.uniques {
                let name = format!("{}.{}", table.name, unique.name);
                let is_local =
                    unique.columns.contains(&PLATFORM) || of_one_platform.contains(&&*name);
                let is_global = indexes(table).any(|index| index.name == unique.name);
                assert!(is_local != is_global, "{name}");
            }
        }
    }

    #[test]
    fn different_values_have_different_ids() {
        let table = crate::tables::all()[0];
        let unique = Unique {
            name: "name",
            columns: &[],
            predicates: &[],
        };
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let keys = [
            texts(&["a b"]),
            texts(&["a", "b"]),
            texts(&["a 1:b"]),
            texts(&["", "ab"]),
        ];
        let ids: BTreeSet<_> = keys
            .iter()
            .map(|texts| id_of(table, &unique, texts))
            .collect();
        assert_eq!(ids.len(), 4);
    }
}
