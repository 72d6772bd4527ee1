//! A server over several databases.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use core_storage::testing::{self, TestDatabase};
use http::Method;
use serde_json::json;

use crate::world::{Call, Installation, SERVICE_KEY, Server, run, run_until};

/// Cells are assigned by chance. Among this many platforms, the probability that a cell gets none is below 1 to 10 million.
const PLATFORMS: usize = 48;

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

/// Returns what `doctor` prints. Panics if it finds a failure.
async fn doctor(data: &Path, arguments: &[&str]) -> String {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["doctor"]).collect();
    let output = run(data, &arguments, "").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
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
    let text = doctor(&data, &arguments).await;
    assert!(text.contains("of cell b: has no tables yet"), "{text}");

    let server = Server::start(&data, &arguments).await;
    let text = doctor(&data, &arguments).await;
    assert!(text.contains("can commit together"), "{text}");

    let created = create_platforms(&server, PLATFORMS).await;
    // A slug that a platform of another cell has is taken.
    for number in 0..PLATFORMS {
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

/// Creates platforms. Returns their ids.
async fn create_platforms(server: &Server, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let slug = format!("platform-{number}");
        let platform = json!({ "name": slug, "slug": slug });
        let create = Call::post("/api/v1/platforms", &platform).bearer(SERVICE_KEY);
        let created = server.send("registry", create).await.expect(201);
        ids.push(created.text("id").to_owned());
    }
    ids
}

#[tokio::test]
async fn a_platform_moves_while_a_server_changes_it_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let (databases, file) = databases(folder.path()).await;
    let arguments = [
        "--database-url",
        &databases[0].url,
        "--cells",
        file.to_str().unwrap(),
    ];
    let data = folder.path().join("data");
    let server = Server::start(&data, &arguments).await;
    create_platforms(&server, PLATFORMS).await;
    let client = testing::connect(&databases[1].url).await;
    let in_a = client
        .query_one("SELECT min(id::text) FROM platforms", &[])
        .await;
    let platform: String = in_a.unwrap().get(0);
    let path = format!("/api/v1/platforms/{platform}");
    let command = ["move-platform", &platform, "--to", "b"];
    let command: Vec<&str> = arguments.into_iter().chain(command).collect();
    // The first run ends early. The second one goes on.
    run_until(&data, &command, "announced").await;
    let unended = format!("platform {platform} is moving from a to b");
    assert!(doctor(&data, &arguments).await.contains(&unended));
    let has_moved = AtomicBool::new(false);
    let changes = async {
        let mut count = 0_u32;
        while !has_moved.load(Ordering::SeqCst) {
            count += 1;
            let name = format!("name {count}");
            let change = Call::post(&path, &json!({ "name": name })).by(&Method::PATCH);
            let changed = server.send("registry", change.bearer(SERVICE_KEY)).await;
            assert_eq!(changed.expect(200).text("name"), name);
            let read = server.send("registry", Call::get(&path).bearer(SERVICE_KEY));
            assert_eq!(read.await.expect(200).text("name"), name);
            let list = Call::get("/api/v1/platforms?limit=100").bearer(SERVICE_KEY);
            let list = server.send("registry", list).await.expect(200);
            assert_eq!(list.json["data"].as_array().unwrap().len(), PLATFORMS);
            // Other tests need the processor, too.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        count
    };
    let moves = async {
        let output = run(&data, &command, "").await;
        has_moved.store(true, Ordering::SeqCst);
        output
    };
    let (count, output) = tokio::join!(changes, moves);
    let [text, progress] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{progress}");
    assert!(text.contains("moved and verified: "), "{text}");
    assert!(
        progress.contains("switched: changes waited for "),
        "{progress}"
    );
    assert!(count > 5, "only {count} changes");
    assert!(!doctor(&data, &arguments).await.contains("is moving"));
    let stored = format!("SELECT count(*) FROM platforms WHERE id = '{platform}'");
    let entries = format!(
        "SELECT (SELECT count(*) FROM audit_entries WHERE platform_id = '{platform}') \
         + (SELECT count(*) FROM unsealed_audit_entries WHERE platform_id = '{platform}')"
    );
    assert_eq!(count_in(&databases, &stored).await, [0, 0, 1]);
    let [home, a, b] = count_in(&databases, &entries).await;
    assert!(
        home == 0 && a == 0 && b > i64::from(count),
        "{home} {a} {b}"
    );
    // A move that has taken place already is refused, and so is one to nowhere.
    for (cell, problem) in [
        ("b", "is in the cell b already"),
        ("c", "there is no cell c"),
    ] {
        let command = ["move-platform", &platform, "--to", cell];
        let arguments: Vec<&str> = arguments.into_iter().chain(command).collect();
        let refused = run(&data, &arguments, "").await;
        assert!(!refused.status.success());
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains(problem), "{text}");
    }
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn a_cell_that_was_emptied_is_removed_from_the_file_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let (databases, file) = databases(folder.path()).await;
    let cell = |name: &str, number: usize, takes_new: bool| {
        let url = &databases[number].url;
        format!(
            "[[cell]]\nname = \"{name}\"\ndatabase_url = \"{url}\"\ntakes_new_platforms = {takes_new}\n"
        )
    };
    let data = folder.path().join("data");
    let arguments = [
        "--database-url",
        &databases[0].url,
        "--cells",
        file.to_str().unwrap(),
    ];
    let run = async |command: &[&str]| {
        let command: Vec<&str> = arguments.iter().chain(command).copied().collect();
        let output = run(&data, &command, "").await;
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text} {errors}");
        text
    };
    let write = |cells: &[String]| std::fs::write(&file, cells.concat()).unwrap();
    write(&[cell("a", 1, true), cell("b", 2, false)]);
    let server = Server::start(&data, &arguments).await;
    let created = create_platforms(&server, 2).await;
    assert!(server.terminate().await.success());
    let text = run(&["cells"]).await;
    assert_eq!(
        text,
        "home: 0 platforms, cannot be removed: it is the home cell\n\
         a: 2 platforms, takes new platforms, cannot be removed: new platforms are assigned to it, it has platforms\n\
         b: 0 platforms, can be removed\n"
    );

    write(&[cell("a", 1, false), cell("b", 2, true)]);
    let server = Server::start(&data, &arguments).await;
    let moved = run(&["move-platform", "--all-of", "a", "--to", "b"]).await;
    assert!(moved.ends_with("moved 2 platforms to b\n"), "{moved}");
    assert!(server.terminate().await.success());
    let text = run(&["cells"]).await;
    assert!(text.contains("a: 0 platforms, can be removed\n"), "{text}");

    write(&[cell("b", 2, true)]);
    let server = Server::start(&data, &arguments).await;
    for id in created {
        let read = Call::get(format!("/api/v1/platforms/{id}")).bearer(SERVICE_KEY);
        assert_eq!(
            server.send("registry", read).await.expect(200).text("id"),
            id
        );
    }
    assert!(server.terminate().await.success());
}

/// Counts in home and in both cells.
async fn count_in(databases: &[TestDatabase], query: &str) -> [i64; 3] {
    let mut counts = [0; 3];
    for (counted, database) in counts.iter_mut().zip(databases) {
        *counted = count(database, query).await;
    }
    counts
}
