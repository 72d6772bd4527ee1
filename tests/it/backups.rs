//! A restored backup, a copied store and a moved platform answer every GET of a recorded crawl with the same bytes.

mod crawl;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::testing::{ManualClock, SeededEntropy};
use core_suite::backup::{BackupError, CopyError, CopyStart};
use core_suite::{MoveError, MoveOptions, MovePlatformError, Suite, SuiteBuilder};
use serde_json::{Value, json};

use crate::world::{
    Backend, Call, FRONT_PAGE, Fresh, Installation, SERVICE_KEY, sign_up, site_archive,
};
use crawl::{Crawl, crawl};

/// The seed of the suite that creates the records.
const FIRST_SEED: u64 = 5;

/// The seed of the suites that are crawled. With the first seed, the records of their reads could have ids that exist.
const CRAWL_SEED: u64 = 6;

/// An installation with records, and the cookie of a user who is signed in.
struct FilledInstallation {
    fresh: Fresh,
    cookie: String,
}

impl FilledInstallation {
    async fn crawl(&self) -> Crawl {
        crawl_of(&self.fresh.builder, &self.cookie).await
    }
}

/// Builds a suite with a fixed clock and seeded randomness, so that two suites with equal records respond equally.
async fn suite_of(builder: &SuiteBuilder, seed: u64) -> Suite {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_900_000_000)));
    let entropy = Arc::new(SeededEntropy::new(seed));
    builder
        .clone()
        .settings(|settings| settings.billing.allow_simulated_payments = true)
        .clock(clock)
        .entropy(entropy)
        .build()
        .await
        .unwrap()
}

async fn crawl_of(builder: &SuiteBuilder, cookie: &str) -> Crawl {
    let suite = suite_of(builder, CRAWL_SEED).await;
    let responses = crawl(&suite, cookie).await;
    suite.shutdown().await;
    responses
}

/// Creates an installation with a user, a platform, its infrastructure, a paid subscription and a site with a visit,
/// and stops it.
async fn filled_installation(backend: Backend) -> FilledInstallation {
    let fresh = Fresh::on(backend).await;
    let suite = suite_of(&fresh.builder, FIRST_SEED).await;
    let ada = sign_up(&suite, "engines", "Engines").await;
    let credentials =
        json!({ "email": "engines@example.org", "password": "correct horse battery" });
    let sign_in = Call::post("/api/auth/sign-in/email", &credentials);
    let signed_in = suite.send("iam", sign_in).await.expect(200);
    let cookies = signed_in.headers.get_all("set-cookie").iter();
    let mut cookies = cookies.filter_map(|cookie| cookie.to_str().ok()?.split(';').next());
    let cookie = cookies.find(|pair| pair.contains("session_token")).unwrap();
    let job = ada.job(&suite).await;
    ada.job_done(&suite, &job).await;
    let subscription = json!({
        "platformId": ada.platform, "tier": "starter", "trialDays": 0,
        "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org",
    });
    let subscribe = Call::post("/subscription", &subscription).bearer(SERVICE_KEY);
    let subscribed = suite.send("billing", subscribe).await.expect(201);
    assert_eq!(subscribed.text("status"), "active");
    let deployed = ada.deploy(&suite, site_archive()).await;
    assert_eq!(deployed.text("status"), "active");
    // The visit is a line of the log.
    let host = deployed.text("url").strip_prefix("http://").unwrap();
    let project = host.split('.').next().unwrap();
    let visit = Call::get("/").header("host", format!("{project}.localhost"));
    let visited = visit.to(suite.sites().unwrap()).await.expect(200);
    assert_eq!(visited.bytes, FRONT_PAGE);
    // The first request creates the key.
    let keys = Call::get("/.well-known/jwks.json");
    let _ = suite.send("iam", keys).await.expect(200);
    let cookie = cookie.to_owned();
    suite.shutdown().await;
    FilledInstallation { fresh, cookie }
}

/// A builder for an empty installation with a data folder and a database of its own.
async fn empty(backend: Backend) -> Fresh {
    Fresh::on(backend).await
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
    back_up(&original.fresh, folder.path()).await;
    let builder = restored.builder.clone();
    let done = builder
        .restore(folder.path(), CopyStart::Empty, &mut |_| {})
        .await;
    assert!(done.unwrap().records() > 100);
    // The restored installation goes first, so that nothing of the original can be left in it by accident.
    let copy = crawl_of(&restored.builder, &original.cookie).await;
    original.crawl().await.assert_equal(&copy);
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
    let at_same_folder = |fresh: &Fresh| fresh.builder.clone().data_folder(original.fresh.folder());
    let (to_postgres, back) = (at_same_folder(&middle), at_same_folder(&last));
    let from = original.fresh.builder.clone();
    from.copy_records(to_postgres.clone(), CopyStart::Empty, &mut |_| {})
        .await
        .unwrap();
    let second = to_postgres.clone();
    second
        .copy_records(back.clone(), CopyStart::Empty, &mut |_| {})
        .await
        .unwrap();
    let of_original = original.crawl().await;
    for copy in [&to_postgres, &back] {
        of_original.assert_equal(&crawl_of(copy, &original.cookie).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_answers_as_before_after_its_platforms_moved_on_cells() {
    let installation = filled_installation(Backend::Cells).await;
    let (builder, cookie) = (&installation.fresh.builder, &*installation.cookie);
    let suite = suite_of(builder, CRAWL_SEED).await;
    // The first crawl ends what the start of a suite writes.
    crawl(&suite, cookie).await;
    let before = crawl(&suite, cookie).await;
    let listed = &before.0["registry /api/v1/platforms"].body;
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
    before.assert_equal(&crawl(&suite, cookie).await);
    suite.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_incomplete_or_misplaced_backup_is_refused() {
    let FilledInstallation {
        fresh: original, ..
    } = filled_installation(Backend::Sqlite).await;
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
