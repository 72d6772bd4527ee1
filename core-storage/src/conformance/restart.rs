//! Tests durability: committed rows exist after the engine was closed and opened again.

use std::sync::Arc;

use core_domain::port::Mode;

use super::fixture::{ITEMS, add, ids, item, keys, of, read};
use crate::row_store::RowStore;

/// Opens the engine twice, and checks that the second one sees what the first one committed. For durable engines.
///
/// # Panics
/// If a committed row is missing or an uncommitted one exists.
pub async fn restart<F: Future<Output = Arc<dyn RowStore>>>(open: impl Fn() -> F) {
    let store = open().await;
    add(&store, vec![item("restart", "kept", 0)]).await;
    let Ok(mut tx) = store.begin(Mode::Write).await else {
        panic!("a unit can be opened");
    };
    let inserted = tx.insert(&ITEMS, item("restart", "lost", 0)).await;
    assert!(inserted.is_ok());
    drop(tx);
    drop(store);
    let store = open().await;
    let found = ids(&read(&store, &of("restart")).await);
    assert_eq!(found, keys("restart", &["kept"]));
}
