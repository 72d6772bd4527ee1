//! Runs the program with its own table on SQLite and on Postgres.

#![cfg(feature = "customers")]
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::process::Command;

use core_storage::testing;

/// Runs the program. Returns its output.
fn run(database: &str) -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_customers"));
    let output = program.arg(database).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(str::to_owned).collect()
}

fn check(lines: &[String]) {
    let [first, refused, second, third] = lines else {
        panic!("{lines:?}");
    };
    let counts = [first, second, third].map(String::as_str);
    assert_eq!(counts, ["customers: 1", "customers: 1", "customers: 2"]);
    assert!(refused.starts_with("refused: "), "{refused}");
}

#[test]
fn a_refused_customer_has_no_platform_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    check(&run(&folder
        .path()
        .join("app.sqlite")
        .display()
        .to_string()));
}

#[tokio::test]
async fn a_refused_customer_has_no_platform_on_postgres() {
    let database = testing::postgres().await;
    check(&run(&database.url));
}
