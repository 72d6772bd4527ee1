//! A server over several databases.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use core_storage::testing::{self, TestDatabase};
use serde_json::json;

use crate::world::{Call, Installation, SERVICE_KEY, Server, run};

/// Creates the databases of home and of two cells, and the file that names the cells.
async fn databases(folder: &Path) -> (Vec<TestDatabase>, PathBuf) {
    let mut databases = vec![testing::postgres().await];
    let mut file = "home_takes_new_platforms = true\n".to_owned();
    for name in ["a", "b"] {
        let database = testing::postgres().await;
        let url = &database.url;
        writeln!(
            file,
            "[[cell]]\nname = \"{name}\"\ndatabase_url = \"{url}\""
        )
        .unwrap();
        databases.push(database);
    }
    let path = folder.join("cells.toml");
    std::fs::write(&path, file).unwrap();
    (databases, path)
}

async fn count(database: &TestDatabase, query: &str) -> i64 {
    let client = testing::connect(&database.url).await;
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_server_spreads_platforms_over_cells_and_serves_them_as_one_list_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let (databases, file) = databases(folder.path()).await;
    let arguments = [
        "--database-url",
        &databases[0].url,
        "--cells",
        file.to_str().unwrap(),
    ];
    let data = folder.path().join("data");
    let doctor: Vec<&str> = arguments.into_iter().chain(["doctor"]).collect();
    let output = run(&data, &doctor, "").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains("of cell b: has no tables yet"),
        "{text}"
    );

    let server = Server::start(&data, &arguments).await;
    let output = run(&data, &doctor, "").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains("can commit together"),
        "{text}"
    );

    let mut created = Vec::new();
    for number in 0..12 {
        let slug = format!("platform-{number}");
        let platform = json!({ "name": slug, "slug": slug });
        let platform = server
            .send(
                "registry",
                Call::post("/api/v1/platforms", &platform).bearer(SERVICE_KEY),
            )
            .await
            .expect(201);
        created.push(platform.text("id").to_owned());
    }
    // A slug that a platform of another cell has is taken.
    for number in 0..12 {
        let taken = json!({ "name": "again", "slug": format!("platform-{number}") });
        let _ = server
            .send(
                "registry",
                Call::post("/api/v1/platforms", &taken).bearer(SERVICE_KEY),
            )
            .await
            .expect(409);
    }
    for database in &databases {
        assert!(count(database, "SELECT count(*) FROM platforms").await > 0);
        assert_eq!(
            count(
                database,
                "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"
            )
            .await,
            0
        );
    }
    let list = server
        .send(
            "registry",
            Call::get("/api/v1/platforms?limit=100").bearer(SERVICE_KEY),
        )
        .await
        .expect(200);
    let items = list.json["data"].as_array().unwrap().iter();
    // The newest is the first one.
    let listed: Vec<&str> = items
        .rev()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(listed, created);
    assert!(server.terminate().await.success());
}
