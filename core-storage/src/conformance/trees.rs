//! Cases for walks along the parent column.

use std::sync::Arc;

use core_domain::port::{Direction, Mode};

use super::fixture::{ITEMS, add, ids, item, keys, with, write};
use crate::filter::Filter;
use crate::row_store::RowStore;
use crate::value::{ReadRow, Row, Value};

fn child(owner: &str, id: &str, parent: &str) -> Row {
    let parent = Value::text(&format!("{owner}-{parent}"));
    with(item(owner, id, 0), "parent", parent)
}

async fn walk(
    store: &Arc<dyn RowStore>,
    key: &str,
    direction: Direction,
    depth: u32,
) -> Vec<String> {
    walk_matching(store, key, direction, depth, &Filter::all()).await
}

pub(super) async fn walks_go_both_directions_in_order(store: Arc<dyn RowStore>) {
    let rows = vec![
        item("tree", "root", 0),
        child("tree", "b", "root"),
        child("tree", "a", "root"),
        child("tree", "b1", "b"),
        child("tree", "a1", "a"),
        child("tree", "a1x", "a1"),
        item("tree", "other", 0),
    ];
    add(&store, rows).await;
    let (up, down) = (Direction::Ancestors, Direction::Descendants);
    let of = |ids: &[&str]| keys("tree", ids);
    let all = of(&["a", "b", "a1", "b1", "a1x"]);
    assert_eq!(walk(&store, "tree-root", down, 32).await, all);
    assert_eq!(walk(&store, "tree-root", down, 1).await, of(&["a", "b"]));
    assert_eq!(
        walk(&store, "tree-a1x", up, 32).await,
        of(&["root", "a", "a1"])
    );
    assert_eq!(walk(&store, "tree-a1x", up, 1).await, of(&["a1"]));
    assert_eq!(walk(&store, "tree-root", up, 32).await, of(&[]));
    assert_eq!(walk(&store, "tree-nobody", down, 32).await, of(&[]));
    assert_eq!(walk(&store, "tree-root", down, 0).await, of(&[]));
    let at_the_end = Filter::one_of("id", ["tree-b1", "tree-a1x", "tree-other"]);
    let ends = walk_matching(&store, "tree-root", down, 32, &at_the_end).await;
    assert_eq!(ends, of(&["b1", "a1x"]));
}

async fn walk_matching(
    store: &Arc<dyn RowStore>,
    key: &str,
    direction: Direction,
    depth: u32,
    filter: &Filter,
) -> Vec<String> {
    let Ok(mut tx) = store.begin(Mode::Read).await else {
        panic!("a unit can be opened");
    };
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(ITEMS.copy_row(row)?);
        Ok(())
    };
    match tx
        .walk(&ITEMS, key, direction, depth, filter, &mut visit)
        .await
    {
        Ok(()) => ids(&rows),
        Err(error) => panic!("a walk failed: {error}"),
    }
}

pub(super) async fn a_cycle_ends_the_walk(store: Arc<dyn RowStore>) {
    let rows = vec![
        item("cycle", "a", 0),
        child("cycle", "b", "a"),
        child("cycle", "c", "b"),
    ];
    add(&store, rows).await;
    let closed = write(&store, |tx| {
        Box::pin(async move {
            let parent = [("parent", Value::text("cycle-c"))];
            tx.update(&ITEMS, &Filter::eq("id", "cycle-a"), &parent)
                .await
        })
    });
    assert!(matches!(closed.await, Ok(1)));
    let of = |ids: &[&str]| keys("cycle", ids);
    let down = walk(&store, "cycle-a", Direction::Descendants, 32).await;
    assert_eq!(down, of(&["b", "c"]));
    let up = walk(&store, "cycle-a", Direction::Ancestors, 32).await;
    assert_eq!(up, of(&["b", "c"]));
}
