//! Tests of the statements that the executor of a third-party SQL engine receives.

use std::sync::{Arc, Mutex};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::testing::ManualClock;
use core_storage::conformance::ITEMS;
use core_storage::sql::{Bind, Dialect, Executor, SqlTx, Statement, StatementCache};
use core_storage::{Filter, ReadRow, Replacement, Row, RowTx, Select, Type, VERSION, Value, Visit};

type Log = Arc<Mutex<Vec<(Arc<str>, usize)>>>;

/// An executor that records the texts and the numbers of parameters. It reports one affected row for each row of a
/// batch.
struct Recorder(Log);

impl Recorder {
    fn note(&self, statement: &Statement<'_>) {
        let note = (statement.text.clone(), statement.binds.len());
        self.0.lock().unwrap().push(note);
    }
}

fn batch_size(statement: &Statement<'_>) -> usize {
    let sizes = statement.binds.iter().map(|bind| match bind {
        Bind::Array(_, values) => values.len(),
        _ => 1,
    });
    sizes.max().unwrap_or(1)
}

impl Executor for Recorder {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        self.note(statement);
        Ok(batch_size(statement) as u64)
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.note(statement);
        if statement.text.starts_with("INSERT") {
            let row: Row = vec![Value::text("key")];
            return (0..batch_size(statement)).try_for_each(|_| visit(&row as &dyn ReadRow));
        }
        Ok(())
    }

    async fn commit(self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn rollback(self) {}
}

fn unit(dialect: Dialect) -> (SqlTx<Recorder>, Log) {
    let log = Log::default();
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let texts = Arc::new(StatementCache::default());
    let tx = SqlTx::new(Recorder(log.clone()), dialect, texts, Some(clock));
    (tx, log)
}

fn texts(log: &Log) -> Vec<Arc<str>> {
    let log = log.lock().unwrap();
    log.iter().map(|(text, _)| text.clone()).collect()
}

async fn list(tx: &mut SqlTx<Recorder>, filter: Filter) {
    let mut nothing = |_: &dyn ReadRow| Ok(());
    let select = Select::of(&ITEMS).filter(filter).limit(10);
    tx.select(&select, &mut nothing).await.unwrap();
}

#[tokio::test]
async fn values_are_bound_and_those_of_index_predicates_are_literals() {
    let (mut tx, log) = unit(Dialect::Postgres);
    list(&mut tx, Filter::eq("state", "active")).await;
    list(&mut tx, Filter::eq("state", "o'clock")).await;
    let texts = texts(&log);
    assert!(texts[0].contains("\"state\" = 'active'"), "{}", texts[0]);
    assert!(texts[1].contains("\"state\" = $1"), "{}", texts[1]);
}

#[tokio::test]
async fn queries_that_differ_only_in_values_share_one_text() {
    for dialect in Dialect::ALL {
        let (mut tx, log) = unit(dialect);
        for owner in ["a", "b"] {
            list(&mut tx, Filter::eq("platform_id", owner)).await;
        }
        for length in [5, 6, 8] {
            list(&mut tx, Filter::one_of("rank", 0..length)).await;
        }
        let texts = texts(&log);
        assert!(Arc::ptr_eq(&texts[0], &texts[1]));
        assert!(Arc::ptr_eq(&texts[2], &texts[3]));
        assert!(Arc::ptr_eq(&texts[2], &texts[4]));
    }
}

fn rows(count: usize) -> Vec<Row> {
    let row = |n: usize| {
        let value = |column: &core_storage::Column| match (column.name, column.kind) {
            ("id", _) => Value::text(&n.to_string()),
            (VERSION, _) => Value::Int(1),
            (_, _) if column.nullable => Value::Null,
            (_, Type::Int) => Value::Int(0),
            _ => Value::text("x"),
        };
        ITEMS.columns.iter().map(value).collect()
    };
    (0..count).map(row).collect()
}

#[tokio::test]
async fn a_batch_is_one_statement_in_dialects_with_arrays() {
    let (mut tx, log) = unit(Dialect::Postgres);
    for count in [2, 100] {
        tx.insert_many(&ITEMS, rows(count)).await.unwrap();
    }
    let replacement = |old: Row| {
        let mut new = old.clone();
        new[3] = Value::Int(7);
        new[10] = Value::Int(2);
        Replacement { old, new }
    };
    let replacements = rows(100).into_iter().map(replacement).collect();
    tx.replace_many(&ITEMS, replacements).await.unwrap();
    let texts = texts(&log);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(
        Arc::ptr_eq(&texts[0], &texts[1]),
        "the text does not depend on the size"
    );
}

#[tokio::test]
async fn an_update_checks_for_conflicts_only_if_it_can_cause_one_and_in_the_same_statement() {
    let by_key = Filter::eq("id", "1");
    let cases = [
        // Not part of any unique index.
        (("rank", Value::Int(1)), false),
        // Leaves the partial unique index, so it cannot conflict.
        (("state", Value::text("idle")), false),
        // NULL cannot conflict either.
        (("name", Value::Null), false),
        (("state", Value::text("active")), true),
        (("name", Value::text("a")), true),
    ];
    for dialect in Dialect::ALL {
        for (change, guarded) in &cases {
            let (mut tx, log) = unit(dialect);
            let change = std::slice::from_ref(change);
            tx.update(&ITEMS, &by_key, change).await.unwrap();
            let texts = texts(&log);
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert_eq!(texts[0].contains("NOT EXISTS"), *guarded, "{}", texts[0]);
        }
    }
}
