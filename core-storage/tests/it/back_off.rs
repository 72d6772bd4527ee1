//! Tests of the pauses of `transact` between the runs of a unit that meets conflicts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::{Error, StoreError, Timestamp};
use core_domain::port::{Store, transact};
use core_domain::testing::ManualClock;
use core_storage::memory::{self, MemoryConfig};
use tokio::time::Instant;

fn store() -> Arc<dyn Store> {
    memory::open(MemoryConfig {
        clock: Arc::new(ManualClock::at(Timestamp::EPOCH)),
        cursor_key: [7; 32].into(),
    })
}

/// Runs a unit that always meets a conflict. Returns the pauses between its runs, and its error.
async fn pauses(store: &dyn Store) -> (Vec<Duration>, Error) {
    let runs = Mutex::new(Vec::new());
    let outcome = transact(store, |_, _| {
        Box::pin(async {
            runs.lock().unwrap().push(Instant::now());
            Err::<(), _>(StoreError::retry("always").into())
        })
    });
    let error = outcome.await.expect_err("no run succeeds");
    let runs = runs.into_inner().unwrap();
    let pauses = runs.windows(2).map(|pair| pair[1] - pair[0]);
    (pauses.collect(), error)
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_always_meets_a_conflict_ends_with_retry_after_growing_pauses() {
    let (pauses, error) = pauses(store().as_ref()).await;
    assert!(
        matches!(error, Error::Store(StoreError::Retry(_))),
        "{error:?}"
    );
    assert_eq!(pauses.len(), 19, "20 runs");
    let (growing, capped) = pauses.split_at(9);
    assert!(growing.is_sorted(), "{growing:?}");
    assert!(growing[0] <= Duration::from_millis(1), "{growing:?}");
    for pause in capped {
        let bounds = Duration::from_millis(250)..=Duration::from_millis(500);
        assert!(bounds.contains(pause) && *pause > growing[7], "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_with_long_runs_is_retried_for_ten_seconds() {
    let since = Instant::now();
    let store = store();
    let runs = Mutex::new(0);
    let outcome = transact(store.as_ref(), |_, _| {
        Box::pin(async {
            *runs.lock().unwrap() += 1;
            // The time that a statement waits for a lock.
            tokio::time::sleep(Duration::from_secs(4)).await;
            Err::<(), _>(StoreError::retry("always").into())
        })
    });
    let error = outcome.await.expect_err("no run succeeds");
    assert!(
        matches!(error, Error::Store(StoreError::Retry(_))),
        "{error:?}"
    );
    assert_eq!(runs.into_inner().unwrap(), 3);
    assert!(since.elapsed() < Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn pauses_are_jittered_between_repetitions_and_between_stores() {
    let ((one, _), (other, _)) = (
        pauses(store().as_ref()).await,
        pauses(store().as_ref()).await,
    );
    let capped = &one[9..];
    assert!(capped.iter().any(|pause| *pause != capped[0]), "{capped:?}");
    assert_ne!(one, other);
}
