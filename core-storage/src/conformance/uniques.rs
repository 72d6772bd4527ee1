//! Cases for unique indexes.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::fixture::{ITEMS, add, item, of, open, read, with};
use crate::filter::Filter;
use crate::row_store::RowStore;
use crate::value::Value;

fn conflict_of<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> &'static str {
    match outcome {
        Err(StoreError::Conflict { table, index }) if table == ITEMS.name => index,
        other => panic!("not a conflict: {other:?}"),
    }
}

pub(super) async fn a_conflict_names_its_index_and_leaves_the_unit_active(
    store: Arc<dyn RowStore>,
) {
    let named = |id, name| with(item("unique", id, 0), "name", Value::text(name));
    add(&store, vec![named("1", "a")]).await;
    let mut tx = open(&store, Mode::Write).await;
    assert_eq!(conflict_of(tx.insert(&ITEMS, named("1", "b")).await), "key");
    assert_eq!(
        conflict_of(tx.insert(&ITEMS, named("2", "a")).await),
        "name"
    );
    for id in ["3", "4"] {
        let nameless = tx.insert(&ITEMS, item("unique", id, 0)).await;
        assert!(nameless.is_ok(), "NULLs are distinct");
    }
    assert!(tx.insert(&ITEMS, named("5", "A")).await.is_ok());
    assert!(tx.commit().await.is_ok());
    assert_eq!(read(&store, &of("unique")).await.len(), 4);
}

pub(super) async fn a_partial_index_covers_only_matching_rows(store: Arc<dyn RowStore>) {
    let active = |id| with(item("partial", id, 0), "state", Value::text("active"));
    add(&store, vec![active("1"), item("partial", "2", 0)]).await;
    let mut tx = open(&store, Mode::Write).await;
    assert_eq!(
        conflict_of(tx.insert(&ITEMS, active("3")).await),
        "one_active"
    );
    let outside = with(active("4"), "desc", Value::text("x"));
    assert!(tx.insert(&ITEMS, outside).await.is_ok());
    let second = Filter::eq("id", "partial-2");
    let activate = [("state", Value::text("active"))];
    assert_eq!(
        conflict_of(tx.update(&ITEMS, &second, &activate).await),
        "one_active"
    );
    let first = Filter::eq("id", "partial-1");
    let idle = [("state", Value::text("idle"))];
    assert!(matches!(tx.update(&ITEMS, &first, &idle).await, Ok(1)));
    assert!(matches!(tx.update(&ITEMS, &second, &activate).await, Ok(1)));
    let fourth = Filter::eq("id", "partial-4");
    let into = [("desc", Value::Null)];
    assert_eq!(
        conflict_of(tx.update(&ITEMS, &fourth, &into).await),
        "one_active"
    );
    assert!(tx.commit().await.is_ok());
}

pub(super) async fn an_update_to_a_taken_value_is_a_conflict(store: Arc<dyn RowStore>) {
    let named = |id, name| with(item("rename", id, 0), "name", Value::text(name));
    add(&store, vec![named("1", "a"), named("2", "b")]).await;
    let mut tx = open(&store, Mode::Write).await;
    let second = Filter::eq("id", "rename-2");
    let rename = |name| [("name", Value::text(name))];
    assert_eq!(
        conflict_of(tx.update(&ITEMS, &second, &rename("a")).await),
        "name"
    );
    assert!(matches!(
        tx.update(&ITEMS, &second, &rename("b")).await,
        Ok(1)
    ));
    assert!(matches!(
        tx.update(&ITEMS, &second, &rename("c")).await,
        Ok(1)
    ));
    assert!(tx.insert(&ITEMS, named("3", "b")).await.is_ok());
    assert!(tx.commit().await.is_ok());
    assert_eq!(read(&store, &of("rename")).await.len(), 3);
}
