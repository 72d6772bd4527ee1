//! Complete installations: a suite in this process or a server, and users with a platform.

use core_cloudflare_fake::FakeCloudflare;
use core_domain::kernel::Secret;
use core_http::kernel::testing::Answer;
use core_storage::testing::TestDatabase;
use core_suite::{CellOptions, Cells, CloudflareAccount, Suite, SuiteBuilder};
use core_testkit::sqlx_pool;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Backend, Call};

pub(crate) const SERVICE_KEY: &str = "whole-suite-service-key";
const IAM: &str = "http://iam.suite.test";

/// A builder for a suite over a fresh store, and the resources that must live as long as the suite.
pub(crate) struct Fresh {
    pub(crate) builder: SuiteBuilder,
    keeps: (TempDir, Vec<TestDatabase>),
}

impl Fresh {
    pub(crate) async fn on(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let builder = Suite::builder()
            .data_folder(folder.path())
            .service_key(SERVICE_KEY)
            .iam_url(IAM);
        let mut databases = Vec::new();
        let builder = match backend {
            Backend::Memory => builder.in_memory(),
            Backend::Sqlite => builder.sqlite(folder.path().join("core.sqlite")),
            Backend::Postgres => {
                databases.push(core_storage::testing::postgres().await);
                builder.postgres(&databases[0].url)
            }
            Backend::Sqlx => {
                databases.push(core_storage::testing::postgres().await);
                builder.sqlx(sqlx_pool(&databases[0].url))
            }
            Backend::Cells => {
                for _ in 0..3 {
                    databases.push(core_storage::testing::postgres().await);
                }
                let cell = |(name, database): (&str, &TestDatabase)| CellOptions {
                    name: name.to_owned(),
                    url: Secret::new(&*database.url),
                    direct_url: None,
                    replica_url: None,
                    takes_new_platforms: true,
                };
                let others = ["a", "b"].into_iter().zip(&databases[1..]).map(cell);
                builder.postgres(&databases[0].url).cells(Cells {
                    home_takes_new_platforms: true,
                    others: others.collect(),
                })
            }
        };
        Self {
            builder,
            keeps: (folder, databases),
        }
    }

    /// The folder of its data.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.keeps.0.path()
    }

    /// The URL of its Postgres database; of home, if there are several.
    pub(crate) fn database_url(&self) -> &str {
        &self.keeps.1[0].url
    }

    pub(crate) async fn suite(&self) -> Suite {
        self.builder.clone().build().await.unwrap()
    }
}

/// An installation that calls are sent to.
pub(crate) trait Installation {
    /// The origin from which IAM accepts cookies.
    fn origin(&self) -> String;

    async fn send(&self, service: &str, call: Call) -> Answer;

    /// Sends a GET request through the gateway.
    async fn get(&self, token: &str, path: &str) -> Answer {
        self.send("gateway", Call::get(path).bearer(token)).await
    }

    /// Sends a POST request through the gateway.
    async fn post(&self, token: &str, path: &str, body: Value) -> Answer {
        let call = Call::post(path, &body).bearer(token);
        self.send("gateway", call).await
    }

    /// Waits, with long polling, until the object at this path has one of these statuses.
    async fn until(&self, token: &str, path: &str, ended: &[&str]) -> Answer {
        loop {
            let state = self.get(token, &format!("{path}?wait=5")).await.expect(200);
            if ended.contains(&state.text("status")) {
                return state;
            }
        }
    }
}

impl Installation for Suite {
    fn origin(&self) -> String {
        IAM.to_owned()
    }

    async fn send(&self, service: &str, call: Call) -> Answer {
        let service = match service {
            "gateway" => return call.to(self.gateway()).await,
            "iam" => self.iam(),
            "registry" => self.registry(),
            "provisioning" => self.provisioning(),
            "cli" => self.cli(),
            "billing" => self.billing(),
            _ => self.stacks(),
        };
        call.to(service).await
    }
}

/// Builds a suite whose infrastructure is at a fake of Cloudflare.
pub(crate) async fn suite_at_cloudflare(
    fake: &FakeCloudflare,
    change: impl FnOnce(SuiteBuilder) -> SuiteBuilder,
) -> (Fresh, Suite) {
    let fresh = Fresh::on(Backend::Memory).await;
    let account = CloudflareAccount {
        token: Secret::new(fake.token()),
        account_id: fake.account_id(),
        base_url: fake.base_url(),
    };
    let builder = change(fresh.builder.clone().cloudflare(account));
    let suite = builder.build().await.unwrap();
    (fresh, suite)
}

/// A caller with all permissions on a platform.
#[derive(Clone, Debug)]
pub(crate) struct PlatformMember {
    pub(crate) token: String,
    pub(crate) platform: String,
}

/// Signs a user up and sets up an organization.
pub(crate) async fn sign_up(on: &impl Installation, slug: &str, name: &str) -> PlatformMember {
    let email = format!("{slug}@example.org");
    let body = json!({ "name": "Ada", "email": email, "password": "correct horse battery" });
    let signed_up = on.send("iam", Call::post("/api/auth/sign-up/email", &body));
    let signed_up = signed_up.await.expect(200);
    let cookie = signed_up.header("set-cookie").split(';').next().unwrap();
    let setup = Call::post(
        "/api/core/org-setup",
        &json!({ "name": name, "slug": slug }),
    )
    .header("cookie", cookie)
    .header("origin", on.origin());
    let organization = on.send("iam", setup).await.expect(201);
    PlatformMember {
        token: signed_up.text("token").to_owned(),
        platform: organization.text("platformId").to_owned(),
    }
}

impl PlatformMember {
    /// Creates a platform as the holder of the service key.
    pub(crate) async fn operating(on: &impl Installation, slug: &str) -> Self {
        let body = json!({ "name": slug, "slug": slug });
        let call = Call::post("/api/v1/platforms", &body).bearer(SERVICE_KEY);
        Self {
            token: SERVICE_KEY.to_owned(),
            platform: on.send("registry", call).await.expect(201).id(),
        }
    }

    /// Returns the path of the platform, or a path below it.
    pub(crate) fn at(&self, rest: &str) -> String {
        format!("/api/v1/platforms/{}{rest}", self.platform)
    }

    /// Returns the id of the newest job of the platform.
    pub(crate) async fn job(&self, on: &impl Installation) -> String {
        let path = format!("/api/v1/provisioning/jobs?platformId={}", self.platform);
        let jobs = on.get(&self.token, &path).await.expect(200);
        jobs.json["data"][0]["jobId"].as_str().unwrap().to_owned()
    }

    /// Waits until the job has completed. Panics if it failed.
    pub(crate) async fn job_done(&self, on: &impl Installation, job: &str) -> Answer {
        let path = format!("/api/v1/provisioning/jobs/{job}");
        let job = on.until(&self.token, &path, &["COMPLETED", "FAILED"]).await;
        assert_eq!(job.text("status"), "COMPLETED", "{}", job.json);
        job
    }

    pub(crate) fn deployment(&self, archive: impl Into<bytes::Bytes>) -> Call {
        let path = format!("/api/v1/cli/platforms/{}/deploy", self.platform);
        Call::upload(path, "application/octet-stream", archive).bearer(&self.token)
    }

    /// Deploys a site. Returns the deployment when it has ended.
    pub(crate) async fn deploy(
        &self,
        on: &impl Installation,
        archive: impl Into<bytes::Bytes>,
    ) -> Answer {
        let accepted = on.send("gateway", self.deployment(archive)).await;
        let accepted = accepted.expect(202);
        let path = format!(
            "/api/v1/cli/platforms/{}/deployments/{}",
            self.platform,
            accepted.text("deploymentId")
        );
        let ended = ["active", "failure", "canceled"];
        on.until(&self.token, &path, &ended).await
    }
}

pub(crate) const FRONT_PAGE: &str = "<h1>live</h1>";

/// Returns a small site.
pub(crate) fn site_archive() -> Vec<u8> {
    archive_of(&[
        ("index.html", FRONT_PAGE),
        ("css/site.css", "h1 { color: teal }"),
    ])
}

/// Returns a gzipped tar archive of files.
pub(crate) fn archive_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, name, content.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}
