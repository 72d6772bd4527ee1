//! Tests of the changes that are refused.

use core_storage::Type::{Bool, Int, Json, Text};
use core_storage::sql::ddl::Dialect;
use core_storage::{Table, testing};

use super::support::{
    ID, LAST, decisions, optional_column, plan_between, required_column, sqlite, things,
};
use crate::error::WriteError;
use crate::write::plan;

fn refusal(before: &'static Table, after: &'static Table, given: &[&str]) -> Vec<String> {
    match plan_between(&[before], &[after], given) {
        Err(WriteError::Undecided(problems)) => problems,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn equal_schemas_need_no_migration() {
    let table = things(
        &[required_column("flag", Bool), optional_column("data", Json)],
        &[],
        &[&["flag"]],
    );
    let planned = plan_between(&[table], &[table], &[]);
    assert!(planned.unwrap().is_none());
}

#[test]
fn the_error_names_all_required_columns_without_a_default() {
    let before = things(&[optional_column("note", Text)], &[], &[]);
    let columns = [
        required_column("size", Int),
        required_column("note", Text),
        required_column("flag", Bool),
    ];
    let problems = refusal(before, things(&columns, &[], &[]), &[]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("--default things.size=value"),
        "{problems:?}"
    );
    assert!(
        problems[1].contains("--default things.note=value"),
        "{problems:?}"
    );
}

#[test]
fn a_default_of_another_type_is_refused() {
    let before = things(&[], &[], &[]);
    for (kind, value) in [(Int, "many"), (Bool, "1"), (Json, "{"), (Text, "a\0b")] {
        let after = things(&[required_column("value", kind)], &[], &[]);
        let problems = refusal(before, after, &[&format!("things.value={value}")]);
        assert!(
            problems[0].contains("the column is of type"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_default_that_no_column_needs_is_refused() {
    let before = things(&[], &[], &[]);
    let after = things(&[optional_column("size", Int)], &[], &[]);
    for given in ["things.size=1", "things.sise=1", "thing.size=1"] {
        let problems = refusal(before, after, &[given]);
        assert!(
            problems[0].contains("no existing row needs"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_malformed_default_is_refused() {
    let mut decisions = decisions(&["a.b=c=d.e"]);
    for text in ["a.b", "a=b.c", "", "a.b=twice"] {
        let added = decisions.add_default(text);
        assert!(matches!(added, Err(WriteError::Usage(_))), "{text}");
    }
}

#[test]
fn a_change_of_the_key_is_refused() {
    let before = things(&[required_column("name", Text)], &[], &[]);
    let after: &'static Table = Box::leak(Box::new(Table {
        name: "things",
        columns: vec![required_column("name", Text), ID, LAST].leak(),
        uniques: &[],
        indexes: &[],
        parent: None,
        append_only: false,
        archive: None,
    }));
    let problems = refusal(before, after, &[]);
    assert!(
        problems[0].contains("the key changed from id to name"),
        "{problems:?}"
    );
}

#[test]
fn unknown_triggers_and_column_types_are_refused() {
    let table = things(&[required_column("name", Text)], &[], &[]);
    let trigger = "CREATE TRIGGER t AFTER DELETE ON things BEGIN DELETE FROM things; END";
    let database = sqlite(&[table]);
    database.execute_batch(trigger).unwrap();
    let unchanged = plan(&database, &[table], decisions(&[]));
    assert!(unchanged.unwrap().is_none(), "nothing is to be changed");
    let after = things(&[optional_column("name", Text)], &[], &[]);
    let planned = plan(&database, &[after], decisions(&[]));
    assert!(matches!(planned, Err(WriteError::Undecided(why)) if why[0].contains("triggers")));

    let database = sqlite(&[things(&[], &[], &[])]);
    let add = "ALTER TABLE things ADD COLUMN name REAL";
    database.execute_batch(add).unwrap();
    let planned = plan(&database, &[after], decisions(&[]));
    assert!(matches!(planned, Err(WriteError::Undecided(why)) if why[0].contains("things.name")));
}

#[test]
fn a_table_that_is_not_strict_or_has_a_default_is_rebuilt_in_sqlite() {
    let table = things(&[required_column("size", Int)], &[], &[&["size"]]);
    for column in [
        "\"size\" INTEGER NOT NULL) ",
        "\"size\" INTEGER NOT NULL DEFAULT 3) STRICT",
    ] {
        let database = sqlite(&[]);
        let create = format!(
            "CREATE TABLE \"things\" (\"id\" TEXT NOT NULL PRIMARY KEY, \"row_version\" INTEGER NOT NULL, {column}"
        );
        database.execute_batch(&create).unwrap();
        let insert = "INSERT INTO things (id, size, row_version) VALUES ('a', 5, 1)";
        database.execute_batch(insert).unwrap();
        let planned = plan(&database, &[table], decisions(&[]));
        assert!(planned.unwrap().is_some());
        let read = database.query_row("SELECT size FROM things", [], |row| row.get(0));
        let size: i64 = read.unwrap();
        assert_eq!(size, 5);
    }
}

#[tokio::test]
async fn text_that_cannot_be_converted_fails_the_migration_and_keeps_the_rows() {
    for kind in [Int, Bool] {
        let before = things(&[required_column("value", Text)], &[], &[]);
        let after = things(&[required_column("value", kind)], &[], &[]);
        let plan = plan_between(&[before], &[after], &[]).unwrap().unwrap();
        let insert = "INSERT INTO things VALUES ('a', 'many', 1)";
        let read = "SELECT value FROM things";

        let mut database = sqlite(&[before]);
        database.execute_batch(insert).unwrap();
        let transaction = database.transaction().unwrap();
        let run = transaction.execute_batch(&plan.migrations[0].sqlite);
        assert!(run.is_err());
        transaction.rollback().unwrap();
        let kept = database.query_row(read, [], |row| row.get(0));
        let value: String = kept.unwrap();
        assert_eq!(value, "many");

        let server = testing::postgres().await;
        let mut database = testing::connect(&server.url).await;
        let create = core_storage::sql::ddl::create(before, Dialect::Postgres, false);
        database.batch_execute(&create).await.unwrap();
        database.batch_execute(insert).await.unwrap();
        let transaction = database.transaction().await.unwrap();
        let run = transaction.batch_execute(&plan.migrations[0].postgres);
        assert!(run.await.is_err());
        transaction.rollback().await.unwrap();
        let kept = database.query_one(read, &[]).await.unwrap();
        let value: String = kept.get(0);
        assert_eq!(value, "many");
    }
}
