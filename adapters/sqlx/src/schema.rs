//! Runs the migrations.

use core_domain::kernel::StoreError;
use core_storage::Table;
use core_storage::sql::postgres::{self, MigrationConnection, check_schema_name};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use crate::config::SqlxConfig;
use crate::error::failure;
use crate::lease::Lease;

/// Runs the pending migrations, and creates the `extra` tables that are missing.
pub(crate) async fn migrate(
    config: &SqlxConfig,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    let schema = config.schema.as_deref();
    schema.map_or(Ok(()), check_schema_name)?;
    let settings = schema.map_or_else(String::new, search_path);
    let mut lease = Lease::acquire(&config.pool).await?;
    // A failure leaves a transaction open.
    lease.in_transaction = true;
    let mut migrating = Migrating(lease.connection()?);
    postgres::migrate(&mut migrating, &settings, schema, extra).await?;
    lease.in_transaction = false;
    Ok(())
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
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut query = sqlx::query(statement).persistent(false);
        for text in texts {
            query = query.bind(*text);
        }
        let rows = query.fetch_all(&mut *self.0).await.map_err(failure)?;
        let rows = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        rows.collect::<Result<_, sqlx::Error>>().map_err(failure)
    }
}
