//! Runs the migrations.

use std::sync::Arc;

use core_domain::kernel::StoreError;

use super::config::PostgresConfig;
use super::connection::Connection;
use super::error::PoolerError;
use super::pool::{Pool, Work};
use crate::sql::migration_plan::{MigrationPlan, TableSize};
use crate::sql::migrations::{self, AppliedMigration};
use crate::sql::postgres::{self, MigrationConnection, MigrationTarget, RunError};
use crate::sql::{Dialect, StatementCache};
use crate::table::Table;

/// Runs the pending migrations, and creates the `extra` tables that are missing. If the configuration forbids it, checks
/// that there are no pending migrations.
pub(super) async fn migrate(
    pool: &Arc<Pool>,
    config: &PostgresConfig,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    if !config.migrations.at_open {
        return ensure_migrated(pool).await;
    }
    let mut lease = pool.acquire().await?;
    // A failure can leave a transaction open.
    lease.work = Work::Statement;
    let connection = lease.connection()?;
    // Migrations have no time limit, and neither has the wait for the migrations of other processes.
    let limit = connection.set_answer_timeout(None);
    let target = MigrationTarget {
        schema: config.schema.as_deref(),
        sets_search_path: false,
        extra,
    };
    postgres::migrate(connection, &target, &config.migrations).await?;
    connection.set_answer_timeout(limit);
    lease.work = Work::None;
    Ok(())
}

/// Checks that the database has all migrations.
///
/// # Errors
/// [`StoreError::Backend`] if the database was created by an older or a newer version, or by another program.
pub(super) async fn ensure_migrated(pool: &Arc<Pool>) -> Result<(), StoreError> {
    let done = applied_migrations(pool).await?;
    migrations::ensure_done(&done, Dialect::Postgres).map_err(StoreError::backend)
}

/// Returns the cache of statements for the database, which has all migrations. The pool must not be pooled.
pub(super) async fn statements(pool: &Arc<Pool>) -> Result<Arc<StatementCache>, StoreError> {
    let mut lease = pool.acquire().await?;
    let has_uuids = postgres::has_uuids(lease.connection()?).await?;
    Ok(Arc::new(StatementCache::with_uuids(has_uuids)))
}

/// Returns the migrations that have run.
pub(super) async fn applied_migrations(
    pool: &Arc<Pool>,
) -> Result<Vec<AppliedMigration>, StoreError> {
    let mut lease = pool.acquire().await?;
    postgres::read_applied(lease.connection()?, false).await
}

/// Checks that the settings of the store apply to its statements.
///
/// # Errors
/// [`StoreError::Backend`] if they do not: the server is a pooler that ignores the settings of a session, and the
/// configuration has no direct address.
pub(super) async fn ensure_settings(pool: &Arc<Pool>) -> Result<(), StoreError> {
    if pool.options.is_pooled {
        return Ok(());
    }
    let settings = &pool.options.settings;
    let conditions = settings
        .iter()
        .map(|(name, value)| format!("(name = '{name}' AND setting = '{value}')"));
    let conditions: Vec<_> = conditions.collect();
    let count = format!(
        "SELECT count(*) FROM pg_settings WHERE {}",
        conditions.join(" OR ")
    );
    let mut lease = pool.acquire().await?;
    let applied = lease.connection()?.number(&count).await;
    let applied = applied.map_err(RunError::into_failure)?;
    if applied.and_then(|count| usize::try_from(count).ok()) == Some(settings.len()) {
        return Ok(());
    }
    Err(StoreError::backend(PoolerError))
}

/// The name, the estimated number of rows and the size of every table of the schema.
const TABLE_SIZES: &str = "SELECT c.relname::text, greatest(c.reltuples, 0)::bigint::text, \
     pg_total_relation_size(c.oid)::text FROM pg_class c \
     WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace ORDER BY 1";

/// Returns the plan of the migrations.
pub(super) async fn plan(pool: &Arc<Pool>) -> Result<MigrationPlan, StoreError> {
    let done = applied_migrations(pool).await?;
    let mut tables = Vec::new();
    // A schema that does not exist yet has no tables.
    if !done.is_empty() {
        let mut lease = pool.acquire().await?;
        let connection = lease.connection()?;
        let rows = MigrationConnection::rows(connection, TABLE_SIZES, &[]).await?;
        tables.extend(rows.into_iter().filter_map(table_size));
    }
    MigrationPlan::of(&done, Dialect::Postgres, tables).map_err(StoreError::backend)
}

fn table_size(row: Vec<String>) -> Option<TableSize> {
    let [table, rows, bytes] = row.try_into().ok()?;
    Some(TableSize {
        table,
        rows: rows.parse().ok()?,
        bytes: bytes.parse().ok()?,
    })
}

impl MigrationConnection for Connection {
    async fn run(&mut self, text: &str) -> Result<(), StoreError> {
        Self::run(self, text).await
    }

    async fn rows(
        &mut self,
        statement: &'static str,
        texts: &[&str],
    ) -> Result<Vec<Vec<String>>, StoreError> {
        let rows = Self::query_rows(self, statement, texts).await;
        let rows = rows.map_err(RunError::into_failure)?;
        let rows = rows.iter().map(|row| {
            let texts = (0..row.len()).map(|at| row.try_get::<_, Option<String>>(at));
            let texts = texts.map(|text| text.map(Option::unwrap_or_default));
            texts.collect::<Result<Vec<_>, _>>()
        });
        let rows: Result<_, tokio_postgres::Error> = rows.collect();
        rows.map_err(StoreError::backend)
    }
}
