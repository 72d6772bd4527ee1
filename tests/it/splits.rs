//! The services of one installation in several processes. The tour takes its way through each split.

use std::path::Path;
use std::process::Stdio;

use core_http::kernel::testing::Answer;
use core_storage::testing;
use tempfile::TempDir;
use tokio::process::Command;

use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server, build_binary};

/// The name of each service, and the variable with its URL.
const SERVICES: [(&str, &str); 6] = [
    ("iam", "IAM_URL"),
    ("registry", "REGISTRY_URL"),
    ("provisioning", "PROVISIONING_URL"),
    ("cli", "CLI_URL"),
    ("billing", "BILLING_URL"),
    ("stacks", "STACK_REGISTRY_URL"),
];

/// The processes of an installation. All of them have the same data folder, like nodes with a shared file system.
struct Split {
    nodes: Vec<Server>,
    gateway: Server,
    iam: String,
    data: TempDir,
}

impl Split {
    /// Starts a process for each group of services, in order, and then the gateway. The first group has IAM. A gateway
    /// without a group is a process of its own, without a database.
    async fn start(groups: &[&[&str]], database: &str) -> Self {
        Self::start_with(groups, database, &[]).await
    }

    /// Like [`Self::start`], with more arguments for the gateway.
    async fn start_with(groups: &[&[&str]], database: &str, for_gateway: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut environment = vec![
            ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
            ("RUST_LOG", "warn".to_owned()),
        ];
        let mut nodes = Vec::new();
        for group in groups {
            let mut own = environment.clone();
            own.push(("DATABASE_URL", database.to_owned()));
            let services = group.join(",");
            let arguments = ["--services", &services];
            let node = Server::start_with(data.path(), &arguments, &own).await;
            let urls = SERVICES.into_iter();
            let urls = urls.filter(|(name, _)| group.contains(name));
            environment.extend(urls.map(|(name, variable)| (variable, node.url(name))));
            nodes.push(node);
        }
        let iam = nodes[0].url("iam");
        let gateway = match groups.last() {
            Some(last) if last.contains(&"gateway") => nodes.pop().unwrap(),
            _ => {
                let own = data.path().join("of-the-gateway");
                let arguments = [&["--services", "gateway"], for_gateway].concat();
                Server::start_with(&own, &arguments, &environment).await
            }
        };
        Self {
            nodes,
            gateway,
            iam,
            data,
        }
    }

    /// Runs the tour on the installation, which must succeed.
    async fn take_tour(&self) {
        let mut tour = Command::new(build_binary("core-tour"));
        tour.args([
            "--gateway",
            &self.gateway.url("gateway"),
            "--iam",
            &self.iam,
        ])
        .env("AUTH_API_KEY", SERVICE_KEY)
        .stdin(Stdio::null());
        let taken = tour.output().await.unwrap();
        let said = [taken.stdout, taken.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(taken.status.success(), "{}\n{}", said[0], said[1]);
    }

    /// Sends a request for the platform of a member, or for a path below it, to the gateway.
    async fn get_as(&self, member: &PlatformMember, rest: &str) -> Answer {
        self.gateway.get(&member.token, &member.at(rest)).await
    }

    async fn terminate(self) {
        assert!(self.gateway.terminate().await.success());
        for node in self.nodes {
            assert!(node.terminate().await.success());
        }
    }
}

/// Returns whether a folder has a file of a database.
fn has_database(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap();
    let mut names = files.map(|file| file.unwrap().file_name());
    names.any(|name| name.to_string_lossy().contains("sqlite"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_passes_with_a_gateway_of_its_own_before_the_services_on_sqlite() {
    let all = SERVICES.map(|(name, _)| name);
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("core.sqlite").display());
    let split = Split::start(&[&all], &database).await;
    split.take_tour().await;
    assert!(!has_database(&split.data.path().join("of-the-gateway")));
    split.terminate().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_passes_with_every_service_in_a_process_of_its_own() {
    let database = testing::postgres().await;
    let groups = SERVICES.map(|(name, _)| [name]);
    let groups: Vec<&[&str]> = groups.iter().map(|group| group.as_slice()).collect();
    let split = Split::start(&groups, &database.url).await;
    split.take_tour().await;
    split.terminate().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_passes_with_a_gateway_that_has_some_of_the_services() {
    let database = testing::postgres().await;
    let groups: [&[&str]; 2] = [
        &["iam", "registry", "billing"],
        &["provisioning", "cli", "stacks", "gateway"],
    ];
    let split = Split::start(&groups, &database.url).await;
    split.take_tour().await;
    split.terminate().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_sees_its_own_changes_at_once_through_a_gateway_that_caches_sessions() {
    let all = SERVICES.map(|(name, _)| name);
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("core.sqlite").display());
    // Longer than the test needs for a round, so that an old entry would be used.
    let caches = ["--set", "settings.gateway.session_cache=5s"];
    let split = Split::start_with(&[&all], &database, &caches).await;
    let ada = crate::world::sign_up(&split.nodes[0], "engines", "Engines").await;
    let reason = serde_json::json!({ "reason": "a test" });
    let operate = |action| Call::post(ada.at(action), &reason).bearer(SERVICE_KEY);
    let suspended = split.gateway.send("gateway", operate("/suspend"));
    let _ = suspended.await.expect(200);
    // The gateway caches the session, and that its platform is suspended.
    let _ = split.get_as(&ada, "").await.expect(451);
    let restored = split.gateway.send("gateway", operate("/restore"));
    let _ = restored.await.expect(200);
    let _ = split.get_as(&ada, "").await.expect(200);
    let sign_out = Call::post("/api/v1/iam/api/auth/sign-out", &serde_json::json!({}));
    let sign_out = sign_out.bearer(&ada.token);
    let _ = split.gateway.send("gateway", sign_out).await.expect(200);
    let _ = split.get_as(&ada, "").await.expect(401);
    split.terminate().await;
}
