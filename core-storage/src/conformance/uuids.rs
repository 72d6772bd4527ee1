//! Cases for ids that an engine may store as UUIDs and not as text.

use std::sync::Arc;

use core_domain::port::{Direction, Mode};
use core_domain::testing::named_uuid;

use super::fixture::{REFERENCES, open, read, rows_of, write};
use crate::filter::{Filter, Op};
use crate::query::Select;
use crate::row_store::{Replacement, RowStore};
use crate::table::VERSION;
use crate::value::{ReadRow, Row, Value};

/// Returns a row with the ids of these names.
fn reference(name: &str, parent: Option<&str>) -> Row {
    let id = |name| Value::text(&named_uuid(name));
    vec![id(name), parent.map_or(Value::Null, id), Value::Int(1)]
}

async fn add(store: &Arc<dyn RowStore>, rows: Vec<Row>) {
    let added = write(store, |tx| {
        let rows = rows.clone();
        Box::pin(async move { tx.insert_many(&REFERENCES, rows).await })
    });
    assert!(added.await.is_ok(), "rows can be added");
}

/// Returns texts that are ids of rows, start as they do, or have nothing in common with them.
fn texts() -> Vec<String> {
    let id = named_uuid("uuid-b");
    let mut texts = vec![id.to_uppercase(), format!("{id}0"), "lookup".to_owned()];
    texts.extend(["", "7", "75756964-2d62", "g", "-", "\u{e9}"].map(str::to_owned));
    texts.extend((0..=id.len()).filter_map(|end| id.get(..end).map(str::to_owned)));
    texts.extend((0..id.len()).filter_map(|at| Some(format!("{}~", id.get(..at)?))));
    texts.extend((0..id.len()).filter_map(|at| Some(format!("{}!", id.get(..at)?))));
    texts
}

fn filters() -> Vec<Filter> {
    let mut filters = Vec::new();
    for text in texts() {
        let value = Value::text(&text);
        for op in [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge] {
            filters.push(Filter::Compare("id", op, value.clone()));
            filters.push(Filter::Compare("parent", op, value.clone()));
        }
        let other = Value::text(&named_uuid("uuid-c"));
        filters.push(Filter::In("id", vec![value.clone(), other]));
        filters.push(Filter::In("id", vec![value.clone(), value]));
        filters.push(Filter::Prefix("id", text));
    }
    filters
}

pub(super) async fn ids_compare_with_any_text(store: Arc<dyn RowStore>) {
    let names = ["uuid-a", "uuid-b", "uuid-b0", "uuid-c"];
    let rows: Vec<Row> = names
        .iter()
        .zip([None, Some("uuid-a"), Some("uuid-b"), None])
        .map(|(name, parent)| reference(name, parent))
        .collect();
    add(&store, rows.clone()).await;
    let own = Filter::In(
        "id",
        rows.iter().filter_map(|row| row.first().cloned()).collect(),
    );
    for filter in filters() {
        let select = Select::of(&REFERENCES).filter(own.clone().and(filter.clone()));
        let matching = rows.iter().filter(|row| filter.matches(&REFERENCES, row));
        let matching: Vec<Row> = matching.cloned().collect();
        assert_eq!(read(&store, &select).await, matching, "{filter:?}");
    }
}

pub(super) async fn a_key_that_is_no_uuid_has_no_row(store: Arc<dyn RowStore>) {
    let mut tx = open(&store, Mode::Write).await;
    let mut found = 0;
    let mut visit = |_: &dyn ReadRow| {
        found += 1;
        Ok(())
    };
    for key in ["lookup", "", "\u{e9}"] {
        let all = Filter::all();
        let got = tx.get(&REFERENCES, key, &all, &mut visit).await;
        let locked = tx.lock(&REFERENCES, &Value::text(key), &mut visit).await;
        let descendants = Direction::Descendants;
        let walked = tx.walk(&REFERENCES, key, descendants, 9, &all, &mut visit);
        let walked = walked.await;
        assert!(got.and(locked).and(walked).is_ok(), "{key}");
        let with_key = Filter::eq("id", key);
        let set = [(VERSION, Value::Int(9))];
        let updated = tx.update(&REFERENCES, &with_key, &set).await;
        assert!(matches!(updated, Ok(0)), "{key}");
        let deleted = tx.delete(&REFERENCES, &with_key).await;
        assert!(matches!(deleted, Ok(0)), "{key}");
    }
    assert_eq!(found, 0);
    assert!(tx.commit().await.is_ok());
}

pub(super) async fn a_text_that_is_no_uuid_is_refused_as_an_id(store: Arc<dyn RowStore>) {
    let upper = named_uuid("uuid-x").to_uppercase();
    for (id, parent) in [("lookup", None), (&*upper, None), ("", Some("lookup"))] {
        let mut row = reference("uuid-x", None);
        match parent {
            None => row[0] = Value::text(id),
            Some(parent) => row[1] = Value::text(parent),
        }
        let mut tx = open(&store, Mode::Write).await;
        assert!(tx.insert(&REFERENCES, row).await.is_err(), "{id}");
        tx.rollback().await;
    }
}

pub(super) async fn rows_with_ids_are_changed_in_batches_and_walked(store: Arc<dyn RowStore>) {
    let names = ["uuid-1", "uuid-2", "uuid-3"];
    let parents = [None, Some("uuid-1"), Some("uuid-2")];
    let old: Vec<Row> = names
        .iter()
        .zip(parents)
        .map(|(name, parent)| reference(name, parent))
        .collect();
    add(&store, old.clone()).await;
    let changed = |row: &Row| {
        let mut new = row.clone();
        if let Some(version) = new.last_mut() {
            *version = Value::Int(2);
        }
        new
    };
    let new: Vec<Row> = old.iter().map(changed).collect();
    let replaced = write(&store, |tx| {
        let rows = old.iter().cloned().zip(new.iter().cloned());
        let rows = rows.map(|(old, new)| Replacement { old, new }).collect();
        Box::pin(async move { tx.replace_many(&REFERENCES, rows).await })
    });
    assert!(replaced.await.is_ok());
    let mut tx = open(&store, Mode::Read).await;
    let first = named_uuid("uuid-1");
    let mut below = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        below.push(REFERENCES.copy_row(row)?);
        Ok(())
    };
    let (down, all) = (Direction::Descendants, Filter::all());
    let walked = tx
        .walk(&REFERENCES, &first, down, 9, &all, &mut visit)
        .await;
    assert!(walked.is_ok());
    assert_eq!(below, new[1..]);
    let after = Select {
        after: Some(vec![Value::text(&first)]),
        ..Select::of(&REFERENCES).filter(Filter::Prefix("id", "75756964-2d3".to_owned()))
    };
    let rest = rows_of(tx.as_mut(), &after).await;
    assert!(rest.is_ok_and(|rest| rest == new[1..]));
}
