//! A server over several databases, one of which cannot be reached.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use core_storage::testing::{self, Proxy, TestDatabase};
use serde_json::json;

use crate::world::{Call, Installation, SERVICE_KEY, Server, sign_up};

/// Much longer than anything that is waited for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The databases of home, of the cell `a`, and of the cell `b`, which is reached through a proxy.
struct Cells {
    home: TestDatabase,
    a: TestDatabase,
    b: TestDatabase,
    proxy: Proxy,
    file: PathBuf,
}

impl Cells {
    async fn create(folder: &Path) -> Self {
        let [home, a, b] = [
            testing::postgres().await,
            testing::postgres().await,
            testing::postgres().await,
        ];
        let proxy = Proxy::start(&b.url).await;
        let cell =
            |name, url: &str| format!("[[cell]]\nname = \"{name}\"\ndatabase_url = \"{url}\"\n");
        let file = folder.join("cells.toml");
        let text = cell("a", &a.url) + &cell("b", &b.url_through(&[&proxy]));
        std::fs::write(&file, text).unwrap();
        Self {
            home,
            a,
            b,
            proxy,
            file,
        }
    }

    async fn start(&self, data: &Path) -> Server {
        let arguments = [
            "--database-url",
            &self.home.url,
            "--cells",
            self.file.to_str().unwrap(),
            // A shorter time without a response, so that the test does not wait for it.
            "--set",
            "settings.pool.postgres_statement_timeout=2s",
        ];
        Server::start(data, &arguments).await
    }

    /// Creates platforms until each of the two cells has one. Returns one of each.
    async fn create_platforms(&self, server: &Server) -> [String; 2] {
        let mut found = [None, None];
        for number in 0..64 {
            let slug = format!("platform-{number}");
            let body = json!({ "name": slug, "slug": slug });
            let create = Call::post("/api/v1/platforms", &body).bearer(SERVICE_KEY);
            let created = server.send("registry", create).await.expect(201);
            let id = created.text("id").to_owned();
            let is_in_a = count(&self.a, &platform_with(&id)).await == 1;
            found[usize::from(!is_in_a)].get_or_insert(id);
            if let [Some(in_a), Some(in_b)] = &found {
                return [in_a.clone(), in_b.clone()];
            }
        }
        panic!("all platforms are in one cell");
    }
}

/// Returns the table and the condition that select a platform.
fn platform_with(id: &str) -> String {
    format!("platforms WHERE id = '{id}'")
}

async fn count(database: &TestDatabase, from: &str) -> i64 {
    let client = testing::connect(&database.url).await;
    let query = format!("SELECT count(*) FROM {from}");
    client.query_one(&query, &[]).await.unwrap().get(0)
}

/// Waits until the metrics of a server say whether it reaches the cell `b`.
async fn until_reached(server: &Server, is_reached: bool) {
    let sample = format!(
        "core_store_cell_reached{{cell=\"b\"}} {}",
        u8::from(is_reached)
    );
    wait_for(&sample, async || {
        let metrics = server.send("metrics", Call::get("/metrics"));
        let metrics = metrics.await.expect(200);
        String::from_utf8_lossy(&metrics.bytes).contains(&sample)
    })
    .await;
}

/// Sends a call until it has this status.
async fn send_until(server: &Server, service: &str, call: &Call, status: u16) {
    wait_for(&format!("status {status}"), async || {
        server.send(service, call.clone()).await.status == status
    })
    .await;
}

/// Waits until the condition holds.
async fn wait_for(condition: &str, holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < MAX_WAIT, "{condition}");
    }
}

fn get_platform(id: &str) -> Call {
    Call::get(format!("/api/v1/platforms/{id}")).bearer(SERVICE_KEY)
}

fn create_entity(platform: &str, name: &str) -> Call {
    let body = json!({ "type": "tenant", "name": name, "slug": name });
    let path = format!("/api/v1/platforms/{platform}/entities");
    Call::post(path, &body).bearer(SERVICE_KEY)
}

/// Starts a job of the platform. Returns its path.
async fn provision(server: &Server, platform: &str) -> String {
    let body = json!({ "platformId": platform, "planTier": "starter",
        "billingEmail": "ada@example.org" });
    let start = Call::post("/api/v1/provision/platform", &body).bearer(SERVICE_KEY);
    let started = server.send("provisioning", start).await.expect(202);
    format!("/api/v1/provision/jobs/{}", started.text("jobId"))
}

/// Creates an organization with a platform by an onboarding, and waits for its end.
async fn onboard(server: &Server, token: &str, slug: &str) {
    let body = json!({ "platformName": "Ada", "slug": slug });
    let started = server.post(token, "/api/v1/onboarding/start", body);
    let started = started.await.expect(202);
    let job = started.text("jobId");
    until_status(
        server,
        &format!("/api/v1/provision/jobs/{job}"),
        "COMPLETED",
    )
    .await;
}

/// Waits until a job has this status.
async fn until_status(server: &Server, job: &str, status: &str) {
    wait_for(status, async || {
        let state = Call::get(job).bearer(SERVICE_KEY);
        let state = server.send("provisioning", state).await.expect(200);
        state.text("status") == status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_cannot_be_reached_stops_only_its_own_platforms_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let cells = Cells::create(folder.path()).await;
    let data = folder.path().join("data");
    let server = cells.start(&data).await;
    let [in_a, in_b] = cells.create_platforms(&server).await;
    let _ = server
        .send("registry", get_platform(&in_b))
        .await
        .expect(200);

    until_reached(&server, true).await;
    cells.proxy.swallow();
    let _ = send_until(&server, "registry", &get_platform(&in_b), 503).await;
    until_reached(&server, false).await;
    let _ = server
        .send("registry", get_platform(&in_a))
        .await
        .expect(200);
    let created = create_entity(&in_a, "first").header("idempotency-key", "once");
    let first = server.send("registry", created.clone()).await.expect(201);
    let again = server.send("registry", created).await.expect(201);
    assert_eq!(first.text("id"), again.text("id"));
    // Names that are unique over all cells need no other cell.
    let job = provision(&server, &in_a).await;
    until_status(&server, &job, "COMPLETED").await;
    // The platforms of new customers are in the cell that can be reached.
    for name in ["grace", "alan", "edsger", "barbara"] {
        let customer = sign_up(&server, name, name).await;
        let own = server.get(&customer.token, "/api/v1/platforms").await;
        let own = own.expect(200);
        assert_eq!(own.json["data"][0]["id"], *customer.platform, "{name}");
        assert_eq!(count(&cells.a, &platform_with(&customer.platform)).await, 1);
        onboard(&server, &customer.token, &format!("second-of-{name}")).await;
    }
    let all = Call::get("/api/v1/platforms").bearer(SERVICE_KEY);
    let _ = server.send("registry", all).await.expect(503);
    let email = json!({ "email": "ada@example.org" });
    let link = Call::post("/api/auth/sign-in/magic-link", &email);
    let _ = server.send("iam", link).await.expect(200);
    let mails = data.join("outbox");
    wait_for("a mail is sent", async || {
        mails
            .read_dir()
            .is_ok_and(|mut mails| mails.next().is_some())
    })
    .await;
    let unsealed = format!("unsealed_audit_entries WHERE platform_id = '{in_a}'");
    wait_for("entries are sealed", async || {
        count(&cells.a, &unsealed).await == 0
    })
    .await;
    assert!(server.terminate().await.success());

    // A server starts without the cell, and serves its platforms once it is back.
    let server = cells.start(&data).await;
    let _ = server
        .send("registry", get_platform(&in_a))
        .await
        .expect(200);
    let _ = server
        .send("registry", get_platform(&in_b))
        .await
        .expect(503);
    until_reached(&server, false).await;
    cells.proxy.forward_again();
    let _ = send_until(&server, "registry", &get_platform(&in_b), 200).await;
    until_reached(&server, true).await;
    let _ = server
        .send("registry", create_entity(&in_b, "second"))
        .await
        .expect(201);
    assert!(count(&cells.b, "entities").await > 0);
    assert!(server.terminate().await.success());
}
