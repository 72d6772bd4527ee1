//! Users imported from files.

use std::io::Cursor;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::{Mode, Store, Within};
use core_domain::shared::AuditQuery;
use core_domain::testing::{ManualClock, RecordKey};
use core_storage::memory::{MemoryConfig, open};
use core_suite::{Argon2Hasher, ImportSummary, SuiteBuilder, SystemEntropy};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{World, builder, json_body, request, send};

/// A hash made by better-auth's algorithm.
const OF_BETTER_AUTH: &str = "000102030405060708090a0b0c0d0e0f:70cc7d605f9fd0bfd324b3978bd79ee81076d98810046ed91604c3cb8aa6957761a2b0b97abf1e7c417ec4a9baa7bd1ce53449880d90dc1117c88d69b4f0b72e";

const PASSWORD: &str = "correct horse battery";

/// An installation with an in-memory store and a data folder.
struct Installation {
    store: Arc<dyn Store>,
    folder: TempDir,
}

impl Installation {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        Self {
            store: open(MemoryConfig {
                clock,
                cursor_key: [1; 32].into(),
            }),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn builder(&self) -> SuiteBuilder {
        let hasher = Argon2Hasher::new(Arc::new(SystemEntropy));
        builder(self.folder.path())
            .store(Arc::clone(&self.store))
            .password_hasher(Arc::new(hasher))
    }

    /// Imports a file. Returns the counts and the reported problems.
    async fn import(&self, file: &str, dry_run: bool) -> (ImportSummary, Vec<String>) {
        let mut said = Vec::new();
        let source = Cursor::new(file.to_owned());
        let report = |problem: core_suite::ImportProblem| said.push(problem.to_string());
        let imported = self.builder().import_users(source, dry_run, report).await;
        (imported.unwrap(), said)
    }

    /// Returns the number of audit entries with an action.
    async fn audit_entry_count(&self, action: &str) -> usize {
        let mut uow = self.store.begin(Mode::Read).await.unwrap();
        let entries = uow.repositories(RecordKey::for_tests()).audit_entries();
        let query = AuditQuery {
            action: Some(action.to_owned()),
            ..AuditQuery::default()
        };
        let entries = entries.list(Within::Installation, &query, 1_000).await;
        entries.unwrap().len()
    }
}

fn counts(imported: u64, existing: u64, refused: u64) -> ImportSummary {
    ImportSummary {
        imported,
        existing,
        invalid: refused,
    }
}

async fn sign_in(world: &World, email: &str, password: &str) -> u16 {
    let body = json!({ "email": email, "password": password });
    let request = request("POST", "/api/auth/sign-in/email", "none");
    let answer = send(world.suite.iam(), json_body(request, &body)).await;
    answer.status.as_u16()
}

#[tokio::test]
async fn an_imported_better_auth_hash_is_replaced_by_argon2_at_the_first_sign_in() {
    let there = Installation::new();
    let file = json!({
        "id": "kY7oX2", "name": "Ada", "email": "Ada@Example.org", "emailVerified": true, "image": null,
        "createdAt": "2024-02-03T04:05:06.007Z", "updatedAt": "2024-02-03T04:05:06.007Z",
        "passwordHash": OF_BETTER_AUTH,
    });
    let (summary, said) = there.import(&file.to_string(), false).await;
    assert_eq!((summary, said), (counts(1, 0, 0), Vec::new()));
    let world = World {
        suite: there.builder().build().await.unwrap(),
        folder: tempfile::tempdir().unwrap(),
    };
    let (ada, rehashed) = ("ada@example.org", "account.password_rehashed");
    assert_eq!(sign_in(&world, ada, "correct horse batterx").await, 401);
    assert_eq!(there.audit_entry_count(rehashed).await, 0);
    for _ in 0..2 {
        assert_eq!(sign_in(&world, ada, PASSWORD).await, 200);
        // A hash that is already Argon2id with the current parameters is not replaced again.
        assert_eq!(there.audit_entry_count(rehashed).await, 1);
    }
    world.suite.shutdown().await;
}

#[tokio::test]
async fn a_dry_run_reports_the_same_as_an_import_and_stores_nothing() {
    let there = Installation::new();
    let rows = [
        json!({ "email": "ada@example.org", "emailVerified": 1, "createdAt": 1_700_000_000_000_i64 }).to_string(),
        json!({ "email": "ADA@example.org" }).to_string(),
        "nonsense".to_owned(),
        json!({ "id": "u 1", "name": 7, "emailVerified": "yes", "createdAt": "yesterday", "hash": 1,
                "passwordHash": "$2b$12$open-sesame" }).to_string(),
        json!({ "id": "u1", "email": "bob@example.org" }).to_string(),
        json!({ "id": "u1", "email": "eve@example.org", "createdAt": null }).to_string(),
        "[]".to_owned(),
    ];
    let expected = [
        "line 2: ada@example.org is taken",
        "line 3: is not valid JSON: expected ident",
        "line 4: hash is an unknown field; id is not a valid id; name is not a string; email is missing; emailVerified is neither true nor false; \
         createdAt is not a point in time (RFC 3339, or milliseconds since 1970); \
         passwordHash is neither an Argon2 hash (PHC string) nor a scrypt hash of better-auth",
        "line 6: the id u1 is taken",
        "line 7: is not a JSON object",
    ];
    for dry_run in [true, false] {
        let (summary, said) = there.import(&rows.join("\n"), dry_run).await;
        assert_eq!(said, expected);
        assert_eq!(summary, counts(2, 2, 3));
        let stored = if dry_run { 0 } else { 2 };
        assert_eq!(there.audit_entry_count("user.imported").await, stored);
    }
    let (summary, said) = there.import(&rows.join("\n"), false).await;
    assert_eq!(
        summary,
        counts(0, 4, 3),
        "a file can be imported again: {said:?}"
    );
}

#[tokio::test]
async fn a_file_of_several_batches_is_imported_completely() {
    let person = |n: usize| json!({ "email": format!("p{n}@example.org"), "name": "Größe" });
    let people: Vec<Value> = (0..450).map(person).collect();
    let lines: Vec<String> = people.iter().map(Value::to_string).collect();
    let array = serde_json::to_string_pretty(&people).unwrap();
    for file in [lines.join("\n"), array.clone()] {
        let there = Installation::new();
        assert_eq!(there.import(&file, false).await.0, counts(450, 0, 0));
        assert_eq!(there.audit_entry_count("user.imported").await, 450);
    }
    let there = Installation::new();
    let cut = &array[..array.len() / 2];
    let (summary, said) = there.import(cut, false).await;
    assert_eq!((summary.invalid, said.len()), (1, 1));
    assert!(
        said[0].ends_with("the rest of the file was not read"),
        "{said:?}"
    );
    assert_eq!(
        there.audit_entry_count("user.imported").await as u64,
        summary.imported
    );
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn an_import_into_a_sqlite_file_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.sqlite");
    let suite = builder(folder.path()).sqlite(&file);
    let running = suite.build().await.unwrap();
    let import = || {
        let source = Cursor::new(r#"{"email":"ada@example.org"}"#);
        builder(folder.path())
            .sqlite(&file)
            .import_users(source, false, drop)
    };
    let refused = import().await.unwrap_err();
    let refused = format!("{refused:?}");
    assert!(refused.contains("in use by another process"), "{refused}");
    running.shutdown().await;
    assert_eq!(import().await.unwrap(), counts(1, 0, 0));
}
