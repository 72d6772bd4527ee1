//! A restored backup and a copied store answer every GET of a crawl with the same bytes as the original.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::testing::{ManualClock, SeededEntropy};
use core_http::kernel::{Endpoint, Service};
use core_suite::backup::{BackupError, CopyError, CopyStart};
use core_suite::{MoveError, MoveOptions, MovePlatformError, Suite, SuiteBuilder};
use http::Method;
use serde_json::Value;

use crate::world::{Backend, Call, Fresh, Installation, SERVICE_KEY, sign_up, site_archive};

/// Number of values that are tried for each parameter of a path.
const MAX_VALUES: usize = 3;

/// Number of rounds of a crawl. Each uses the ids in the responses of the rounds before.
const ROUNDS: usize = 4;

/// The responses of a crawl: status and body by path.
type Crawl = BTreeMap<String, (u16, Vec<u8>)>;

fn services(suite: &Suite) -> [(&'static str, Service); 6] {
    [
        ("iam", suite.iam()),
        ("registry", suite.registry()),
        ("provisioning", suite.provisioning()),
        ("cli", suite.cli()),
        ("billing", suite.billing()),
        ("stacks", suite.stacks()),
    ]
}

/// The texts of responses that can be parameters of paths, by the name of their field.
#[derive(Default)]
struct KnownValues(BTreeMap<String, BTreeSet<String>>);

impl KnownValues {
    fn read(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(text) = value.as_str().filter(|text| is_segment(text)) {
                        self.0
                            .entry(name.clone())
                            .or_default()
                            .insert(text.to_owned());
                    }
                    self.read(value);
                }
            }
            _ => {}
        }
    }

    /// Returns values for a parameter: those of fields with its name, and the ids of all records.
    fn values(&self, parameter: &str) -> Vec<&String> {
        let own = self.0.get(parameter).into_iter().flatten().take(MAX_VALUES);
        let ids = self.0.get("id").into_iter().flatten();
        own.chain(ids).collect()
    }

    /// Returns the path with each combination of values.
    fn fill_in(&self, path: &str) -> Vec<String> {
        let Some((before, rest)) = path.split_once('{') else {
            return vec![path.to_owned()];
        };
        let (parameter, after) = rest.split_once('}').unwrap();
        let values = self.values(parameter).into_iter();
        let filled = values.map(|value| format!("{before}{value}{after}"));
        filled
            .flat_map(|path| self.fill_in(&path))
            .take(400)
            .collect()
    }
}

fn is_segment(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}

/// Returns whether the response to a row is the same after a restart. Streams have no end; the others report the state of
/// the process, or a time or an id that is new for each request.
fn is_stable(row: &Endpoint) -> bool {
    let path = row.path();
    let ends = [
        "-options",
        "/verify",
        "/events",
        "/logs",
        "/health",
        "/livez",
        "/readyz",
        "/metrics",
        "jwks.json",
    ];
    *row.method() == Method::GET && !ends.iter().any(|end| path.ends_with(end))
}

/// Sends every GET that the ids of earlier responses make possible. Keeps the successful responses.
async fn crawl(suite: &Suite) -> Crawl {
    let (mut known, mut seen) = (KnownValues::default(), Crawl::new());
    for _ in 0..ROUNDS {
        for (name, service) in services(suite) {
            for row in service.endpoints().iter().filter(|row| is_stable(row)) {
                for path in known.fill_in(row.path()) {
                    let key = format!("{name} {path}");
                    if seen.contains_key(&key) {
                        continue;
                    }
                    let call = Call::get(path).bearer(SERVICE_KEY);
                    let answer = suite.send(name, call).await;
                    if answer.status.is_success() {
                        known.read(&answer.json);
                        let status = answer.status.as_u16();
                        seen.insert(key, (status, answer.json.to_string().into_bytes()));
                    }
                }
            }
        }
    }
    seen
}

/// Builds a suite with a fixed clock and seeded randomness, so that two suites with equal records respond equally.
async fn suite_of(builder: &SuiteBuilder) -> Suite {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_900_000_000)));
    let entropy = Arc::new(SeededEntropy::new(5));
    builder
        .clone()
        .clock(clock)
        .entropy(entropy)
        .build()
        .await
        .unwrap()
}

async fn crawl_of(builder: &SuiteBuilder) -> Crawl {
    let suite = suite_of(builder).await;
    let seen = crawl(&suite).await;
    suite.shutdown().await;
    seen
}

/// Creates an installation with a platform, its infrastructure and a site, and stops it.
async fn filled_installation(backend: Backend) -> Fresh {
    let fresh = Fresh::on(backend).await;
    let suite = suite_of(&fresh.builder).await;
    let ada = sign_up(&suite, "engines", "Engines").await;
    let job = ada.job(&suite).await;
    ada.job_done(&suite, &job).await;
    let deployed = ada.deploy(&suite, site_archive()).await;
    assert_eq!(deployed.text("status"), "active");
    suite.shutdown().await;
    fresh
}

/// A builder for an empty installation with a data folder and a database of its own.
async fn empty(backend: Backend) -> Fresh {
    Fresh::on(backend).await
}

fn assert_equal(original: &Crawl, copy: &Crawl) {
    assert!(original.len() > 60, "{}", original.len());
    for (path, (_, body)) in original {
        let [own, other] = [Some(body), copy.get(path).map(|(_, body)| body)]
            .map(|body| body.map(|body| String::from_utf8_lossy(body)));
        assert_eq!(own, other, "{path}");
    }
    assert_eq!(original.len(), copy.len());
}

async fn back_up(fresh: &Fresh, folder: &Path) {
    let mut tables = 0;
    let written = fresh
        .builder
        .clone()
        .back_up(folder, &mut |now| tables = now.tables)
        .await;
    let written = written.unwrap();
    assert_eq!(written.tables.len(), tables);
    assert!(written.records() > 100 && written.files > 0, "{written:?}");
}

async fn a_restored_backup_answers_as_the_original(from: Backend, to: Backend) {
    let (original, restored) = (filled_installation(from).await, empty(to).await);
    let folder = tempfile::tempdir().unwrap();
    back_up(&original, folder.path()).await;
    let builder = restored.builder.clone();
    let done = builder
        .restore(folder.path(), CopyStart::Empty, &mut |_| {})
        .await;
    assert!(done.unwrap().records() > 100);
    // The restored installation goes first, so that nothing of the original can be left in it by accident.
    let copy = crawl_of(&restored.builder).await;
    assert_equal(&crawl_of(&original.builder).await, &copy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_sqlite_restored_to_sqlite_answers_as_the_original() {
    a_restored_backup_answers_as_the_original(Backend::Sqlite, Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_postgres_restored_to_cells_answers_as_the_original() {
    a_restored_backup_answers_as_the_original(Backend::Postgres, Backend::Cells).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_copied_from_sqlite_to_postgres_and_back_answer_as_the_original() {
    let original = filled_installation(Backend::Sqlite).await;
    let [middle, last] = [empty(Backend::Postgres).await, empty(Backend::Sqlite).await];
    // The files of the local provider stay in the data folder.
    let at_same_folder = |fresh: &Fresh| fresh.builder.clone().data_folder(original.folder());
    let (to_postgres, back) = (at_same_folder(&middle), at_same_folder(&last));
    let from = original.builder.clone();
    from.copy_records(to_postgres.clone(), CopyStart::Empty, &mut |_| {})
        .await
        .unwrap();
    let second = to_postgres.clone();
    second
        .copy_records(back.clone(), CopyStart::Empty, &mut |_| {})
        .await
        .unwrap();
    let of_original = crawl_of(&original.builder).await;
    assert_equal(&of_original, &crawl_of(&to_postgres).await);
    assert_equal(&of_original, &crawl_of(&back).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_answers_as_before_after_its_platforms_moved_on_cells() {
    let installation = filled_installation(Backend::Cells).await;
    let builder = &installation.builder;
    let suite = suite_of(builder).await;
    // The first crawl ends what the start of a suite writes.
    crawl(&suite).await;
    let before = crawl(&suite).await;
    let (_, listed) = &before["registry /api/v1/platforms"];
    let listed: Value = serde_json::from_slice(listed).unwrap();
    let platforms = listed["data"].as_array().unwrap();
    assert!(!platforms.is_empty());
    let options = MoveOptions {
        // The units of the suite are short.
        settle_time: Duration::from_secs(4),
        ..MoveOptions::default()
    };
    let mut moves = 0;
    for cell in ["a", "home", "b"] {
        for platform in platforms {
            let id = platform["id"].as_str().unwrap();
            let moved = builder.clone();
            match moved.move_platform(id, cell, &options, &mut |_| {}).await {
                Ok(report) => {
                    assert!(report.removed > 10, "{report:?}");
                    moves += 1;
                }
                Err(MovePlatformError::Move(MoveError::AlreadyThere(_))) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    assert!(moves >= 2, "{moves}");
    assert_equal(&before, &crawl(&suite).await);
    suite.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_incomplete_or_misplaced_backup_is_refused() {
    let original = filled_installation(Backend::Sqlite).await;
    let folder = tempfile::tempdir().unwrap();
    let restore = async || {
        let restored = empty(Backend::Sqlite).await;
        let builder = restored.builder.clone();
        builder
            .restore(folder.path(), CopyStart::Empty, &mut |_| {})
            .await
    };
    let missing = restore().await;
    assert!(
        matches!(missing, Err(BackupError::NoManifest(_))),
        "{missing:?}"
    );
    back_up(&original, folder.path()).await;
    restore().await.unwrap();
    let again = original
        .builder
        .clone()
        .back_up(folder.path(), &mut |_| {})
        .await;
    assert!(
        matches!(again, Err(BackupError::FolderNotEmpty(_))),
        "{again:?}"
    );
    let inside = original.folder().join("backup");
    let within = original.builder.clone();
    let within = within.back_up(&inside, &mut |_| {}).await;
    assert!(
        matches!(within, Err(BackupError::InsideData(_))),
        "{within:?}"
    );
    // The original itself is not overwritten.
    let over = original.builder.clone();
    let over = over
        .restore(folder.path(), CopyStart::Empty, &mut |_| {})
        .await;
    let refused = matches!(over, Err(BackupError::Copy(CopyError::NotEmpty(_))));
    assert!(refused, "{over:?}");
    // A restore creates the data folder, and continues after an interruption.
    let restored = empty(Backend::Sqlite).await;
    let new = restored.folder().join("new/data");
    for start in [CopyStart::Empty, CopyStart::Resumed] {
        let builder = restored.builder.clone().data_folder(&new);
        let builder = builder.sqlite(new.join("core.sqlite"));
        builder
            .restore(folder.path(), start, &mut |_| {})
            .await
            .unwrap();
    }

    let secret = folder.path().join("data/secret");
    let kept = std::fs::read(&secret).unwrap();
    std::fs::write(&secret, [0_u8; 32]).unwrap();
    let damaged = restore().await;
    assert!(
        matches!(&damaged, Err(BackupError::Damaged(file)) if file == "secret"),
        "{damaged:?}"
    );
    std::fs::write(&secret, kept).unwrap();
    restore().await.unwrap();

    let records = folder.path().join("records.sqlite");
    let file = core_storage::sqlite::rusqlite::Connection::open(&records).unwrap();
    file.execute("UPDATE platforms SET row_version = row_version + 1", [])
        .unwrap();
    drop(file);
    let damaged = restore().await;
    let refused = matches!(&damaged, Err(BackupError::Damaged(file)) if file == "records.sqlite");
    assert!(refused, "{damaged:?}");
}
