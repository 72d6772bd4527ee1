//! Helpers: tables to change, and databases to run the text on.

use core_storage::sql::ddl::{Dialect, create};
use core_storage::testing::{self, postgres_schema, sqlite_schema};
use core_storage::{Column, Index, IndexPredicate, Table, Type, Unique, VERSION};
use rusqlite::Connection as Sqlite;

use crate::decisions::Decisions;
use crate::error::WriteError;
use crate::render::Texts;
use crate::write::{Plan, plan};

pub(super) const fn required_column(name: &'static str, kind: Type) -> Column {
    let nullable = false;
    Column {
        name,
        kind,
        nullable,
    }
}

pub(super) const fn optional_column(name: &'static str, kind: Type) -> Column {
    let nullable = true;
    Column {
        name,
        kind,
        nullable,
    }
}

pub(super) const ID: Column = required_column("id", Type::Text);
pub(super) const LAST: Column = required_column(VERSION, Type::Int);

pub(super) const fn unique(
    name: &'static str,
    columns: &'static [&'static str],
    predicates: &'static [IndexPredicate],
) -> Unique {
    Unique {
        name,
        columns,
        predicates,
    }
}

/// Returns a table named `things`. It is leaked, so it lives as long as the test process.
pub(super) fn things(
    columns: &[Column],
    uniques: &[Unique],
    indexes: &[&'static [&'static str]],
) -> &'static Table {
    let mut all = vec![ID];
    all.extend(columns);
    all.push(LAST);
    Box::leak(Box::new(Table {
        name: "things",
        columns: all.leak(),
        uniques: uniques.to_vec().leak(),
        indexes: indexes
            .iter()
            .copied()
            .map(Index::on)
            .collect::<Vec<_>>()
            .leak(),
        parent: None,
        append_only: false,
        archive: None,
    }))
}

pub(super) fn decisions(given: &[&str]) -> Decisions {
    let mut decisions = Decisions::default();
    for text in given {
        decisions.add_default(text).unwrap();
    }
    decisions
}

fn schema_sql(tables: &[&'static Table], dialect: Dialect) -> String {
    let texts = tables.iter().map(|table| create(table, dialect, false));
    texts.collect()
}

/// Creates a SQLite database with the tables.
pub(super) fn sqlite(tables: &[&'static Table]) -> Sqlite {
    let database = Sqlite::open_in_memory().unwrap();
    let created = schema_sql(tables, Dialect::Sqlite);
    database.execute_batch(&created).unwrap();
    database
}

/// Plans the migration from one list of tables to another.
pub(super) fn plan_between(
    before: &[&'static Table],
    after: &[&'static Table],
    given: &[&str],
) -> Result<Option<Plan>, WriteError> {
    plan(&sqlite(before), after, decisions(given))
}

/// A change of tables, and rows that must be kept.
pub(super) struct Change<'a> {
    pub(super) before: &'a [&'static Table],
    pub(super) after: &'a [&'static Table],
    pub(super) given: &'a [&'a str],
    /// The statement that inserts rows before the change.
    pub(super) insert: &'a str,
    /// The query that reads the rows after the change, each as one text.
    pub(super) read: &'a str,
    pub(super) rows: &'a [&'a str],
}

impl Change<'_> {
    /// Plans the change and runs its text on both databases.
    pub(super) async fn check(&self) {
        let plan = plan_between(self.before, self.after, self.given);
        let plan = plan.unwrap().unwrap();
        let texts = |of: fn(&Texts) -> &String| {
            let texts = plan.migrations.iter().map(of);
            texts.cloned().collect::<Vec<_>>()
        };
        self.check_sqlite(&texts(|text| &text.sqlite).concat());
        self.check_postgres(&texts(|text| &text.postgres)).await;
    }

    fn check_sqlite(&self, text: &str) {
        let (mut changed, fresh) = (sqlite(self.before), sqlite(self.after));
        changed.execute_batch(self.insert).unwrap();
        // Like the store: in a transaction, with foreign keys enforced.
        let transaction = changed.transaction().unwrap();
        transaction.execute_batch(text).unwrap();
        transaction.commit().unwrap();
        let expected = sqlite_schema(&fresh).unwrap();
        assert_eq!(sqlite_schema(&changed).unwrap(), expected, "{text}");
        let mut read = changed.prepare(self.read).unwrap();
        let rows = read.query_map([], |row| row.get(0)).unwrap();
        let rows: Vec<String> = rows.map(Result::unwrap).collect();
        assert_eq!(rows, self.rows, "{text}");
        let again = plan(&changed, self.after, Decisions::default());
        assert!(again.unwrap().is_none(), "{text}");
    }

    async fn check_postgres(&self, texts: &[String]) {
        let databases = (testing::postgres().await, testing::postgres().await);
        let mut changed = testing::connect(&databases.0.url).await;
        let fresh = testing::connect(&databases.1.url).await;
        for (database, tables) in [(&changed, self.before), (&fresh, self.after)] {
            let created = schema_sql(tables, Dialect::Postgres);
            database.batch_execute(&created).await.unwrap();
        }
        changed.batch_execute(self.insert).await.unwrap();
        for text in texts {
            if text.contains("-- outside a transaction") {
                for statement in text.split_inclusive(";\n") {
                    changed.batch_execute(statement).await.unwrap();
                }
                continue;
            }
            let transaction = changed.transaction().await.unwrap();
            transaction.batch_execute(text).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let text = texts.concat();
        let expected = postgres_schema(&fresh).await.unwrap();
        assert_eq!(postgres_schema(&changed).await.unwrap(), expected, "{text}");
        let rows = changed.query(self.read, &[]).await.unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, self.rows, "{text}");
    }
}
