//! Runs the migrations.

use core_domain::kernel::StoreError;
use core_storage::Table;
use core_storage::sql::migration_plan::MigrationPlan;
use core_storage::sql::migrations::{self, AppliedMigration};
use core_storage::sql::postgres::{self, MigrationConnection, MigrationTarget, check_schema_name};
use core_storage::sql::{Dialect, StatementCache};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use crate::config::SqlxConfig;
use crate::error::failure;
use crate::lease::Lease;

/// Runs the pending migrations, and creates the `extra` tables that are missing. If the configuration forbids it, checks
/// that there are no pending migrations. Returns the cache of statements for the database.
pub(crate) async fn migrate(
    config: &SqlxConfig,
    extra: &[&'static Table],
) -> Result<StatementCache, StoreError> {
    let schema = config.schema.as_deref();
    schema.map_or(Ok(()), check_schema_name)?;
    let mut lease = Lease::acquire(&config.pool).await?;
    // A failure leaves a transaction open.
    lease.in_transaction = true;
    let mut migrating = Migrating(lease.connection()?);
    if config.migrations.at_open {
        let target = MigrationTarget {
            schema,
            sets_search_path: schema.is_some(),
            extra,
        };
        postgres::migrate(&mut migrating, &target, &config.migrations).await?;
    } else {
        let done = read_applied(&mut migrating, schema).await?;
        migrations::ensure_done(&done, Dialect::Postgres).map_err(StoreError::backend)?;
    }
    begin(&mut migrating, schema).await?;
    let has_uuids = postgres::has_uuids(&mut migrating).await?;
    migrating.run("COMMIT").await?;
    lease.in_transaction = false;
    Ok(StatementCache::with_uuids(has_uuids))
}

/// Begins a transaction in the schema.
async fn begin(connection: &mut Migrating<'_>, schema: Option<&str>) -> Result<(), StoreError> {
    let set = schema.map_or_else(String::new, search_path);
    connection.run(&format!("BEGIN; {set}")).await
}

async fn read_applied(
    connection: &mut Migrating<'_>,
    schema: Option<&str>,
) -> Result<Vec<AppliedMigration>, StoreError> {
    begin(connection, schema).await?;
    let done = postgres::read_applied(connection, false).await?;
    connection.run("COMMIT").await?;
    Ok(done)
}

/// Returns the migrations that have not run. Sizes of tables are not read.
pub(crate) async fn plan(config: &SqlxConfig) -> Result<MigrationPlan, StoreError> {
    let schema = config.schema.as_deref();
    schema.map_or(Ok(()), check_schema_name)?;
    let mut lease = Lease::acquire(&config.pool).await?;
    // A failure leaves a transaction open.
    lease.in_transaction = true;
    let done = read_applied(&mut Migrating(lease.connection()?), schema).await?;
    lease.in_transaction = false;
    MigrationPlan::of(&done, Dialect::Postgres, Vec::new()).map_err(StoreError::backend)
}

/// Returns the statement that makes the schema the only one of the transaction.
pub(crate) fn search_path(schema: &str) -> String {
    format!("SET LOCAL search_path = {schema}")
}

struct Migrating<'c>(&'c mut PgConnection);

impl MigrationConnection for Migrating<'_> {
    async fn run(&mut self, text: &str) -> Result<(), StoreError> {
        let run = sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *self.0);
        run.await.map(drop).map_err(failure)
    }

    async fn rows(
        &mut self,
        statement: &'static str,
        texts: &[&str],
    ) -> Result<Vec<Vec<String>>, StoreError> {
        let mut query = sqlx::query(statement).persistent(false);
        for text in texts {
            query = query.bind(*text);
        }
        let rows = query.fetch_all(&mut *self.0).await.map_err(failure)?;
        let rows = rows.iter().map(|row| {
            let texts = (0..row.len()).map(|at| row.try_get::<Option<String>, _>(at));
            let texts = texts.map(|text| text.map(Option::unwrap_or_default));
            texts.collect::<Result<Vec<_>, _>>()
        });
        rows.collect::<Result<_, sqlx::Error>>().map_err(failure)
    }
}
