//! The engine passes the conformance suite for storage engines.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::path::Path;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::testing::ManualClock;
use core_storage::{RecordStore, RowStore, conformance};

fn open(folder: &Path) -> Arc<dyn RowStore> {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
    core_own_backend::open(&folder.join("core.redb"), clock).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_passes_the_conformance_suite() {
    let folder = tempfile::tempdir().unwrap();
    let rows = open(folder.path());
    conformance::run(rows.clone()).await;
    conformance::records(Arc::new(RecordStore::new(rows, [7; 32]))).await;
}

#[tokio::test]
async fn the_engine_is_durable_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    conformance::restart(async || open(folder.path())).await;
}
