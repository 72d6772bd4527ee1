//! Cases for values that round-trip and for the rules of units of work.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::shared::{AuditArchive, AuditSeal};
use core_domain::testing::named_uuid;

use super::fixture::{ITEMS, add, item, of, open, read, with, write};
use crate::filter::Filter;
use crate::row_store::{GroupSum, RowStore};
use crate::table::VERSION;
use crate::tabular::Tabular;
use crate::value::{Row, Value};

pub(super) async fn every_value_round_trips(store: Arc<dyn RowStore>) {
    let row = item("values", "full", i64::MIN);
    let row = with(row, "name", Value::text("é ' \" $1 ? \u{10FFFF}"));
    let row = with(row, "amount", Value::Int(i64::MAX));
    let row = with(row, "flag", Value::Bool(false));
    let row = with(row, "data", Value::text(r#"{"b": [1, null], "a": "x"}"#));
    let row = with(row, "desc", Value::text(""));
    let nulls = item("values", "nulls", 0);
    add(&store, vec![row.clone(), nulls.clone()]).await;
    assert_eq!(read(&store, &of("values")).await, vec![row, nulls]);
}

pub(super) async fn an_update_changes_only_matching_rows(store: Arc<dyn RowStore>) {
    let rows: Vec<_> = (0..3).map(|n| item("update", &n.to_string(), n)).collect();
    add(&store, rows.clone()).await;
    let changed = write(&store, |tx| {
        Box::pin(async move {
            let matching = Filter::eq("platform_id", "update").and(Filter::ge("rank", 1));
            let set = [("amount", Value::Int(9)), (VERSION, Value::Int(2))];
            tx.update(&ITEMS, &matching, &set).await
        })
    });
    assert!(matches!(changed.await, Ok(2)), "two rows match");
    let change = |row| with(with(row, "amount", Value::Int(9)), VERSION, Value::Int(2));
    let mut expected = rows;
    for row in expected.iter_mut().skip(1) {
        *row = change(row.clone());
    }
    assert_eq!(read(&store, &of("update")).await, expected);
    let gone = write(&store, |tx| {
        Box::pin(async move {
            let matching = Filter::eq("platform_id", "update").and(Filter::eq("amount", 9));
            tx.delete(&ITEMS, &matching).await
        })
    });
    assert!(matches!(gone.await, Ok(2)), "two rows are deleted");
    assert_eq!(read(&store, &of("update")).await, expected[..1]);
}

pub(super) async fn an_append_only_row_cannot_be_changed_or_deleted(store: Arc<dyn RowStore>) {
    let (seals, all) = (AuditSeal::TABLE, Filter::all());
    for attempt in 0..3 {
        let mut tx = open(&store, Mode::Write).await;
        let is_refused = match attempt {
            0 => tx
                .update(seals, &all, &[("seq", Value::Int(1))])
                .await
                .is_err(),
            1 => tx.delete(seals, &all).await.is_err(),
            _ => tx.replace_many(seals, Vec::new()).await.is_err(),
        };
        assert!(is_refused, "attempt {attempt}");
        assert!(tx.commit().await.is_err(), "the unit is aborted");
    }
}

pub(super) async fn only_archived_rows_of_an_append_only_table_can_be_removed(
    store: Arc<dyn RowStore>,
) {
    let key = |n: u32| Value::text(&named_uuid(&format!("0-archived-{n}")));
    let archive = Row::from([
        Value::text("1969-12"),
        key(2),
        Value::Int(0),
        Value::Int(2),
        Value::Int(0),
        Value::text("feed"),
        Value::text("digest"),
        Value::text("previous"),
        Value::Int(0),
        Value::text("jws"),
        Value::Null,
        Value::Int(1),
    ]);
    let seal = |n: u32| {
        Row::from([
            key(n),
            Value::text("archived"),
            Value::Int(n.into()),
            Value::Int(n.into()),
            Value::text("changes"),
            Value::text("previous"),
            Value::text("hash"),
            Value::Int(0),
            Value::Int(1),
        ])
    };
    let inserted = write(&store, |tx| {
        let archive = archive.clone();
        let seals = (0..4).map(seal).collect();
        Box::pin(async move {
            tx.insert_many(AuditSeal::TABLE, seals).await?;
            tx.insert(AuditArchive::TABLE, archive).await
        })
    });
    assert!(inserted.await.is_ok());
    for (table, refused) in [(AuditSeal::TABLE, key(2)), (&ITEMS, key(0))] {
        let mut tx = open(&store, Mode::Write).await;
        assert!(tx.remove_archived(table, &[refused]).await.is_err());
        assert!(tx.commit().await.is_err(), "the unit is aborted");
    }
    let removed = write(&store, |tx| {
        let keys = [key(0), Value::text("0000-archived"), key(1)];
        Box::pin(async move { tx.remove_archived(AuditSeal::TABLE, &keys).await })
    });
    assert!(matches!(removed.await, Ok(2)));
    let mut tx = open(&store, Mode::Read).await;
    let of_chain = Filter::eq("chain", "archived");
    let rest = tx.count(AuditSeal::TABLE, &of_chain);
    assert!(matches!(rest.await, Ok(2)));
}

pub(super) async fn sums_are_grouped_and_ordered(store: Arc<dyn RowStore>) {
    let amount = |id, state, amount| {
        let row = with(item("sum", id, 0), "state", Value::text(state));
        with(row, "amount", amount)
    };
    let rows = vec![
        amount("1", "b", Value::Int(5)),
        amount("2", "a", Value::Int(7)),
        amount("3", "b", Value::Int(-2)),
        amount("4", "b", Value::Null),
        amount("5", "c", Value::Null),
    ];
    add(&store, rows).await;
    let group = |values: &[&str], count, sum| GroupSum {
        values: values.iter().map(|value| Value::text(value)).collect(),
        count,
        sum,
    };
    let by_state = [
        group(&["a"], 1, 7),
        group(&["b"], 3, 3),
        group(&["c"], 1, 0),
    ];
    assert_eq!(sums_by(&store, "sum", &["state"]).await, by_state);
    let by_both = [
        group(&["a", "sum"], 1, 7),
        group(&["b", "sum"], 3, 3),
        group(&["c", "sum"], 1, 0),
    ];
    let both = &["state", "platform_id"];
    assert_eq!(sums_by(&store, "sum", both).await, by_both);
    assert_eq!(sums_by(&store, "sum", &[]).await, [group(&[], 5, 10)]);
    assert_eq!(sums_by(&store, "nobody", &[]).await, []);
}

/// Returns the sums of the amounts of an owner.
async fn sums_by(
    store: &Arc<dyn RowStore>,
    owner: &'static str,
    groups: &'static [&'static str],
) -> Vec<GroupSum> {
    let mut tx = open(store, Mode::Read).await;
    let matching = Filter::eq("platform_id", owner);
    match tx.sum(&ITEMS, "amount", groups, &matching).await {
        Ok(sums) => sums,
        Err(error) => panic!("rows can be summed: {error}"),
    }
}

pub(super) async fn a_value_of_another_type_is_refused(store: Arc<dyn RowStore>) {
    let wrong = [
        ("rank", Value::text("1")),
        ("rank", Value::Null),
        ("flag", Value::Int(1)),
        ("name", Value::Bool(true)),
        ("name", Value::text("a\0b")),
    ];
    for (column, value) in wrong {
        let Ok(mut tx) = store.begin(Mode::Write).await else {
            panic!("a unit can be opened");
        };
        let row = with(item("wrong", "1", 0), column, value.clone());
        let refused = tx.insert(&ITEMS, row).await;
        assert!(
            matches!(refused, Err(StoreError::Backend(_))),
            "{column} {value:?}"
        );
        tx.rollback().await;
    }
    assert_eq!(read(&store, &of("wrong")).await.len(), 0);
}

pub(super) async fn a_read_unit_cannot_write(store: Arc<dyn RowStore>) {
    for mode in [Mode::Auto, Mode::Read] {
        let Ok(mut tx) = store.begin(mode).await else {
            panic!("a unit can be opened");
        };
        let refused = tx.insert(&ITEMS, item("reader", "1", 0)).await;
        assert!(matches!(refused, Err(StoreError::Backend(_))), "{mode:?}");
    }
    assert_eq!(read(&store, &of("reader")).await.len(), 0);
}

pub(super) async fn an_error_aborts_the_unit(store: Arc<dyn RowStore>) {
    let Ok(mut tx) = store.begin(Mode::Write).await else {
        panic!("a unit can be opened");
    };
    assert!(tx.insert(&ITEMS, item("poison", "1", 0)).await.is_ok());
    let wrong = Filter::eq("no such column", 1);
    assert!(tx.count(&ITEMS, &wrong).await.is_err());
    let all = Filter::all();
    assert!(matches!(
        tx.count(&ITEMS, &all).await,
        Err(StoreError::Backend(_))
    ));
    assert!(tx.insert(&ITEMS, item("poison", "2", 0)).await.is_err());
    assert!(tx.now().await.is_err());
    assert!(
        tx.commit().await.is_err(),
        "an aborted unit does not commit"
    );
    assert_eq!(read(&store, &of("poison")).await.len(), 0);
}
