//! Cases for commits whose reply is lost.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::fixture::{ITEMS, item, of, read};
use crate::fault::FaultStore;
use crate::row_store::RowStore;
use crate::value::Value;

async fn insert_pair(store: &FaultStore, rank: i64) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    for half in ["a", "b"] {
        let row = item("lost", &format!("{rank}{half}"), rank);
        tx.insert(&ITEMS, row).await?;
    }
    tx.commit().await
}

pub(super) async fn a_unit_whose_reply_is_lost_is_applied_completely_or_not_at_all(
    store: Arc<dyn RowStore>,
) {
    let faults = FaultStore::new(store.clone());
    faults.inject_random(7, 3);
    let (mut applied, mut undone) = (0, 0);
    for rank in 0..60 {
        let outcome = insert_pair(&faults, rank).await;
        let there = of("lost").filter(crate::Filter::eq("rank", Value::Int(rank)));
        let there = read(&store, &there).await.len();
        match outcome {
            Ok(()) => assert_eq!(there, 2, "an acknowledged unit is stored"),
            Err(error) if error.is_certainly_not_applied() => assert_eq!(there, 0, "{error}"),
            Err(_) if there == 2 => applied += 1,
            Err(_) => {
                assert_eq!(there, 0);
                undone += 1;
            }
        }
    }
    assert!(applied > 0 && undone > 0, "both outcomes occur");
}
