//! Runs the migrations.

use core_domain::kernel::StoreError;

use crate::sql::{Dialect, ddl, migrations};
use crate::table::Table;

/// Processes that start at the same time wait without a limit.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
/// Held until the transaction ends. The number is arbitrary and unlikely to be used by anything else on the database.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305401991423)";

/// A connection that runs migrations.
pub trait MigrationConnection: Send {
    /// Runs one or more statements without parameters.
    ///
    /// # Errors
    /// Only those of the database.
    fn run(&mut self, text: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a statement with text parameters. Returns its rows, whose columns are two texts.
    ///
    /// # Errors
    /// Only those of the database.
    fn rows(
        &mut self,
        statement: &'static str,
        texts: &[&str],
    ) -> impl Future<Output = Result<Vec<(String, String)>, StoreError>> + Send;
}

/// Creates the schema if it is missing, runs the pending migrations, and creates the `extra` tables that are missing.
/// All of it is one transaction, which excludes other processes. `settings` are statements that the transaction starts
/// with. After an error the transaction is open.
///
/// # Errors
/// [`StoreError::Backend`] if a newer version created the database.
pub async fn migrate<C: MigrationConnection>(
    connection: &mut C,
    settings: &str,
    schema: Option<&str>,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    connection.run(BEGIN).await?;
    if !settings.is_empty() {
        connection.run(settings).await?;
    }
    connection.run(LOCK).await?;
    if let Some(schema) = schema {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", ddl::quote_ident(schema));
        connection.run(&create).await?;
    }
    connection.run(migrations::MIGRATIONS_TABLE).await?;
    let done = connection.rows(migrations::MIGRATIONS_DONE, &[]).await?;
    for migration in migrations::pending(&done, Dialect::Postgres)? {
        connection.run(migration.text).await?;
        let note = [migration.name, &migration.checksum];
        connection.rows(migrations::RECORD_MIGRATION, &note).await?;
    }
    for table in extra {
        connection
            .run(&ddl::create(table, Dialect::Postgres, true))
            .await?;
    }
    connection.run("COMMIT").await
}
