//! The data folder and the database of a test's servers. On Postgres several servers can run at the same time.

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use core_domain::port::Store;
use core_http::kernel::testing::Answer;
use core_storage::testing::TestDatabase;
use core_storage::{postgres, sqlite};
use core_suite::SystemClock;
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crash::provider_objects;
use crate::jobs::assert_records_consistent;
use crate::world::{
    Backend, Call, Installation, PlatformMember, SERVICE_KEY, Server, build_binary,
};

const KEY: [u8; 32] = [7; 32];

/// Much longer than any operation here takes, even on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(180);

/// Waits for a future. Panics after a time-out, with the location of the caller.
#[track_caller]
pub(super) fn in_time<T>(awaited: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let ended = tokio::time::timeout(WAIT_TIMEOUT, awaited).await;
        ended.unwrap_or_else(|_| panic!("not within {WAIT_TIMEOUT:?}: {caller}"))
    }
}

/// Leases that end soon after their holder has died.
pub(super) const SHORT_LEASES: [&str; 2] = ["--set", "settings.worker.lease=2s"];

/// A data folder and a database.
pub(super) struct Site {
    pub(super) data: TempDir,
    /// The URL of a Postgres database, or the path of a SQLite file.
    pub(super) database: String,
    _keeps: Option<TestDatabase>,
}

/// Runs the same test on SQLite and on Postgres.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::faults::site::Site;
            use crate::world::Backend;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$test(Site::on(Backend::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                super::$test(Site::on(Backend::Postgres).await).await;
            }
        }
    )+};
}
pub(super) use on_both_databases;

/// A platform, and the job that creates its resources.
#[derive(Debug)]
pub(super) struct ProvisioningJob {
    pub(super) slug: String,
    pub(super) platform: PlatformMember,
    pub(super) job: String,
}

impl Site {
    pub(super) async fn on(backend: Backend) -> Self {
        let data = tempfile::tempdir().unwrap();
        if backend == Backend::Postgres {
            let database = core_storage::testing::postgres().await;
            return Self {
                database: database.url.clone(),
                data,
                _keeps: Some(database),
            };
        }
        Self::at(data.path().join("core.db").display().to_string(), data)
    }

    /// Creates a site with an existing database.
    pub(super) fn at(database: String, data: TempDir) -> Self {
        Self {
            data,
            database,
            _keeps: None,
        }
    }

    fn is_postgres(&self) -> bool {
        self.database.starts_with("postgres:")
    }

    /// Returns the number of servers that can use the database at the same time in a test.
    pub(super) fn max_nodes(&self) -> usize {
        if self.is_postgres() { 3 } else { 1 }
    }

    /// Returns the URL of the database.
    pub(super) fn url(&self) -> String {
        match self.is_postgres() {
            true => self.database.clone(),
            false => format!("sqlite:{}", self.database),
        }
    }

    /// Returns the environment variables of a server of this site.
    pub(super) fn environment(&self, log: &str) -> Vec<(&'static str, String)> {
        vec![
            ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
            ("DATABASE_URL", self.url()),
            ("RUST_LOG", log.to_owned()),
        ]
    }

    pub(super) async fn start(&self, arguments: &[&str]) -> Server {
        let environment = self.environment("error");
        Server::start_with(self.data.path(), arguments, &environment).await
    }

    /// Starts a server with [`SHORT_LEASES`] and a provider that waits this long before and after each effect.
    pub(super) async fn start_slow(&self, millis: u64) -> Server {
        let millis = millis.to_string();
        let mut arguments = vec!["--local-latency-ms", &millis];
        arguments.extend(SHORT_LEASES);
        self.start(&arguments).await
    }

    /// Runs a process with its own job kinds until it ends.
    pub(super) async fn run_node(&self, mut orders: Value) -> Output {
        orders["database"] = json!(self.database);
        orders["data"] = json!(self.data.path());
        let mut node = tokio::process::Command::new(build_binary("examples/fault-node"));
        let node = node.arg(orders.to_string()).kill_on_drop(true);
        in_time(node.output()).await.unwrap()
    }

    /// Opens the store of the site. With SQLite no process may use it any more.
    pub(super) async fn store(&self) -> Arc<dyn Store> {
        if self.is_postgres() {
            return postgres::open(self.postgres_config()).await.unwrap();
        }
        sqlite::open(self.sqlite_config()).await.unwrap()
    }

    /// Opens the store of the site for reading. Servers may use it.
    pub(super) async fn reader(&self) -> Arc<dyn Store> {
        if self.is_postgres() {
            let opened = postgres::open_read_only(self.postgres_config());
            return opened.await.unwrap();
        }
        let opened = sqlite::open_read_only(self.sqlite_config());
        opened.await.unwrap()
    }

    fn postgres_config(&self) -> postgres::PostgresConfig {
        postgres::PostgresConfig::new(&self.database, KEY)
    }

    fn sqlite_config(&self) -> sqlite::SqliteConfig {
        let path = PathBuf::from(&self.database);
        sqlite::SqliteConfig::new(path, Arc::new(SystemClock), KEY)
    }

    /// Checks the invariants of a site whose servers have ended.
    pub(super) async fn assert_consistent(&self) {
        assert_records_consistent(self.store().await.as_ref()).await;
    }

    /// Returns how many objects of the platform the provider has.
    pub(super) fn objects(&self, queued: &ProvisioningJob) -> usize {
        let folder = self.data.path().join("infrastructure");
        provider_objects(&folder, &format!("{}-", queued.slug))
    }

    /// Checks that each platform has its resources exactly once, created by a completed job. Returns the jobs.
    pub(super) async fn assert_complete(
        &self,
        server: &Server,
        all: &[ProvisioningJob],
    ) -> Vec<Value> {
        let mut jobs = Vec::with_capacity(all.len());
        for queued in all {
            let job = queued.wait_until_ended(server).await;
            assert_eq!(job["status"], "COMPLETED", "{job}");
            let resources = Call::get(queued.platform.at("/resources")).bearer(SERVICE_KEY);
            let resources = server.send("registry", resources).await.expect(200);
            assert_eq!(resources.each("status"), ["active"; 6]);
            assert_eq!(self.objects(queued), 6, "{}", queued.slug);
            jobs.push(job);
        }
        jobs
    }
}

impl ProvisioningJob {
    /// Creates a platform and queues the job that provisions it.
    pub(super) async fn on(server: &Server, slug: &str) -> Self {
        let platform = PlatformMember::operating(server, slug).await;
        let answer = server.send("provisioning", provision(&platform)).await;
        Self {
            slug: slug.to_owned(),
            job: answer.expect(202).text("jobId").to_owned(),
            platform,
        }
    }

    /// Creates several platforms whose slugs start with the prefix, and queues their jobs.
    pub(super) async fn many(server: &Server, prefix: &str, count: usize) -> Vec<Self> {
        let mut all = Vec::with_capacity(count);
        for number in 0..count {
            all.push(Self::on(server, &format!("{prefix}-{number}")).await);
        }
        all
    }

    /// Returns the job with its current state.
    pub(super) async fn get(&self, server: &Server) -> Answer {
        let path = format!("/api/v1/provision/jobs/{}", self.job);
        let call = Call::get(path).bearer(SERVICE_KEY);
        server.send("provisioning", call).await
    }

    /// Polls until the job is running. Returns it.
    pub(super) async fn wait_until_running(&self, server: &Server) -> Value {
        let runs = async {
            loop {
                let shown = self.get(server).await.expect(200).json;
                if shown["status"] == "RUNNING" {
                    return shown;
                }
            }
        };
        in_time(runs).await
    }

    /// Returns the job once it has ended. Polls again if the server's database is unavailable.
    pub(super) async fn wait_until_ended(&self, server: &Server) -> Value {
        let path = format!("/api/v1/provision/jobs/{}?wait=5", self.job);
        let call = Call::get(path).bearer(SERVICE_KEY);
        let ended = async {
            loop {
                let shown = server.send("provisioning", call.clone()).await;
                if shown.status == StatusCode::SERVICE_UNAVAILABLE {
                    continue;
                }
                let shown = shown.expect(200).json;
                if shown["status"] == "COMPLETED" || shown["status"] == "FAILED" {
                    return shown;
                }
            }
        };
        in_time(ended).await
    }
}

/// Returns the request that provisions a platform.
pub(super) fn provision(platform: &PlatformMember) -> Call {
    let body = json!({
        "platformId": platform.platform,
        "planTier": "starter",
        "billingEmail": "ada@example.org",
    });
    Call::post("/api/v1/provision/platform", &body).bearer(SERVICE_KEY)
}

/// Parses the output of a process with its own job kinds: by job name the id, the status, and the failure kind.
pub(super) fn statuses(output: &Output) -> BTreeMap<String, (String, String, Option<String>)> {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
