//! Plans of queries on tables with rows, which Postgres chooses by its statistics.

use core_domain::shared::{AuditEntry, AuditQuery};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sql::{Dialect, with_literals};
use core_storage::{Select, Tabular, testing};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Adds 4,000 entries. Half of them, among them the newest ones, are about reads.
const ADD_ENTRIES: &str = "INSERT INTO audit_entries (id, stream, actor_id, actor_type, action, entity_type, entity_id, \
     metadata, created_at, row_version) \
     SELECT lpad(n::text, 32, '0')::uuid, CASE WHEN n % 2000 < 1000 THEN 'changes' ELSE 'reads' END, 'ada', 'user', \
     'thing.made', 'thing', 'it', '{}', n, 1 FROM generate_series(0, 3999) n; ANALYZE audit_entries";

async fn plan(client: &Client, select: &Select) -> String {
    let explain = format!("EXPLAIN {}", with_literals(select, Dialect::Postgres));
    let rows = client.simple_query(&explain).await.unwrap();
    let lines = rows.iter().filter_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_newest_changes_are_read_without_entries_about_reads() {
    let database = testing::postgres().await;
    let opened = postgres::rows(PostgresConfig::new(&*database.url, [7; 32]), &[]).await;
    opened.expect("Postgres opens");
    let client = testing::connect(&database.url).await;
    client.batch_execute(ADD_ENTRIES).await.unwrap();
    let newest = AuditEntry::select(&AuditQuery::default()).limit(51);
    let plan = plan(&client, &newest).await;
    assert!(plan.contains("audit_entries_by_id_if_stream"), "{plan}");
    assert!(!plan.contains("Filter"), "{plan}");
}
