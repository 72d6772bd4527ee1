//! The migrations that would run on a database, for an operator who decides when they run.

use std::collections::BTreeSet;

use super::dialect::Dialect;
use super::migrations::{
    AppliedMigration, MigrationError, PendingMigration, Release, ensure_no_release_is_skipped,
    last_release, pending,
};

/// The migrations that have run on a database and those that have not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationPlan {
    /// The last release that has migrated the database; `None` if it is new.
    pub last_release: Option<Release>,
    /// The number of migrations that have run.
    pub applied: usize,
    /// The migrations that have not run, in order.
    pub pending: Vec<PendingMigration>,
    /// Why the migrations do not run while servers of the last release may run; `None` if they do.
    pub refusal: Option<MigrationError>,
    /// The tables of the database. Empty on SQLite.
    pub tables: Vec<TableSize>,
}

/// The size of a table, as the database estimates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// The name of the table.
    pub table: String,
    /// The number of rows.
    pub rows: u64,
    /// The size on disk with all indexes, in bytes.
    pub bytes: u64,
}

impl MigrationPlan {
    /// Creates the plan for a database on which `done` have run.
    ///
    /// # Errors
    /// [`MigrationError`] if this program cannot use the database.
    pub fn of(
        done: &[AppliedMigration],
        dialect: Dialect,
        tables: Vec<TableSize>,
    ) -> Result<Self, MigrationError> {
        let pending = pending(done, dialect)?;
        Ok(Self {
            last_release: last_release(done),
            applied: done.len(),
            refusal: ensure_no_release_is_skipped(done, &pending).err(),
            pending,
            tables,
        })
    }

    /// Returns the sizes of the existing tables that a migration changes.
    pub fn changed_tables<'p>(
        &'p self,
        migration: &PendingMigration,
    ) -> impl Iterator<Item = &'p TableSize> + use<'p> {
        let runs = !migration.is_for_new_databases;
        let statements = migration.statements().filter(|_| runs);
        let names: BTreeSet<String> = statements.filter_map(|s| table(&s)).collect();
        let sizes = self.tables.iter();
        sizes.filter(move |size| names.contains(&size.table))
    }
}

/// Returns the name of the table that a statement changes: the first quoted name after `TABLE` or `ON`.
fn table(statement: &str) -> Option<String> {
    let after = ["TABLE ", " ON ", "UPDATE "]
        .iter()
        .filter_map(|word| statement.split_once(word))
        .map(|(_, rest)| rest)
        .max_by_key(|rest| rest.len())?;
    after.split('"').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_each_kind_of_statement_is_found() {
        for statement in [
            "ALTER TABLE \"a\" ADD COLUMN \"on\" TEXT",
            "CREATE TABLE IF NOT EXISTS \"a\" (\"b\" TEXT)",
            "CREATE UNIQUE INDEX CONCURRENTLY \"a_b\" ON \"a\" (\"b\")",
            "CREATE TRIGGER \"t\" BEFORE DELETE ON \"a\" FOR EACH STATEMENT EXECUTE FUNCTION \"f\"()",
            "UPDATE \"a\" SET \"b\" = 1",
        ] {
            assert_eq!(table(statement).as_deref(), Some("a"), "{statement}");
        }
        assert_eq!(table("DROP INDEX \"a_b\""), None);
    }

    #[test]
    fn a_plan_has_the_sizes_of_the_tables_that_exist_and_are_changed() {
        let size = |table: &str| TableSize {
            table: table.to_owned(),
            rows: 1,
            bytes: 2,
        };
        let tables = vec![size("lifecycle_records"), size("users")];
        let plan = MigrationPlan::of(&[], Dialect::Postgres, tables).unwrap();
        assert_eq!((plan.applied, plan.last_release), (0, None));
        assert_eq!(plan.refusal, None);
        let history = plan.pending.iter().find(|one| one.name == "0004_history");
        let changed: Vec<_> = plan.changed_tables(history.unwrap()).collect();
        assert_eq!(changed, [&plan.tables[0]]);
    }
}
