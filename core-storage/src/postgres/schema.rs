//! Runs the migrations.

use std::sync::Arc;

use core_domain::kernel::StoreError;

use super::connection::Connection;
use super::pool::{Pool, Work};
use crate::sql::postgres::{self, MigrationConnection, RunError};
use crate::sql::{Dialect, migrations};
use crate::table::Table;

/// Runs the pending migrations, and creates the `extra` tables that are missing.
pub(super) async fn migrate(
    pool: &Arc<Pool>,
    schema: Option<&str>,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    let mut lease = pool.acquire().await?;
    // A failure leaves a transaction open.
    lease.work = Work::Statement;
    let connection = lease.connection()?;
    // Migrations have no time limit, and neither has the wait for the migrations of other processes.
    let limit = connection.set_answer_timeout(None);
    postgres::migrate(connection, "", schema, extra).await?;
    connection.set_answer_timeout(limit);
    lease.work = Work::None;
    Ok(())
}

/// Checks that the database has all migrations.
///
/// # Errors
/// [`StoreError::Backend`] if the database was created by an older or a newer version, or by another program.
pub(super) async fn ensure_migrated(pool: &Arc<Pool>) -> Result<(), StoreError> {
    let mut lease = pool.acquire().await?;
    let connection = lease.connection()?;
    let done = MigrationConnection::rows(connection, migrations::MIGRATIONS_DONE, &[]).await?;
    migrations::ensure_done(&done, Dialect::Postgres)
}

impl MigrationConnection for Connection {
    async fn run(&mut self, text: &str) -> Result<(), StoreError> {
        Self::run(self, text).await
    }

    async fn rows(
        &mut self,
        statement: &'static str,
        texts: &[&str],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let rows = Self::query_rows(self, statement, texts).await;
        let rows = rows.map_err(RunError::into_failure)?;
        let rows = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let rows: Result<_, tokio_postgres::Error> = rows.collect();
        rows.map_err(StoreError::backend)
    }
}
