//! Cases for concurrent units of work.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::fixture::{ITEMS, add, ids, item, of, read, rows_of, try_read, with, write, write_in};
use crate::filter::Filter;
use crate::row_store::{Replacement, RowStore};
use crate::table::VERSION;
use crate::value::{ReadRow, Value};

const TASKS: usize = 8;

async fn all<T: 'static>(mut tasks: JoinSet<Result<T, StoreError>>) -> Vec<T> {
    let mut done = Vec::new();
    while let Some(task) = tasks.join_next().await {
        match task {
            Ok(Ok(value)) => done.push(value),
            Ok(Err(error)) => panic!("a task failed: {error}"),
            Err(error) => panic!("a task panicked: {error}"),
        }
    }
    done
}

pub(super) async fn a_guarded_update_has_one_winner(store: Arc<dyn RowStore>) {
    add(&store, vec![item("guard", "1", 0)]).await;
    let barrier = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (store, barrier) = (store.clone(), barrier.clone());
        tasks.spawn(async move {
            let seen = try_read(&store, &of("guard")).await;
            // All tasks have read before any of them writes.
            barrier.wait().await;
            let seen = seen?;
            let version = seen.first().map(|row| ITEMS.value(row, VERSION).clone());
            let version = version.unwrap_or(Value::Null);
            write(&store, |tx| {
                let guard = Filter::eq("id", "guard-1")
                    .and(Filter::eq("state", "idle"))
                    .and(Filter::eq(VERSION, version.clone()));
                let state = Value::text(&format!("taken by {task}"));
                Box::pin(async move {
                    let set = [("state", state), (VERSION, Value::Int(2))];
                    tx.update(&ITEMS, &guard, &set).await
                })
            })
            .await
        });
    }
    let winners: u64 = all(tasks).await.into_iter().sum();
    assert_eq!(winners, 1);
}

/// Units of both modes exclude each other by the lock of one row.
pub(super) async fn a_quota_holds_under_the_lock_of_a_row(store: Arc<dyn RowStore>) {
    const QUOTA: u64 = 3;
    add(&store, vec![item("holder", "1", 0)]).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        let mode = match task % 2 {
            0 => Mode::ReadCommitted,
            _ => Mode::Write,
        };
        tasks.spawn(async move {
            write_in(mode, &store, |tx| {
                Box::pin(async move {
                    let mut locked = 0;
                    let mut visit = |_: &dyn ReadRow| {
                        locked += 1;
                        Ok(())
                    };
                    tx.lock(&ITEMS, &Value::text("holder-1"), &mut visit)
                        .await?;
                    assert_eq!(locked, 1);
                    let of_quota = Filter::eq("platform_id", "locked");
                    let used = tx.count(&ITEMS, &of_quota).await?;
                    if used >= QUOTA {
                        return Ok(0);
                    }
                    tokio::task::yield_now().await;
                    let id = task.to_string();
                    tx.insert(&ITEMS, item("locked", &id, 0)).await?;
                    Ok(1)
                })
            })
            .await
        });
    }
    let added: u64 = all(tasks).await.into_iter().sum();
    assert_eq!(added, QUOTA);
    let holder = read(&store, &of("holder")).await;
    assert_eq!(holder, [item("holder", "1", 0)]);
}

pub(super) async fn a_quota_holds_under_write_skew(store: Arc<dyn RowStore>) {
    const QUOTA: u64 = 3;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            write(&store, |tx| {
                Box::pin(async move {
                    let used = tx
                        .count(&ITEMS, &Filter::eq("platform_id", "quota"))
                        .await?;
                    if used >= QUOTA {
                        return Ok(0);
                    }
                    tokio::task::yield_now().await;
                    let id = task.to_string();
                    tx.insert(&ITEMS, item("quota", &id, 0)).await?;
                    Ok(1)
                })
            })
            .await
        });
    }
    let added: u64 = all(tasks).await.into_iter().sum();
    assert_eq!(added, QUOTA);
    assert_eq!(read(&store, &of("quota")).await.len() as u64, QUOTA);
}

pub(super) async fn workers_claim_each_row_once(store: Arc<dyn RowStore>) {
    const JOBS: i64 = 24;
    let jobs = (0..JOBS).map(|n| item("claim", &format!("{n:02}"), n));
    add(&store, jobs.collect()).await;
    let mut tasks = JoinSet::new();
    for worker in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut claimed = Vec::new();
            loop {
                let got = write(&store, |tx| {
                    Box::pin(async move {
                        let waiting = of("claim").filter(Filter::eq("state", "idle"));
                        let mut rows = Vec::new();
                        let mut visit = |row: &dyn ReadRow| {
                            rows.push(ITEMS.copy_row(row)?);
                            Ok(())
                        };
                        let waiting = waiting.order_by("rank").limit(1);
                        tx.claim(&waiting, &mut visit).await?;
                        for id in ids(&rows) {
                            let guard = Filter::eq("id", &id).and(Filter::eq("state", "idle"));
                            let state = Value::text(&format!("worker {worker}"));
                            tx.update(&ITEMS, &guard, &[("state", state)]).await?;
                        }
                        Ok(ids(&rows))
                    })
                })
                .await?;
                if !got.is_empty() {
                    claimed.extend(got);
                    continue;
                }
                let idle = of("claim").filter(Filter::eq("state", "idle"));
                // A worker may skip a row only because another worker has locked it.
                if try_read(&store, &idle).await?.is_empty() {
                    return Ok(claimed);
                }
            }
        });
    }
    let mut claimed: Vec<String> = all(tasks).await.into_iter().flatten().collect();
    claimed.sort();
    assert_eq!(claimed, ids(&read(&store, &of("claim")).await));
}

pub(super) async fn concurrent_inserts_of_one_value_have_one_winner(store: Arc<dyn RowStore>) {
    let barrier = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (store, barrier) = (store.clone(), barrier.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            let inserted = write(&store, |tx| {
                let row = item("same", &task.to_string(), 0);
                let row = with(row, "name", Value::text("wanted"));
                Box::pin(async move { tx.insert(&ITEMS, row).await })
            });
            match inserted.await {
                Ok(()) => Ok(1),
                Err(StoreError::Conflict { index: "name", .. }) => Ok(0),
                Err(error) => Err(error),
            }
        });
    }
    let winners: usize = all(tasks).await.into_iter().sum();
    assert_eq!(winners, 1);
    assert_eq!(read(&store, &of("same")).await.len(), 1);
}

pub(super) async fn colliding_bulk_updates_lose_none(store: Arc<dyn RowStore>) {
    let rows = (0..20).map(|n| item("bulk", &format!("{n:02}"), 0));
    add(&store, rows.collect()).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            write(&store, |tx| {
                Box::pin(async move {
                    let mut rows = rows_of(tx, &of("bulk")).await?;
                    if task % 2 == 1 {
                        // Every second task uses the reverse order.
                        rows.reverse();
                    }
                    let changes = rows.into_iter().map(|old| {
                        let number = |column| ITEMS.value(&old, column).as_int().unwrap_or(0);
                        let new = with(old.clone(), "rank", Value::Int(number("rank") + 1));
                        let new = with(new, VERSION, Value::Int(number(VERSION) + 1));
                        Replacement { old, new }
                    });
                    tx.replace_many(&ITEMS, changes.collect()).await
                })
            })
            .await
        });
    }
    all(tasks).await;
    let rows = read(&store, &of("bulk")).await;
    let expected = Value::Int(i64::try_from(TASKS).unwrap_or(0));
    assert!(rows.iter().all(|row| *ITEMS.value(row, "rank") == expected));
}
