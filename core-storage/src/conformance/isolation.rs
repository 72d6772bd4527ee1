//! Cases for the isolation of units of work.

use std::sync::Arc;

use core_domain::port::Mode;
use tokio::task::JoinSet;

use super::fixture::{ITEMS, add, item, of, open, read, visible};
use crate::row_store::RowStore;

pub(super) async fn a_dropped_unit_is_rolled_back(store: Arc<dyn RowStore>) {
    let mut tx = open(&store, Mode::Write).await;
    assert!(tx.insert(&ITEMS, item("dropped", "1", 0)).await.is_ok());
    drop(tx);
    assert_eq!(read(&store, &of("dropped")).await.len(), 0);
    // The next writer is not blocked, and does not see the change either.
    add(&store, vec![item("dropped", "1", 0)]).await;
}

pub(super) async fn a_rolled_back_unit_changes_nothing(store: Arc<dyn RowStore>) {
    let mut tx = open(&store, Mode::Write).await;
    assert!(tx.insert(&ITEMS, item("undone", "1", 0)).await.is_ok());
    tx.rollback().await;
    assert_eq!(read(&store, &of("undone")).await.len(), 0);
}

pub(super) async fn a_read_unit_sees_one_committed_snapshot(store: Arc<dyn RowStore>) {
    let mut reader = open(&store, Mode::Read).await;
    assert_eq!(visible(&mut reader, "seen").await, 0);
    let mut writer = open(&store, Mode::Write).await;
    assert!(writer.insert(&ITEMS, item("seen", "1", 0)).await.is_ok());
    assert_eq!(
        visible(&mut writer, "seen").await,
        1,
        "a unit sees its own work"
    );
    assert_eq!(
        read(&store, &of("seen")).await.len(),
        0,
        "no other unit sees it"
    );
    assert!(writer.commit().await.is_ok());
    assert_eq!(
        visible(&mut reader, "seen").await,
        0,
        "a reader keeps its snapshot"
    );
    assert_eq!(read(&store, &of("seen")).await.len(), 1);
    assert!(reader.commit().await.is_ok());
    let mut reader = open(&store, Mode::Read).await;
    let (Ok(first), Ok(second)) = (reader.now().await, reader.now().await) else {
        panic!("a unit has a time");
    };
    assert_eq!(first, second);
}

pub(super) async fn a_long_reader_keeps_its_snapshot_while_a_thousand_units_commit(
    store: Arc<dyn RowStore>,
) {
    const WRITERS: i64 = 8;
    const UNITS: i64 = 125;
    add(&store, vec![item("long", "first", 0)]).await;
    let mut reader = open(&store, Mode::Read).await;
    assert_eq!(visible(&mut reader, "long").await, 1);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for unit in 0..UNITS {
                let row = item("long", &format!("{writer}-{unit}"), unit);
                add(&store, vec![row]).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        assert!(done.is_ok(), "a reader does not block a writer");
        assert_eq!(visible(&mut reader, "long").await, 1);
    }
    assert!(reader.commit().await.is_ok());
    let rows = read(&store, &of("long")).await.len();
    assert_eq!(i64::try_from(rows).unwrap_or(0), WRITERS * UNITS + 1);
}
