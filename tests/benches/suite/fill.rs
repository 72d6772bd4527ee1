//! Inserts many platforms directly into the store.

use std::ops::Range;
use std::sync::Arc;

use core_domain::kernel::{Name, PlatformId, Result, Slug, Timestamp};
use core_domain::port::{Persisted, Store, UnitOfWork, transact};
use core_domain::registry::{CreatePlatform, Platform, PlatformOwner, Tier};
use core_domain::testing::RecordKey;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::backend::{Backend, Location};
use crate::harness::cpu::Cores;
use crate::harness::process::Process;

/// The number of rows in one unit of work.
const UNIT: u32 = 500;

/// The number of concurrent units, if the store supports several.
const WRITERS: u32 = 4;

/// The platforms to insert, and the store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    pub(crate) location: Location,
    pub(crate) rows: Range<u32>,
}

impl Fill {
    /// Inserts the platforms in a child process, so that no other process has the store open. An in-memory store is
    /// filled by the server itself.
    pub(crate) fn in_child(&self) {
        if self.location.backend == Backend::Memory {
            return;
        }
        Process::in_role("fill", &json!(self), Cores::All).end();
    }
}

/// The role of that process.
pub(crate) async fn run(fill: Fill) {
    let store = fill.location.store().await;
    platforms(&store, fill.location.backend, fill.rows).await;
}

/// Returns the id of the platform with this number.
pub(crate) fn id(number: u32) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

/// Inserts the platforms with these numbers.
pub(crate) async fn platforms(store: &Arc<dyn Store>, backend: Backend, rows: Range<u32>) {
    let writers = if backend.is_postgres() { WRITERS } else { 1 };
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let (store, mut first, end) = (Arc::clone(store), rows.start + writer * UNIT, rows.end);
        tasks.spawn(async move {
            while first < end {
                unit(store.as_ref(), first..end.min(first + UNIT)).await;
                first += writers * UNIT;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

async fn unit(store: &dyn Store, rows: Range<u32>) {
    let inserted = transact(store, |uow, _| {
        let rows = rows.clone();
        Box::pin(async move { insert(uow, rows).await })
    });
    inserted.await.unwrap();
}

/// Inserts the platforms with these numbers in a unit of work.
pub(crate) async fn insert(uow: &mut dyn UnitOfWork, rows: Range<u32>) -> Result<()> {
    let records = Platform::repository(uow.repositories(RecordKey::for_tests()));
    records.insert_many(rows.map(platform).collect()).await?;
    Ok(())
}

fn platform(number: u32) -> Platform {
    let command = CreatePlatform {
        name: Name::parse("Engines of the world").unwrap(),
        slug: Slug::parse(&format!("engines-{number}")).unwrap(),
        tier: Tier::Starter,
        cf_account_id: None,
        repo_name: None,
    };
    let created_at = Timestamp::from_seconds(1_700_000_000 + i64::from(number));
    let id = PlatformId::parse(&id(number)).unwrap();
    Platform::create(id, PlatformOwner::default(), command, created_at)
}
