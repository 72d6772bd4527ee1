//! Cases for the commit numbers of engines that support them.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::fixture::{
    ITEMS, Work, add, item, of, open, rows_of, rows_or_panic, visible, with, write,
};
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{Replacement, RowStore, RowTx};
use crate::table::{PLATFORM, VERSION};
use crate::value::{Row, Value};

pub(super) async fn equal_commit_numbers_mean_equal_rows(store: Arc<dyn RowStore>) {
    let mut before = open(&store, Mode::Read).await;
    assert_eq!(visible(&mut before, "numbers").await, 0);
    let Some(number) = before.commit_number(&ITEMS, None) else {
        // An engine need not support commit numbers.
        return;
    };
    for outcome in ["rolled back", "committed"] {
        let mut tx = open(&store, Mode::Write).await;
        let added = tx.insert(&ITEMS, item("numbers", "a", 1)).await;
        assert!(added.is_ok(), "a row can be added");
        assert_eq!(
            tx.commit_number(&ITEMS, None),
            None,
            "its own change is not committed yet"
        );
        let reader = open(&store, Mode::Read).await;
        let during = reader.commit_number(&ITEMS, None);
        assert_eq!(during, Some(number), "nothing is committed yet");
        if outcome == "committed" {
            assert!(tx.commit().await.is_ok());
        } else {
            tx.rollback().await;
        }
    }
    let still = before.commit_number(&ITEMS, None);
    assert!(
        still.is_none_or(|still| still == number),
        "its number does not change"
    );
    let mut after = open(&store, Mode::Read).await;
    assert_eq!(visible(&mut after, "numbers").await, 1);
    assert_ne!(
        after.commit_number(&ITEMS, None),
        Some(number),
        "the table has changed"
    );
}

/// A name and the change that it describes.
type Change = (&'static str, for<'t> fn(&'t mut dyn RowTx) -> Work<'t, ()>);

fn row(platform: &str, id: &str) -> Row {
    item(platform, id, 1)
}

fn key(id: &str) -> Filter {
    Filter::eq("id", id)
}

async fn update(
    tx: &mut dyn RowTx,
    filter: Filter,
    column: &'static str,
    value: Value,
) -> Result<(), StoreError> {
    let changed = tx.update(&ITEMS, &filter, &[(column, value)]).await?;
    assert!(changed > 0, "there is something to change");
    Ok(())
}

const CHANGES: [Change; 11] = [
    ("one row is inserted", |tx| {
        Box::pin(tx.insert(&ITEMS, row("moves-a", "1")))
    }),
    ("rows of several platforms are inserted", |tx| {
        let rows = vec![row("moves-a", "2"), row("moves-b", "2")];
        Box::pin(tx.insert_many(&ITEMS, rows))
    }),
    ("rows are appended", |tx| {
        let rows = vec![row("moves-b", "3"), row("moves-b", "4")];
        Box::pin(tx.append(&ITEMS, rows))
    }),
    ("a row is changed by its key", |tx| {
        Box::pin(update(tx, key("moves-a-1"), "rank", Value::Int(2)))
    }),
    ("a row is changed by its key and platform", |tx| {
        let filter = key("moves-b-3").and_platform(Some("moves-b"));
        Box::pin(update(tx, filter, "rank", Value::Int(3)))
    }),
    ("rows of any platform are changed", |tx| {
        let filter = Filter::Prefix(PLATFORM, "moves-".to_owned());
        Box::pin(update(tx, filter, "amount", Value::Int(4)))
    }),
    ("a row moves to another platform", |tx| {
        let filter = key("moves-a-2").and_platform(Some("moves-a"));
        Box::pin(update(tx, filter, PLATFORM, Value::text("moves-b")))
    }),
    ("a row is replaced", |tx| {
        Box::pin(replace(tx, "moves-b", "rank", Value::Int(5)))
    }),
    ("a row is replaced by one of another platform", |tx| {
        Box::pin(replace(tx, "moves-b", PLATFORM, Value::text("moves-a")))
    }),
    ("a row is deleted by its key", |tx| {
        Box::pin(async move { tx.delete(&ITEMS, &key("moves-a-1")).await.map(drop) })
    }),
    ("the rows of a platform are deleted", |tx| {
        Box::pin(async move {
            let filter = Filter::all().and_platform(Some("moves-b"));
            tx.delete(&ITEMS, &filter).await.map(drop)
        })
    }),
];

/// Replaces the first row of the platform.
async fn replace(
    tx: &mut dyn RowTx,
    platform: &str,
    column: &str,
    value: Value,
) -> Result<(), StoreError> {
    let Some(old) = rows_of(tx, &of(platform)).await?.into_iter().next() else {
        panic!("there is a row to replace");
    };
    let new = with(old.clone(), VERSION, Value::Int(2));
    let new = with(new, column, value);
    tx.replace_many(&ITEMS, vec![Replacement { old, new }])
        .await
}

pub(super) async fn a_change_changes_the_commit_numbers_of_the_affected_platforms(
    store: Arc<dyn RowStore>,
) {
    let parts = [None, Some("moves-a"), Some("moves-b")];
    let all = Select::of(&ITEMS).filter(Filter::Prefix(PLATFORM, "moves-".to_owned()));
    let select = |part: Option<&str>| part.map_or_else(|| all.clone(), of);
    add(&store, vec![row("moves-a", "0"), row("moves-b", "0")]).await;
    for (name, change) in CHANGES {
        let mut seen = Vec::new();
        let mut before = open(&store, Mode::Read).await;
        for part in parts {
            let number = before.commit_number(&ITEMS, part);
            seen.push((
                part,
                rows_or_panic(&mut before, &select(part)).await,
                number,
            ));
        }
        drop(before);
        assert!(write(&store, change).await.is_ok(), "{name}");
        let mut after = open(&store, Mode::Read).await;
        let mut changed = 0;
        for (part, old, old_number) in seen {
            let number = after.commit_number(&ITEMS, part);
            if rows_or_panic(&mut after, &select(part)).await != old {
                changed += 1;
                let stays = number.is_some() && number == old_number;
                assert!(!stays, "{name}: the number of {part:?} stays");
            }
        }
        assert!(changed > 1, "{name}: changes the rows of no platform");
    }
}
