//! Stores on fresh databases.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_sqlx::SqlxConfig;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::testing::TestDatabase;
use core_storage::{Filter, RowStore};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

/// A timeout that only a hanging test reaches.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const KEY: [u8; 32] = [7; 32];

/// Opens a pool as a host program does.
pub(crate) fn pool(url: &str, connections: u32) -> PgPool {
    let options: PgConnectOptions = url.parse().expect("the URL is valid");
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(TIMEOUT)
        .connect_lazy_with(options.statement_cache_capacity(1_024))
}

pub(crate) async fn open(config: SqlxConfig) -> Arc<dyn RowStore> {
    let opened = core_sqlx::rows(config, TABLES).await;
    opened.expect("the store opens")
}

/// Opens a store on a pool with this number of connections.
pub(crate) async fn store(database: &TestDatabase, connections: u32) -> Arc<dyn RowStore> {
    open(SqlxConfig::new(pool(&database.url, connections), KEY)).await
}

pub(crate) async fn count(store: &Arc<dyn RowStore>) -> Result<u64, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

pub(crate) async fn add(store: &Arc<dyn RowStore>, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("sqlx", id, 0)).await?;
    tx.commit().await
}
