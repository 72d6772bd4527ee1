//! The main use case from start to end, through the gateway and IAM as tower services, on every store.

use core_suite::Suite;
use serde_json::json;

use crate::world::{
    Backend, Call, FRONT_PAGE, Fresh, Installation, PlatformMember, SERVICE_KEY, on_every_store,
    sign_up, site_archive,
};

on_every_store! { Fresh: the_main_use_case_works }

async fn the_main_use_case_works(fresh: Fresh) {
    run_the_main_job(fresh.suite().await).await;
}

async fn run_the_main_job(suite: Suite) {
    let person = sign_up(&suite, "engines", "Analytical Engines").await;
    let job = person.job(&suite).await;
    let done = person.job_done(&suite, &job).await;
    assert_eq!(done.json["progress"]["percent"], 100);
    publishes_a_template(&suite, &person).await;
    let project = deploys_a_site(&suite, &person).await;
    suspend_and_restore(&suite, &person, &project).await;

    let audit = suite.get(&person.token, &person.at("/audit")).await;
    assert!(audit.expect(200).total() >= Some(2));
    let resources = person.at("/resources");
    let before = suite.get(&person.token, &resources).await.expect(200);
    assert_eq!(before.total(), Some(6));
    let body = json!({ "platformId": person.platform });
    let path = "/api/v1/provisioning/platform/deprovision";
    let queued = suite.post(&person.token, path, body).await.expect(202);
    person.job_done(&suite, queued.text("jobId")).await;
    let after = suite.get(&person.token, &resources).await.expect(200);
    assert_eq!(after.total(), Some(0));
    let _ = front_page(&project)
        .to(suite.sites().unwrap())
        .await
        .expect(404);
    suite.shutdown().await;
}

/// A sequential scan takes a predicate lock on the whole table, and conflicts with every writer. If sequential scans
/// are disabled, Postgres uses one only where no index helps.
#[tokio::test]
async fn the_main_use_case_scans_no_table_on_postgres() {
    let fresh = Fresh::on(Backend::Postgres).await;
    // Creating an index scans the table, so the tables are created first.
    fresh.suite().await.shutdown().await;
    let database = core_storage::testing::connect(fresh.database_url()).await;
    // A Postgres process reports its statistics when it ends.
    let end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    database.execute(end, &[]).await.unwrap();
    database
        .execute("SELECT pg_stat_reset()", &[])
        .await
        .unwrap();

    run_the_main_job(fresh.suite().await).await;

    database.execute(end, &[]).await.unwrap();
    // Leases have no index that every heartbeat would have to update. There are only as many leases as running jobs,
    // and the timers read them in a read-only unit.
    let counts = "SELECT relname::text, seq_scan, COALESCE(idx_scan, 0) FROM pg_stat_user_tables \
        WHERE relname NOT IN ('schema_migrations', 'job_leases')";
    let counts = database.query(counts, &[]).await.unwrap();
    let by_index: i64 = counts.iter().map(|row| row.get::<_, i64>(2)).sum();
    assert!(by_index > 100, "{by_index} index scans were counted");
    let scanned = counts.iter().filter(|row| row.get::<_, i64>(1) > 0);
    let scanned: Vec<String> = scanned.map(|row| row.get(0)).collect();
    assert!(scanned.is_empty(), "{scanned:?}");
}

async fn publishes_a_template(suite: &Suite, person: &PlatformMember) {
    let template = json!({ "name": "web", "displayName": "Web", "description": "A site." });
    let version = json!({ "version": "1.0.0", "stackDefinition": {}, "coreSdkVersion": "1.0.0" });
    for (path, body) in [
        ("/api/v1/stacks", template),
        ("/api/v1/stacks/web/versions", version),
    ] {
        let _ = suite.post(SERVICE_KEY, path, body).await.expect(201);
    }
    let shown = suite.get(&person.token, "/api/v1/stacks/web").await;
    assert_eq!(
        shown.expect(200).json["template"]["latest_version"],
        "1.0.0"
    );
}

/// Deploys a site. Returns the name of its project.
async fn deploys_a_site(suite: &Suite, person: &PlatformMember) -> String {
    let live = person.deploy(suite, site_archive()).await;
    assert_eq!(live.text("status"), "active");
    let host = live.text("url").strip_prefix("http://").unwrap();
    let project = host.split('.').next().unwrap().to_owned();
    let page = front_page(&project).to(suite.sites().unwrap()).await;
    assert_eq!(page.expect(200).bytes, FRONT_PAGE);
    project
}

fn front_page(project: &str) -> Call {
    Call::get("/").header("host", format!("{project}.localhost"))
}

async fn suspend_and_restore(suite: &Suite, person: &PlatformMember, project: &str) {
    let suspend = person.at("/suspend");
    let late = json!({ "reason": "late" });
    let _ = suite.post(&person.token, &suspend, late).await.expect(200);
    let site = || front_page(project);
    let closed = site().to(suite.sites().unwrap()).await.expect(451);
    assert_eq!(closed.bytes, "This site is suspended.\n");
    let refused = suite.get(&person.token, &person.at("")).await;
    refused.expect_error(451, "PLATFORM_SUSPENDED");
    let restore = person.at("/restore");
    let _ = suite
        .post(SERVICE_KEY, &restore, json!({}))
        .await
        .expect(200);
    let _ = site().to(suite.sites().unwrap()).await.expect(200);
    let shown = suite.get(&person.token, &person.at("")).await.expect(200);
    assert_eq!(shown.text("status"), "active");
    let moves = suite.get(&person.token, &person.at("/lifecycle")).await;
    let moves = moves.expect(200);
    assert_eq!(moves.each("toStatus")[..2], ["active", "suspended"]);
}

#[tokio::test]
async fn two_suites_in_one_process_do_not_see_each_other() {
    let fresh = [
        Fresh::on(Backend::Memory).await,
        Fresh::on(Backend::Memory).await,
    ];
    let (first, second) = (fresh[0].suite().await, fresh[1].suite().await);
    let ada = sign_up(&first, "engines", "Engines").await;
    // The same address and slug are free in the other suite, and the session is unknown there.
    let other = sign_up(&second, "engines", "Engines").await;
    for (token, suite, status) in [
        (&ada.token, &second, 401),
        (&other.token, &second, 404),
        (&ada.token, &first, 200),
    ] {
        let _ = suite.get(token, &ada.at("")).await.expect(status);
    }
}
