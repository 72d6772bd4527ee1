//! Tests of the command that writes migrations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use core_storage::sql::ddl::{Dialect, create};
use core_storage::tables;
use tempfile::TempDir;

/// Runs the command on a folder outside of the sources.
fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_write-migration"));
    command.arg("--folder").arg(folder).args(arguments);
    command.output().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let dialects = ["sqlite", "postgres"].map(|dialect| folder.join(dialect));
    let entries = dialects
        .iter()
        .flat_map(|dialect| fs::read_dir(dialect).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Creates an empty folder for each dialect.
fn empty_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for dialect in ["sqlite", "postgres"] {
        fs::create_dir(folder.path().join(dialect)).unwrap();
    }
    folder
}

#[test]
fn nothing_is_written_while_migrations_and_tables_agree() {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"));
    let folder = empty_folder();
    for file in files(sources) {
        let copy = folder.path().join(file.strip_prefix(sources).unwrap());
        fs::copy(file, copy).unwrap();
    }
    let before = files(folder.path());
    let output = run(&["nothing_to_do"], folder.path());
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("nothing is written"),
        "{output:?}"
    );
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_difference_is_written_once_for_every_dialect() {
    let folder = empty_folder();
    let folder = folder.path();
    let output = run(&["everything"], folder);
    assert!(output.status.success(), "{output:?}");
    for (dialect, name) in [(Dialect::Sqlite, "sqlite"), (Dialect::Postgres, "postgres")] {
        let path = folder.join(name).join("0001_everything.sql");
        let written = fs::read_to_string(&path).unwrap();
        for table in tables::all() {
            assert!(
                written.contains(&create(table, dialect, false)),
                "{}",
                table.name
            );
        }
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(&path.display().to_string()), "{stdout}");
    }
    let output = run(&["everything_again"], folder);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(folder).len(), 2);
}

#[test]
fn an_invalid_command_line_prints_the_usage() {
    let lines: [&[&str]; 6] = [
        &[],
        &["Add-Things"],
        &["../../outside"],
        &["a", "b"],
        &["a", "--dry-run"],
        &["a", "--default"],
    ];
    for line in lines {
        let output = run(line, empty_folder().path());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(stderr.contains("usage: write-migration"), "{stderr}");
    }
}

#[test]
fn an_unused_default_is_refused() {
    let folder = empty_folder();
    let output = run(&["a", "--default", "jobs.fence=1"], folder.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr.contains("jobs.fence"), "{stderr}");
    assert!(files(folder.path()).is_empty());
}
