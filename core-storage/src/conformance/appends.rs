//! Cases for rows that an engine may queue.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::{Direction, Mode};

use super::fixture::{ITEMS, add, ids, item, keys, of, read, rows_of, with, write};
use crate::filter::Filter;
use crate::row_store::{RowStore, RowTx};
use crate::value::{ReadRow, Row, Value};

/// Appends rows in several calls.
async fn append(tx: &mut dyn RowTx, owner: &str, ids: &[&[&str]]) -> Result<(), StoreError> {
    for ids in ids {
        let rows = ids.iter().map(|id| item(owner, id, 1)).collect();
        tx.append(&ITEMS, rows).await?;
    }
    Ok(())
}

/// A call on a table with two rows that were just appended. Returns the number of rows that it finds.
type Look = for<'t> fn(&'t mut dyn RowTx, &'t str) -> super::fixture::Work<'t, u64>;

const LOOKS: [(&str, Look); 7] = [
    ("select", |tx, owner| {
        Box::pin(async move { Ok(rows_of(tx, &of(owner)).await?.len() as u64) })
    }),
    ("claim", |tx, owner| {
        Box::pin(async move {
            let mut seen = 0;
            let mut visit = |_: &dyn ReadRow| {
                seen += 1;
                Ok(())
            };
            tx.claim(&of(owner).limit(9), &mut visit).await?;
            Ok(seen)
        })
    }),
    ("count", |tx, owner| {
        Box::pin(async move { tx.count(&ITEMS, &Filter::eq("platform_id", owner)).await })
    }),
    ("sum", |tx, owner| {
        Box::pin(async move {
            let of_owner = Filter::eq("platform_id", owner);
            let sums = tx.sum(&ITEMS, "rank", &["platform_id"], &of_owner).await?;
            Ok(sums.iter().map(|group| group.sum.unsigned_abs()).sum())
        })
    }),
    ("update", |tx, owner| {
        Box::pin(async move {
            let set = [("rank", Value::Int(2))];
            tx.update(&ITEMS, &Filter::eq("platform_id", owner), &set)
                .await
        })
    }),
    ("delete", |tx, owner| {
        Box::pin(async move { tx.delete(&ITEMS, &Filter::eq("platform_id", owner)).await })
    }),
    ("walk", |tx, owner| {
        Box::pin(async move {
            let mut seen = 1;
            let mut visit = |_: &dyn ReadRow| {
                seen += 1;
                Ok(())
            };
            let (root, all) = (format!("{owner}-1"), Filter::all());
            let child = with(item(owner, "child", 1), "parent", Value::text(&root));
            tx.append(&ITEMS, vec![child]).await?;
            let down = Direction::Descendants;
            tx.walk(&ITEMS, &root, down, 3, &all, &mut visit).await?;
            Ok(seen)
        })
    }),
];

pub(super) async fn later_calls_of_the_unit_see_appended_rows(store: Arc<dyn RowStore>) {
    for (name, look) in LOOKS {
        let owner = format!("appended-{name}");
        let seen = write(&store, |tx| {
            let owner = owner.clone();
            Box::pin(async move {
                append(tx, &owner, &[&["1"], &["2"]]).await?;
                look(tx, &owner).await
            })
        });
        assert_eq!(seen.await.ok(), Some(2), "{name}");
    }
}

pub(super) async fn appended_rows_are_committed_with_their_unit(store: Arc<dyn RowStore>) {
    let committed = write(&store, |tx| {
        Box::pin(append(tx, "appended", &[&["1"], &["2", "3"]]))
    });
    assert!(committed.await.is_ok());
    let Ok(mut dropped) = store.begin(Mode::Write).await else {
        panic!("a unit can be opened");
    };
    assert!(
        append(dropped.as_mut(), "appended", &[&["4"]])
            .await
            .is_ok()
    );
    dropped.rollback().await;
    let found = read(&store, &of("appended")).await;
    assert_eq!(ids(&found), keys("appended", &["1", "2", "3"]));
}

pub(super) async fn an_appended_row_with_a_conflict_aborts_its_unit(store: Arc<dyn RowStore>) {
    let there: Row = item("met", "1", 0);
    add(&store, vec![there.clone()]).await;
    let Ok(mut tx) = store.begin(Mode::Write).await else {
        panic!("a unit can be opened");
    };
    let other = tx.insert(&ITEMS, item("met", "2", 0)).await;
    assert!(other.is_ok());
    let outcome = match append(tx.as_mut(), "met", &[&["1"]]).await {
        Ok(()) => tx.commit().await,
        Err(error) => {
            tx.rollback().await;
            Err(error)
        }
    };
    assert!(matches!(outcome, Err(StoreError::Retry(_))), "{outcome:?}");
    assert_eq!(read(&store, &of("met")).await, [there]);
}

pub(super) async fn rows_with_taken_keys_are_skipped_and_the_others_named(
    store: Arc<dyn RowStore>,
) {
    let taken: Row = item("skips", "2", 7);
    add(&store, vec![taken.clone()]).await;
    let inserted = write(&store, |tx| {
        Box::pin(async move {
            let rows = ["1", "2", "3"].map(|id| item("skips", id, 1));
            tx.insert_new(&ITEMS, rows.into()).await
        })
    });
    let mut inserted: Vec<_> = inserted.await.unwrap_or_default();
    inserted.sort();
    let expected = ["skips-1", "skips-3"].map(Value::text);
    assert_eq!(inserted, expected);
    let found = read(&store, &of("skips")).await;
    assert_eq!(ids(&found), keys("skips", &["1", "2", "3"]));
    assert!(found.contains(&taken));
}
