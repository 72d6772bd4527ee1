//! The command that plans and applies the migrations of the database.

use core_suite::migrations::{MigrationEvent, MigrationPlan, PendingMigration, Release};
use core_suite::{SuiteBuilder, SuiteError};
use tokio::runtime::Runtime;

use crate::config::{Config, Database};
use crate::run::builder;

/// Why a command did not start, or was aborted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the in-memory database has no migrations; set --database-url")]
    Memory,
    /// A SQLite file can be opened by one process only.
    #[error("the database cannot be migrated; if a server uses it, stop the server first")]
    InUse(#[source] SuiteError),
    #[error(transparent)]
    Suite(#[from] SuiteError),
    #[error(transparent)]
    Runtime(#[from] std::io::Error),
}

/// Prints the migrations that have not run, with their statements if `with_sql` is set.
#[expect(
    clippy::print_stdout,
    reason = "the plan is the output of this command"
)]
pub(crate) fn plan(config: &Config, with_sql: bool) -> Result<(), Error> {
    let runtime = runtime()?;
    let databases = stored_records(config)?.databases();
    let has_cells = databases.len() > 1;
    for (cell, database) in databases {
        let plan = runtime.block_on(database.plan_migrations())?;
        if has_cells {
            println!("cell {cell}:");
        }
        print!("{}", describe(&plan, with_sql));
    }
    Ok(())
}

/// Runs the migrations that have not run, and prints their names.
#[expect(
    clippy::print_stdout,
    reason = "the result is the output of this command"
)]
pub(crate) fn apply(config: &Config, all_servers_stopped: bool) -> Result<(), Error> {
    let runtime = runtime()?;
    let is_sqlite = matches!(config.database, Database::Sqlite(_));
    for (_, database) in stored_records(config)?.databases() {
        let applied = database.apply_migrations(all_servers_stopped, report);
        runtime.block_on(applied).map_err(|error| match error {
            SuiteError::Store(_) if is_sqlite => Error::InUse(error),
            error => Error::Suite(error),
        })?;
    }
    println!("all migrations of release {} have run", Release::current());
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "the progress is the output of this command"
)]
fn report(event: &MigrationEvent) {
    match event {
        MigrationEvent::Ran(name) => println!("{name}: done"),
        MigrationEvent::BuildsIndexes(name) => println!("{name}: building indexes; servers go on"),
        MigrationEvent::Waits(cause) => println!("waiting for the lock of a table: {cause}"),
    }
}

/// Describes the plan: one paragraph for each migration.
fn describe(plan: &MigrationPlan, with_sql: bool) -> String {
    let mut text = match plan.last_release {
        None => "the database is new\n".to_owned(),
        Some(release) => format!(
            "{} migrations have run, the last ones by release {release}\n",
            plan.applied
        ),
    };
    if plan.pending.is_empty() {
        text.push_str("nothing is pending\n");
        return text;
    }
    for migration in &plan.pending {
        text.push('\n');
        text.push_str(&describe_one(plan, migration));
        if with_sql {
            let lines = migration.text.lines();
            lines.for_each(|line| text.push_str(&format!("    {line}\n")));
        }
    }
    text.push('\n');
    match &plan.refusal {
        Some(refusal) => text.push_str(&format!("{refusal}\n")),
        None => text.push_str("run `core-server migrate --apply`, or start a server\n"),
    }
    text
}

fn describe_one(plan: &MigrationPlan, migration: &PendingMigration) -> String {
    let count = migration.statements().count();
    let mut text = format!(
        "{} (release {}): {count} statements\n",
        migration.name, migration.release
    );
    text.push_str(if migration.runs_outside {
        "  builds or drops indexes one by one, while servers read and write\n"
    } else {
        "  runs in one transaction\n"
    });
    for size in plan.changed_tables(migration) {
        let megabytes = size.bytes / 1_000_000;
        text.push_str(&format!(
            "  changes {}: about {} rows, {megabytes} MB\n",
            size.table, size.rows
        ));
    }
    let removes: Vec<&str> = migration.removes().collect();
    if let Some(requires) = migration.requires {
        let removed = removes.join(", ");
        text.push_str(&format!(
            "  removes {removed}: servers before release {requires} stop working\n"
        ));
    }
    text
}

fn stored_records(config: &Config) -> Result<SuiteBuilder, Error> {
    match config.database {
        Database::Memory => Err(Error::Memory),
        _ => Ok(builder(config)),
    }
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}
