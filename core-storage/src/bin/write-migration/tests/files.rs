//! Tests of the files: their names, numbers and dialects.

use std::fs;
use std::path::Path;

use core_storage::Type::Text;
use core_storage::sql::ddl::{Dialect, create};
use core_storage::tables;
use tempfile::TempDir;

use super::support::{decisions, optional_column, plan_between, required_column, things};
use crate::error::WriteError;
use crate::files::{DIALECTS, migration_names};
use crate::write::{migrate, plan, write};

fn folder_with(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for dialect in DIALECTS {
        fs::create_dir(folder.path().join(dialect)).unwrap();
    }
    for file in files {
        fs::write(folder.path().join(file), "").unwrap();
    }
    folder
}

#[track_caller]
fn assert_refused(files: &[&str], expected: &str) {
    let refused = migration_names(folder_with(files).path());
    let problem = refused.expect_err("the files are not in order");
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn a_migration_that_one_dialect_lacks_is_refused() {
    let missing = "postgres/0001_a.sql is missing";
    assert_refused(&["sqlite/0001_a.sql"], missing);
    let missing = "sqlite/0002_b.sql is missing";
    let files = [
        "sqlite/0001_a.sql",
        "postgres/0001_a.sql",
        "postgres/0002_b.sql",
    ];
    assert_refused(&files, missing);
}

#[test]
fn two_migrations_with_one_number_are_refused() {
    let files = [
        "sqlite/0001_a.sql",
        "postgres/0001_a.sql",
        "sqlite/0001_b.sql",
        "postgres/0001_b.sql",
    ];
    assert_refused(&files, "0001_a and 0001_b have the same number");
}

#[test]
fn a_file_with_an_invalid_name_is_refused() {
    for name in [
        "1_a.sql",
        "0001_A.sql",
        "0001.sql",
        "0001_.sql",
        "0001_a.txt",
        "00x1_a.sql",
    ] {
        assert_refused(&[&format!("sqlite/{name}")], "NNNN_name.sql");
    }
    let missing = migration_names(Path::new("no/such/folder"));
    assert!(missing.is_err());
}

#[test]
fn all_migrations_lead_to_the_described_tables() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let database = migrate(Path::new(folder)).unwrap();
    let planned = plan(&database, &tables::all(), decisions(&[]));
    assert!(planned.unwrap().is_none());
}

#[test]
fn a_written_migration_has_the_next_number_and_runs_with_the_others() {
    let folder = folder_with(&["sqlite/0009_a.sql", "postgres/0009_a.sql"]);
    let table = things(&[required_column("name", Text)], &[], &[&["name"]]);
    let planned = plan_between(&[], &[table], &[]).unwrap().unwrap();
    let files = write(folder.path(), "add_things", &planned).unwrap();
    for (file, dialect) in files.iter().zip(Dialect::ALL) {
        assert!(file.ends_with("0010_add_things.sql"), "{file:?}");
        let text = fs::read_to_string(file).unwrap();
        let release = format!("-- release {}\n\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(text, release + &create(table, dialect, false));
    }
    assert_eq!(
        migration_names(folder.path()).unwrap(),
        ["0009_a", "0010_add_things"]
    );
    let database = migrate(folder.path()).unwrap();
    let again = plan(&database, &[table], decisions(&[]));
    assert!(again.unwrap().is_none());
}

#[test]
fn indexes_of_existing_tables_are_a_migration_of_their_own_that_does_not_block_writes_on_postgres()
{
    let folder = folder_with(&["sqlite/0001_a.sql", "postgres/0001_a.sql"]);
    let name = required_column("name", Text);
    let before = things(&[name], &[], &[&["name"]]);
    let after = things(&[name, optional_column("note", Text)], &[], &[&["note"]]);
    let planned = plan_between(&[before], &[after], &[]).unwrap().unwrap();
    let files = write(folder.path(), "add_note", &planned).unwrap();
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let [sqlite, postgres, sqlite_indexes, postgres_indexes] =
        texts.collect::<Vec<_>>().try_into().unwrap();
    assert!(files[3].ends_with("postgres/0003_add_note_indexes.sql"));
    assert!(sqlite.contains("CREATE INDEX") && !sqlite_indexes.contains("INDEX"));
    assert!(postgres.contains("ADD COLUMN") && !postgres.contains("INDEX"));
    let declared = postgres_indexes.lines().nth(1).unwrap();
    assert_eq!(declared, "-- outside a transaction");
    let statements = postgres_indexes.lines().skip(3);
    assert_eq!(
        statements.collect::<Vec<_>>(),
        [
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS \"things_by_note\" ON \"things\" (\"note\", \"id\");",
            "DROP INDEX CONCURRENTLY IF EXISTS \"things_by_name\";",
        ]
    );
}

#[test]
fn nothing_is_written_if_the_existing_files_are_invalid() {
    let folder = folder_with(&["sqlite/0001_a.sql"]);
    let table = things(&[], &[], &[]);
    let planned = plan_between(&[], &[table], &[]).unwrap().unwrap();
    let written = write(folder.path(), "x", &planned);
    assert!(matches!(written, Err(WriteError::Files(_))));
    for (dialect, files) in DIALECTS.into_iter().zip([1, 0]) {
        let found = fs::read_dir(folder.path().join(dialect)).unwrap();
        assert_eq!(found.count(), files, "{dialect}");
    }
}

#[test]
fn the_error_names_a_migration_that_does_not_run() {
    let folder = folder_with(&["postgres/0001_broken.sql"]);
    let file = folder.path().join("sqlite/0001_broken.sql");
    fs::write(file, "CREATE TABEL x").unwrap();
    let failed = migrate(folder.path());
    assert!(matches!(failed, Err(WriteError::Sql { what, .. }) if what == "0001_broken"));
}
