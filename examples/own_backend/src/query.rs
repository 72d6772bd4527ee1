//! Finds matching rows: through an index if the filter fixes its columns, otherwise by scanning all rows.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use core_domain::kernel::StoreError;
use core_domain::port::Direction;
use core_storage::{Filter, Op, Order, Row, Select, Table, Value};
use redb::{ReadableTable, TableDefinition, TableError};

use crate::encoding::{decode_row, encode};
use crate::maps::{Index, backend_error, get, indexes, rows_of};
use crate::transaction::Transaction;

/// The value that the filter requires for the column; `None` if it allows several.
fn required_value<'f>(filter: &'f Filter, column: &str) -> Option<&'f Value> {
    match filter {
        Filter::And(all) => all.iter().find_map(|part| required_value(part, column)),
        Filter::Compare(name, Op::Eq, value) if *name == column => Some(value),
        _ => None,
    }
}

/// Returns the index with the longest prefix of columns that the filter fixes, and the encoded prefix. Only indexes
/// that cover every row are considered.
fn best_index(table: &'static Table, filter: &Filter) -> Option<(Index, Vec<u8>)> {
    let prefix = |index: Index| {
        let mut bytes = Vec::new();
        let values = index
            .columns
            .iter()
            .map_while(|column| required_value(filter, column));
        values.for_each(|value| encode(&mut bytes, value));
        (index, bytes)
    };
    let full = indexes(table).filter(|index| index.predicates.is_empty());
    let prefixes = full.map(prefix).filter(|(_, prefix)| !prefix.is_empty());
    prefixes.max_by_key(|(_, prefix)| prefix.len())
}

/// Returns the matching rows, in no particular order.
pub(crate) fn matching(
    transaction: &Transaction,
    table: &'static Table,
    filter: &Filter,
) -> Result<Vec<Row>, StoreError> {
    match transaction {
        Transaction::Read(read) => {
            let rows = match read.open_table(rows_of(table)) {
                // No row was ever inserted.
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                rows => rows.map_err(backend_error)?,
            };
            let found = best_index(table, filter).map(|(index, prefix)| {
                let name = index.name(table);
                match read.open_table(TableDefinition::<&[u8], &str>::new(&name)) {
                    Err(TableError::TableDoesNotExist(_)) => Ok(Vec::new()),
                    map => keys_of(&map.map_err(backend_error)?, &prefix),
                }
            });
            select_from(&rows, table, filter, found.transpose()?)
        }
        Transaction::Write(write, _) => {
            let rows = write.open_table(rows_of(table)).map_err(backend_error)?;
            let found = best_index(table, filter).map(|(index, prefix)| {
                let name = index.name(table);
                let map = TableDefinition::<&[u8], &str>::new(&name);
                keys_of(&write.open_table(map).map_err(backend_error)?, &prefix)
            });
            select_from(&rows, table, filter, found.transpose()?)
        }
    }
}

/// Returns the keys of the rows whose index entries start with the prefix.
fn keys_of(
    map: &impl ReadableTable<&'static [u8], &'static str>,
    prefix: &[u8],
) -> Result<Vec<String>, StoreError> {
    let mut keys = Vec::new();
    for entry in map.range(prefix..).map_err(backend_error)? {
        let (entry, key) = entry.map_err(backend_error)?;
        if !entry.value().starts_with(prefix) {
            break;
        }
        keys.push(key.value().to_owned());
    }
    Ok(keys)
}

fn select_from(
    rows: &impl ReadableTable<&'static str, &'static [u8]>,
    table: &'static Table,
    filter: &Filter,
    keys: Option<Vec<String>>,
) -> Result<Vec<Row>, StoreError> {
    let one = required_value(filter, table.key()).and_then(Value::as_text);
    let keys = one.map(|key| vec![key.to_owned()]).or(keys);
    let mut found = Vec::new();
    if let Some(keys) = keys {
        for key in keys {
            found.extend(get(rows, &key)?);
        }
    } else {
        for entry in rows.iter().map_err(backend_error)? {
            let (_, bytes) = entry.map_err(backend_error)?;
            found.push(decode_row(bytes.value())?);
        }
    }
    found.retain(|row| filter.matches(table, row));
    Ok(found)
}

fn compare(order: &[Order], left: &[Value], right: &[Value]) -> Ordering {
    let parts = order.iter().zip(left.iter().zip(right));
    let orderings = parts.map(|(part, (left, right))| match part.descending {
        true => right.cmp(left),
        false => left.cmp(right),
    });
    orderings.fold(Ordering::Equal, Ordering::then)
}

/// Returns the rows of a query in the requested order.
pub(crate) fn select(transaction: &Transaction, select: &Select) -> Result<Vec<Row>, StoreError> {
    let order = select.full_order();
    let mut positioned = Vec::new();
    for row in matching(transaction, select.table, &select.filter)? {
        let position = select.position_of(&row)?;
        let is_after = |after: &Vec<Value>| compare(&order, &position, after).is_gt();
        if select.after.as_ref().is_none_or(is_after) {
            positioned.push((position, row));
        }
    }
    positioned.sort_by(|(left, _), (right, _)| compare(&order, left, right));
    let limit = select.limit.and_then(|limit| usize::try_from(limit).ok());
    positioned.truncate(limit.unwrap_or(usize::MAX));
    Ok(positioned.into_iter().map(|(_, row)| row).collect())
}

/// Returns the rows reached from the row with this key, each with its distance: descendants nearest first, ancestors
/// farthest first.
pub(crate) fn walk(
    transaction: &Transaction,
    table: &'static Table,
    start: &str,
    direction: Direction,
    depth: u32,
) -> Result<Vec<(u32, Row)>, StoreError> {
    let parent = table.parent.unwrap_or_default();
    let text = |row: &Row, column: &str| table.value(row, column).as_text().map(str::to_owned);
    let mut reached: BTreeMap<String, (u32, Row)> = BTreeMap::new();
    let by_key = |key: &str| matching(transaction, table, &Filter::eq(table.key(), key));
    let mut next: VecDeque<(u32, Row)> = by_key(start)?.into_iter().map(|row| (0, row)).collect();
    while let Some((distance, row)) = next.pop_front() {
        if distance >= depth {
            continue;
        }
        let neighbours = match direction {
            Direction::Ancestors => match text(&row, parent) {
                Some(parent) => by_key(&parent)?,
                None => Vec::new(),
            },
            Direction::Descendants => {
                let key = text(&row, table.key()).unwrap_or_default();
                matching(transaction, table, &Filter::eq(parent, &*key))?
            }
        };
        for row in neighbours {
            let key = text(&row, table.key()).unwrap_or_default();
            if key != start && !reached.contains_key(&key) {
                reached.insert(key, (distance + 1, row.clone()));
                next.push_back((distance + 1, row));
            }
        }
    }
    // The rows are in key order here, so the stable sort by distance orders rows of equal distance by key.
    let mut rows: Vec<(u32, Row)> = reached.into_values().collect();
    match direction {
        Direction::Ancestors => rows.sort_by_key(|(distance, _)| std::cmp::Reverse(*distance)),
        Direction::Descendants => rows.sort_by_key(|(distance, _)| *distance),
    }
    Ok(rows)
}
