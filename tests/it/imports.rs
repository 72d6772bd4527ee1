//! `core-server import-users` on the command line.

use serde_json::json;

use crate::world::{Call, Installation, Server, run};

/// A hash made by better-auth's algorithm.
const OF_BETTER_AUTH: &str = "000102030405060708090a0b0c0d0e0f:70cc7d605f9fd0bfd324b3978bd79ee81076d98810046ed91604c3cb8aa6957761a2b0b97abf1e7c417ec4a9baa7bd1ce53449880d90dc1117c88d69b4f0b72e";

async fn import(data: &std::path::Path, arguments: &[&str], input: &str) -> (bool, String, String) {
    let arguments = [&["import-users"], arguments].concat();
    let output = run(data, &arguments, input).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_users_can_sign_in_after_the_server_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let row = json!({ "email": "ada@example.org", "name": "Ada", "passwordHash": OF_BETTER_AUTH });
    let file = folder.path().join("users.jsonl");
    std::fs::write(&file, format!("{row}\n{{\"email\":\"nobody\"}}\n")).unwrap();
    let file = file.to_str().unwrap();

    let server = Server::start(&data, &[]).await;
    let (good, _, said) = import(&data, &[file], "").await;
    assert!(!good && said.contains("stop the server first"), "{said}");
    assert!(server.terminate().await.success());

    let problem = "line 2: email is not an e-mail address\n";
    let (good, summary, said) = import(&data, &["--dry-run", file], "").await;
    assert_eq!((good, &*said), (false, problem));
    let expected = "1 users would be imported; 0 already exist; 1 rows are invalid\n";
    assert_eq!(summary, expected);
    let (good, summary, said) = import(&data, &[file], "").await;
    assert_eq!((good, &*said), (false, problem));
    let expected = "1 users were imported; 0 already exist; 1 rows are invalid\n";
    assert_eq!(summary, expected);
    let (good, summary, said) = import(&data, &["-"], &row.to_string()).await;
    assert_eq!((good, &*said), (true, "line 1: ada@example.org is taken\n"));
    assert!(
        summary.starts_with("0 users were imported; 1 already exist"),
        "{summary}"
    );

    let server = Server::start(&data, &[]).await;
    let credentials = json!({ "email": "ada@example.org", "password": "correct horse battery" });
    let sign_in = Call::post("/api/auth/sign-in/email", &credentials);
    let signed_in = server.send("iam", sign_in).await.expect(200);
    assert_eq!(signed_in.json["user"]["name"], "Ada");
    assert!(server.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_file_or_database_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (good, _, said) = import(folder.path(), &["/nowhere/users.json"], "").await;
    assert!(!good && said.contains("/nowhere/users.json"), "{said}");
    let memory = ["--database-url", "memory:", "-"];
    let (good, _, said) = import(folder.path(), &memory, "").await;
    assert!(!good && said.contains("in-memory"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_with_a_web_address_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    let row = json!({ "email": "ada@example.org", "name": "Win at evil.example/now" });
    let (good, _, said) = import(folder.path(), &["--dry-run", "-"], &row.to_string()).await;
    let problem = "line 1: name must be one line of at most 255 characters and must not contain a web address";
    assert!(!good && said.contains(problem), "{said}");
}
