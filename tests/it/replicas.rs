//! A server whose lists are read from a standby of Postgres.

use std::process::Output;
use std::time::Duration;

use core_storage::testing::DedicatedPostgres;
use tokio::time::timeout;

use crate::world::{Call, Installation, SERVICE_KEY, Server, run};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns whether the server has read its standby.
async fn has_read_standby(server: &Server) -> bool {
    let scraped = server.send("metrics", Call::get("/metrics"));
    let scraped = scraped.await.expect(200);
    let text = String::from_utf8(scraped.bytes.to_vec()).unwrap();
    let units = r#"core_store_units_total{mode="stale",outcome="rolled-back"} "#;
    let count = text.lines().find_map(|line| line.strip_prefix(units));
    count.unwrap() != "0"
}

#[tokio::test]
async fn lists_of_a_server_are_read_from_its_standby_and_doctor_compares_both_postgres() {
    let primary = DedicatedPostgres::start().await;
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--database-url", &primary.url];
    let server = Server::start(folder.path(), &arguments).await;
    assert!(server.terminate().await.success());

    let standby = primary.start_standby().await;
    let replica = ["--database-replica-url", &standby.url];
    let with_replica = [arguments, replica].concat();
    let server = Server::start(folder.path(), &with_replica).await;
    let read = timeout(TIMEOUT, async {
        while !has_read_standby(&server).await {
            let list = server.get(SERVICE_KEY, "/api/v1/platforms").await;
            let _ = list.expect(200);
        }
    });
    read.await.expect("lists are read from the standby");

    let wrong = [arguments, ["--database-replica-url", &primary.url]].concat();
    for (arguments, status, begin) in [(with_replica, 0, "ok"), (wrong, 1, "FAILURE")] {
        let arguments = [arguments, vec!["doctor"]].concat();
        let output: Output = run(folder.path(), &arguments, "").await;
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{text}");
        let about = text.lines().find(|line| line.contains(" replica "));
        assert!(about.is_some_and(|line| line.starts_with(begin)), "{text}");
    }
    assert!(server.terminate().await.success());
}
