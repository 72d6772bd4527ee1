//! Cases for batches of rows.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::fixture::{ITEMS, add, ids, item, keys, of, open, read, rows_of, with, write};
use crate::row_store::{Replacement, RowStore};
use crate::table::VERSION;
use crate::value::{Row, Value};

fn replacement(old: &Row, column: &str, value: Value) -> Replacement {
    let version = ITEMS.value(old, VERSION).as_int().unwrap_or(0) + 1;
    let new = with(old.clone(), VERSION, Value::Int(version));
    Replacement {
        old: old.clone(),
        new: with(new, column, value),
    }
}

fn conflict_index(outcome: Result<(), StoreError>) -> &'static str {
    match outcome {
        Err(StoreError::Conflict { index, .. }) => index,
        other => panic!("not a conflict: {other:?}"),
    }
}

pub(super) async fn many_rows_are_inserted_as_one(store: Arc<dyn RowStore>) {
    let rows: Vec<Row> = (0..300_i64)
        .map(|n| {
            let row = item("many", &format!("{n:03}"), n);
            let row = with(
                row,
                "flag",
                [Value::Null, Value::Bool(n % 2 == 0)][usize::from(n % 3 > 0)].clone(),
            );
            let row = with(
                row,
                "amount",
                [Value::Int(-n), Value::Null][usize::from(n % 5 > 0)].clone(),
            );
            with(row, "data", Value::text("{\"a\": \"é,\\\"\\\\{}\"}"))
        })
        .collect();
    let inserted = write(&store, |tx| {
        let rows = rows.clone();
        Box::pin(async move { tx.insert_many(&ITEMS, rows).await })
    });
    assert!(inserted.await.is_ok());
    assert_eq!(read(&store, &of("many")).await, rows);
}

pub(super) async fn a_conflict_among_many_inserts_none_and_leaves_the_unit_active(
    store: Arc<dyn RowStore>,
) {
    let named_row = |id, name| with(item("batch", id, 0), "name", Value::text(name));
    add(&store, vec![named_row("0", "a")]).await;
    let mut tx = open(&store, Mode::Write).await;
    assert!(tx.insert(&ITEMS, named_row("1", "b")).await.is_ok());
    let with_taken_name = vec![
        named_row("2", "c"),
        named_row("3", "a"),
        named_row("0", "d"),
    ];
    assert_eq!(
        conflict_index(tx.insert_many(&ITEMS, with_taken_name).await),
        "name"
    );
    let with_taken_key = vec![named_row("2", "c"), named_row("1", "d")];
    assert_eq!(
        conflict_index(tx.insert_many(&ITEMS, with_taken_key).await),
        "key"
    );
    let with_one_name_twice = vec![named_row("2", "c"), named_row("3", "c")];
    assert_eq!(
        conflict_index(tx.insert_many(&ITEMS, with_one_name_twice).await),
        "name"
    );
    let seen = rows_of(tx.as_mut(), &of("batch")).await;
    assert_eq!(ids(&seen.unwrap_or_default()), keys("batch", &["0", "1"]));
    let free = vec![named_row("2", "c"), named_row("3", "d")];
    assert!(tx.insert_many(&ITEMS, free).await.is_ok());
    assert!(tx.commit().await.is_ok());
    assert_eq!(read(&store, &of("batch")).await.len(), 4);
}

pub(super) async fn many_rows_are_replaced_as_one(store: Arc<dyn RowStore>) {
    let rows: Vec<Row> = (0..50)
        .map(|n| item("replace", &format!("{n:02}"), n))
        .collect();
    add(&store, rows.clone()).await;
    // Each row changes another column, also to NULL and from NULL.
    let change = |(n, row): (usize, &Row)| match n % 3 {
        0 => replacement(row, "amount", Value::Int(7)),
        1 => replacement(row, "flag", Value::Bool(true)),
        _ => replacement(row, "name", Value::text(&format!("name {n}"))),
    };
    let replacements: Vec<Replacement> = rows.iter().enumerate().map(change).collect();
    let expected: Vec<Row> = replacements.iter().map(|row| row.new.clone()).collect();
    let replaced = write(&store, |tx| {
        let replacements = replacements.clone();
        Box::pin(async move { tx.replace_many(&ITEMS, replacements).await })
    });
    assert!(replaced.await.is_ok());
    assert_eq!(read(&store, &of("replace")).await, expected);
}

pub(super) async fn a_row_can_take_over_a_unique_key_from_another_row_of_the_batch(
    store: Arc<dyn RowStore>,
) {
    let active = with(item("handover", "1", 0), "state", Value::text("active"));
    let idle = item("handover", "2", 0);
    add(&store, vec![active.clone(), idle.clone()]).await;
    let handover = vec![
        replacement(&active, "state", Value::text("idle")),
        replacement(&idle, "state", Value::text("active")),
    ];
    let replaced = write(&store, |tx| {
        let handover = handover.clone();
        Box::pin(async move { tx.replace_many(&ITEMS, handover).await })
    });
    assert!(replaced.await.is_ok());
    let active = of("handover").filter(crate::Filter::eq("state", "active"));
    assert_eq!(ids(&read(&store, &active).await), keys("handover", &["2"]));
}

pub(super) async fn a_batch_with_a_changed_row_or_a_taken_unique_key_must_be_retried(
    store: Arc<dyn RowStore>,
) {
    let rows: Vec<Row> = ["1", "2", "3"]
        .map(|id| with(item("stale", id, 0), "name", Value::text(id)))
        .to_vec();
    add(&store, rows.clone()).await;
    let mut stale = replacement(&rows[1], "rank", Value::Int(9));
    stale.old = with(stale.old, VERSION, Value::Int(5));
    let refused = [
        vec![replacement(&rows[0], "rank", Value::Int(9)), stale],
        vec![
            replacement(&rows[0], "rank", Value::Int(9)),
            replacement(&rows[1], "name", Value::text("3")),
        ],
    ];
    for batch in refused {
        let mut tx = open(&store, Mode::Write).await;
        let outcome = tx.replace_many(&ITEMS, batch).await;
        assert!(matches!(outcome, Err(StoreError::Retry(_))), "{outcome:?}");
        assert!(tx.commit().await.is_err(), "the unit is aborted");
    }
    assert_eq!(read(&store, &of("stale")).await, rows);
}
