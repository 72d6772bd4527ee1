//! The logs of engines and drivers at the finest level, and the texts of errors, contain no bound value.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::{Filter, Row, RowStore, RowTx, Select, Value, memory, testing};
use log::{LevelFilter, Log, Metadata, Record};

const KEY: [u8; 32] = [7; 32];
/// Part of every bound text in these tests.
const MARK: &str = "marked-ada@example.org";
/// A number that is bound in these tests.
const NUMBER: i64 = 7_319_460_285_013;

/// Collects the log lines that contain a marked value, and counts all lines by target.
#[derive(Default)]
struct Collector {
    marked: Mutex<Vec<String>>,
    targets: Mutex<BTreeMap<String, u64>>,
}

impl Log for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{} {}", record.target(), record.args());
        if is_marked(&line) {
            self.marked.lock().unwrap().push(line);
        }
        let mut targets = self.targets.lock().unwrap();
        *targets.entry(record.target().to_owned()).or_default() += 1;
    }

    fn flush(&self) {}
}

fn is_marked(line: &str) -> bool {
    line.contains("marked-") || line.contains(&NUMBER.to_string())
}

/// Returns the log of this test process.
fn collector() -> &'static Collector {
    static COLLECTOR: OnceLock<&'static Collector> = OnceLock::new();
    COLLECTOR.get_or_init(|| {
        let collector: &'static Collector = Box::leak(Box::default());
        log::set_logger(collector).expect("there is no other log");
        log::set_max_level(LevelFilter::Trace);
        collector
    })
}

fn row(id: &str, name: &str) -> Row {
    let mut row = item("marked-platform", id, NUMBER);
    for (column, value) in [
        ("name", Value::text(name)),
        ("data", Value::text(&format!("{{\"email\": \"{MARK}\"}}"))),
    ] {
        row[ITEMS.column_index(column).unwrap()] = value;
    }
    row
}

async fn use_every_statement(tx: &mut dyn RowTx) -> Result<(), StoreError> {
    let named = || Filter::eq("name", MARK);
    let nothing = &mut |_: &dyn core_storage::ReadRow| Ok(());
    tx.insert(&ITEMS, row("1", MARK)).await?;
    let rows = vec![row("2", "marked-2"), row("3", "marked-3")];
    tx.insert_many(&ITEMS, rows).await?;
    let change = [("desc", Value::text("marked-desc"))];
    tx.update(&ITEMS, &named(), &change).await?;
    let select = Select::of(&ITEMS).filter(named()).limit(2);
    tx.select(&select, nothing).await?;
    tx.count(&ITEMS, &Filter::eq("rank", NUMBER)).await?;
    tx.delete(&ITEMS, &Filter::eq("name", "marked-2")).await?;
    tx.append(&ITEMS, vec![row("4", "marked-4")]).await
}

/// Returns everything that a log could print of an error, including its causes.
fn format_with_causes(error: &StoreError) -> String {
    let mut shown = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        shown.push_str(&format!(" {error} {error:?}"));
        cause = error.source();
    }
    shown
}

async fn fill(store: &Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    use_every_statement(tx.as_mut()).await.unwrap();
    let slowest = tx.take_slowest_statements();
    assert!(!is_marked(&format!("{slowest:?}")), "{slowest:?}");
    tx.commit().await.unwrap();
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let taken = tx.insert(&ITEMS, row("5", MARK)).await;
    let taken = taken.expect_err("the name is taken");
    assert!(
        !is_marked(&format_with_causes(&taken)),
        "{}",
        format_with_causes(&taken)
    );
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::EPOCH))
}

#[tokio::test]
async fn no_log_line_contains_a_bound_value_even_at_trace_level() {
    let log = collector();
    fill(&memory::rows(clock())).await;
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    fill(&sqlite::rows(file, TABLES).await.unwrap()).await;
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    fill(&postgres::rows(server, TABLES).await.unwrap()).await;
    let targets = log.targets.lock().unwrap().clone();
    assert!(
        targets.contains_key("tokio_postgres::query"),
        "the driver has logged nothing: {targets:?}"
    );
    let marked = log.marked.lock().unwrap().clone();
    assert!(marked.is_empty(), "{marked:#?}");
}

#[tokio::test]
async fn a_unit_of_work_reports_its_five_slowest_statements() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    for store in [
        sqlite::rows(file, TABLES).await.unwrap(),
        postgres::rows(server, TABLES).await.unwrap(),
    ] {
        let mut tx = store.begin(Mode::Write).await.unwrap();
        assert_eq!(tx.take_slowest_statements(), []);
        use_every_statement(tx.as_mut()).await.unwrap();
        let slowest = tx.take_slowest_statements();
        assert_eq!(slowest.len(), 5);
        assert!(slowest.is_sorted_by(|slower, faster| slower.duration >= faster.duration));
        let of_table = |text: &str| text.contains("conformance_items");
        assert!(slowest.iter().all(|one| of_table(&one.text)), "{slowest:?}");
        tx.rollback().await;
    }
}

#[tokio::test]
async fn no_postgres_error_contains_row_data() {
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    let store = postgres::rows(server, TABLES).await.unwrap();
    let other = testing::connect(&database.url).await;
    for broken in [
        "ADD CONSTRAINT broken CHECK (id = '') NOT VALID",
        "ADD CONSTRAINT numbers CHECK (name::int > 0) NOT VALID",
    ] {
        let broken = format!("ALTER TABLE conformance_items {broken}");
        other.batch_execute(&broken).await.unwrap();
        let mut tx = store.begin(Mode::Write).await.unwrap();
        let refused = tx.insert(&ITEMS, row("1", MARK)).await;
        let refused = refused.expect_err("the table refuses the row");
        assert!(
            !is_marked(&format_with_causes(&refused)),
            "{}",
            format_with_causes(&refused)
        );
        assert!(refused.to_string().contains("SQLSTATE"), "{refused}");
    }
}

#[tokio::test]
async fn the_debug_output_of_a_bound_value_is_only_its_type() {
    use core_storage::sql::Bind;
    use core_storage::{Type, ValueRef};

    let text = ValueRef::Text(MARK);
    for bind in [
        Bind::One(Type::Text, text),
        Bind::One(Type::Int, ValueRef::Int(NUMBER)),
        Bind::Generated(Type::Text, MARK.to_owned()),
        Bind::Array(Type::Text, vec![text]),
    ] {
        assert!(!is_marked(&format!("{bind:?} {bind:#?}")), "{bind:?}");
    }
    assert!(!is_marked(&format!("{text:?}")));
}
