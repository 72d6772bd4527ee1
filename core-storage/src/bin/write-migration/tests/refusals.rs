//! What is not written, and why.

use core_storage::Type::{Bool, Int, Json, Text};
use core_storage::sql::ddl::Dialect;
use core_storage::{Table, testing};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::support::{ID, LAST, decisions, optional, plan_between, required, sqlite, things};
use crate::error::WriteError;
use crate::write::plan;

async fn refusal(before: &'static Table, after: &'static Table, given: &[&str]) -> Vec<String> {
    match plan_between(&[before], &[after], given).await {
        Err(WriteError::Undecided(problems)) => problems,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn equal_schemas_need_no_migration() {
    let table = things(
        &[required("flag", Bool), optional("data", Json)],
        &[],
        &[&["flag"]],
    );
    let planned = plan_between(&[table], &[table], &[]).await;
    assert!(planned.unwrap().is_none());
}

#[tokio::test]
async fn required_columns_without_a_default_are_all_named() {
    let before = things(&[optional("note", Text)], &[], &[]);
    let columns = [
        required("size", Int),
        required("note", Text),
        required("flag", Bool),
    ];
    let problems = refusal(before, things(&columns, &[], &[]), &[]).await;
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

#[tokio::test]
async fn a_default_of_another_type_is_refused() {
    let before = things(&[], &[], &[]);
    for (kind, value) in [(Int, "many"), (Bool, "1"), (Json, "{"), (Text, "a\0b")] {
        let after = things(&[required("value", kind)], &[], &[]);
        let problems = refusal(before, after, &[&format!("things.value={value}")]).await;
        assert!(
            problems[0].contains("the column is of type"),
            "{problems:?}"
        );
    }
}

#[tokio::test]
async fn a_default_that_no_column_needs_is_refused() {
    let before = things(&[], &[], &[]);
    let after = things(&[optional("size", Int)], &[], &[]);
    for given in ["things.size=1", "things.sise=1", "thing.size=1"] {
        let problems = refusal(before, after, &[given]).await;
        assert!(
            problems[0].contains("no existing row needs"),
            "{problems:?}"
        );
    }
}

#[test]
fn a_default_of_another_form_is_refused() {
    let mut decisions = decisions(&["a.b=c=d.e"]);
    for text in ["a.b", "a=b.c", "", "a.b=twice"] {
        let added = decisions.add_default(text);
        assert!(matches!(added, Err(WriteError::Usage(_))), "{text}");
    }
}

#[tokio::test]
async fn another_key_is_refused() {
    let before = things(&[required("name", Text)], &[], &[]);
    let after: &'static Table = Box::leak(Box::new(Table {
        name: "things",
        columns: vec![required("name", Text), ID, LAST].leak(),
        uniques: &[],
        indexes: &[],
        parent: None,
    }));
    let problems = refusal(before, after, &[]).await;
    assert!(
        problems[0].contains("the key changed from id to name"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn triggers_and_foreign_types_are_refused() {
    let table = things(&[required("name", Text)], &[], &[]);
    let trigger = "CREATE TRIGGER t AFTER DELETE ON things BEGIN DELETE FROM things; END";
    let mut database = sqlite(&[table]).await;
    sqlx::query(trigger).execute(&mut database).await.unwrap();
    let unchanged = plan(&mut database, &[table], decisions(&[])).await;
    assert!(unchanged.unwrap().is_none(), "nothing is to be changed");
    let after = things(&[optional("name", Text)], &[], &[]);
    let planned = plan(&mut database, &[after], decisions(&[])).await;
    assert!(matches!(planned, Err(WriteError::Undecided(why)) if why[0].contains("triggers")));

    let mut database = sqlite(&[things(&[], &[], &[])]).await;
    let add = "ALTER TABLE things ADD COLUMN name REAL";
    sqlx::query(add).execute(&mut database).await.unwrap();
    let planned = plan(&mut database, &[after], decisions(&[])).await;
    assert!(matches!(planned, Err(WriteError::Undecided(why)) if why[0].contains("things.name")));
}

#[tokio::test]
async fn a_table_that_is_not_strict_or_has_a_default_is_rebuilt_in_sqlite() {
    let table = things(&[required("size", Int)], &[], &[&["size"]]);
    for column in [
        "\"size\" INTEGER NOT NULL) ",
        "\"size\" INTEGER NOT NULL DEFAULT 3) STRICT",
    ] {
        let mut database = sqlite(&[]).await;
        let create = format!(
            "CREATE TABLE \"things\" (\"id\" TEXT NOT NULL PRIMARY KEY, \"row_version\" INTEGER NOT NULL, {column}"
        );
        let created = sqlx::query(AssertSqlSafe(create));
        created.execute(&mut database).await.unwrap();
        let insert = "INSERT INTO things (id, size, row_version) VALUES ('a', 5, 1)";
        sqlx::query(insert).execute(&mut database).await.unwrap();
        let planned = plan(&mut database, &[table], decisions(&[])).await;
        assert!(planned.unwrap().is_some());
        let size: i64 = sqlx::query_scalar("SELECT size FROM things")
            .fetch_one(&mut database)
            .await
            .unwrap();
        assert_eq!(size, 5);
    }
}

#[tokio::test]
async fn text_that_is_no_value_of_the_new_type_fails_the_migration_and_keeps_the_rows() {
    for kind in [Int, Bool] {
        let before = things(&[required("value", Text)], &[], &[]);
        let after = things(&[required("value", kind)], &[], &[]);
        let plan = plan_between(&[before], &[after], &[])
            .await
            .unwrap()
            .unwrap();
        let insert = "INSERT INTO things VALUES ('a', 'many', 1)";
        let read = "SELECT value FROM things";

        let mut database = sqlite(&[before]).await;
        sqlx::query(insert).execute(&mut database).await.unwrap();
        let mut transaction = database.begin().await.unwrap();
        let text = AssertSqlSafe(plan.text(Dialect::Sqlite).to_owned());
        assert!(
            sqlx::raw_sql(text)
                .execute(&mut *transaction)
                .await
                .is_err()
        );
        transaction.rollback().await.unwrap();
        let value: String = sqlx::query_scalar(read)
            .fetch_one(&mut database)
            .await
            .unwrap();
        assert_eq!(value, "many");

        let server = testing::postgres().await;
        let mut database = PgConnection::connect(&server.url).await.unwrap();
        let create = core_storage::sql::ddl::create(before, Dialect::Postgres, false);
        for text in [create, insert.to_owned()] {
            let run = sqlx::raw_sql(AssertSqlSafe(text));
            run.execute(&mut database).await.unwrap();
        }
        let mut transaction = database.begin().await.unwrap();
        let text = AssertSqlSafe(plan.text(Dialect::Postgres).to_owned());
        assert!(
            sqlx::raw_sql(text)
                .execute(&mut *transaction)
                .await
                .is_err()
        );
        transaction.rollback().await.unwrap();
        let value: String = sqlx::query_scalar(read)
            .fetch_one(&mut database)
            .await
            .unwrap();
        assert_eq!(value, "many");
    }
}
