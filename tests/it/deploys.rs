//! Concurrent deployments on every store, and `kill -9` of the server during deployments and rollbacks. After a restart
//! the old or the new version is live as a whole, and the deployment ends by itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use core_domain::testing::seeds;
use core_http::kernel::testing::Answer;
use core_suite::Suite;
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::world::{
    Call, Fresh, Installation, PlatformMember, Rng, SERVICE_KEY, Server, on_every_store, sign_up,
    site_archive,
};

const AT_ONCE: usize = 10;

on_every_store! { Fresh: concurrent_equal_deployments_create_one_deployment }

async fn at_once(suite: &Suite, person: &PlatformMember, headers: &[(&str, &str)]) -> Vec<Answer> {
    let mut call = person.deployment(site_archive());
    for (name, value) in headers {
        call = call.header(name, *value);
    }
    let running = (0..AT_ONCE).map(|_| {
        let (call, gateway) = (call.clone(), suite.gateway());
        tokio::spawn(async move { call.to(gateway).await })
    });
    let answers = join_all(running).await.into_iter();
    answers.map(Result::unwrap).collect()
}

fn one_is_new(answers: &[Answer]) {
    let statuses = answers.iter().map(|answer| answer.status.as_u16());
    let mut statuses: Vec<u16> = statuses.collect();
    statuses.sort_unstable();
    let mut expected = vec![200; AT_ONCE - 1];
    expected.push(202);
    assert_eq!(statuses, expected);
    let ids = answers.iter().map(|answer| answer.text("deploymentId"));
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
}

async fn concurrent_equal_deployments_create_one_deployment(fresh: Fresh) {
    let suite = fresh.suite().await;
    let person = sign_up(&suite, "engines", "Analytical Engines").await;
    let (first, second) = (("x-core-deploy-branch", "a"), ("x-core-deploy-branch", "b"));
    let keyed = [first, ("idempotency-key", "build-1")];
    one_is_new(&at_once(&suite, &person, &keyed).await);
    one_is_new(&at_once(&suite, &person, &[second]).await);
    suite.shutdown().await;
}

/// A wait before and after each effect of the provider, so that kills occur within deployments.
const SLOW: &[&str] = &["--local-latency-ms", "15"];

/// The number of changes for each seed. The server is killed during each one.
const CHANGES: usize = 4;

/// The number of requests to the site after which the server is killed, at most.
const MAX_REQUESTS: usize = 60;

/// Returns a site whose front page names a file that no other version has.
fn archive(version: usize) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let script = format!("app-{version}.js");
    for (path, content) in [
        ("index.html", script.clone()),
        (script.as_str(), script_content(version)),
        ("logo.svg", "the same logo".to_owned()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, path, content.as_bytes());
        added.unwrap();
    }
    archive.into_inner().unwrap()
}

fn script_content(version: usize) -> String {
    format!("the code of version {version}\n").repeat(1_000)
}

/// A deployed site of a server that is killed and started again.
struct DeployedSite {
    platform: PlatformMember,
    host: String,
    /// The version that is live if no change is in progress.
    live: usize,
    /// The deployments of all versions, by version; `None` if the upload was not accepted.
    deployments: Vec<Option<String>>,
}

impl DeployedSite {
    /// Creates a platform with version 0 of its site.
    async fn on(server: &Server) -> Self {
        let platform = PlatformMember::operating(server, "engines").await;
        let first = platform.deploy(server, archive(0)).await;
        assert_eq!(first.text("status"), "active", "{}", first.json);
        let host = first.text("url").strip_prefix("http://").unwrap();
        let host = host.trim_end_matches('/').split(':').next().unwrap();
        Self {
            host: host.to_owned(),
            deployments: vec![Some(first.text("deploymentId").to_owned())],
            live: 0,
            platform,
        }
    }

    /// Returns the path of the deployments, or a path below it, at the service.
    fn path(&self, rest: &str) -> String {
        self.platform.at(&format!("/deployments{rest}"))
    }

    fn request(&self, path: &str) -> Call {
        Call::get(path).header("host", &self.host)
    }

    /// Requests the front page and the file that it names. Returns the version.
    ///
    /// Another version can go live between both requests. The file is then missing, and the front page is another one.
    async fn visit(&self, server: &Server) -> usize {
        let mut name = self.front_page(server).await;
        loop {
            let version = name.strip_prefix("app-").unwrap();
            let version = version.strip_suffix(".js").unwrap().parse().unwrap();
            let script = self.request(&format!("/{name}"));
            let script = server.send("sites", script).await;
            if script.status != 404 {
                assert_eq!(script.expect(200).bytes, script_content(version));
                return version;
            }
            let next = self.front_page(server).await;
            assert_ne!(next, name, "the live version has all of its files");
            name = next;
        }
    }

    async fn front_page(&self, server: &Server) -> String {
        let front = server.send("sites", self.request("/")).await.expect(200);
        String::from_utf8(front.bytes.to_vec()).unwrap()
    }

    async fn list(&self, server: &Server) -> Vec<Value> {
        let list = Call::get(self.path("")).bearer(SERVICE_KEY);
        let list = server.send("cli", list).await.expect(200);
        list.json["data"].as_array().unwrap().clone()
    }

    /// Waits, with long polling, until the deployment has ended. Returns its status.
    async fn wait_until_ended(&self, server: &Server, id: &str) -> String {
        loop {
            let path = self.path(&format!("/{id}?wait=5"));
            let shown = Call::get(path).bearer(SERVICE_KEY);
            let shown = server.send("cli", shown).await.expect(200);
            let status = shown.text("status");
            if ["active", "failure", "canceled"].contains(&status) {
                return status.to_owned();
            }
        }
    }
}

/// Sends the request while the site is visited, and kills the server after a random number of visits. Returns the
/// response to the request, if there was one.
async fn kill_during(
    server: Server,
    site: &DeployedSite,
    call: Call,
    new: usize,
    rng: &Rng,
) -> Option<Answer> {
    let server = Arc::new(server);
    let sent: JoinHandle<Option<Answer>> = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.try_send("cli", call).await })
    };
    for _ in 0..rng.below(MAX_REQUESTS) {
        let front = server.send("sites", site.request("/")).await.expect(200);
        let expected = [site.live, new].map(|version| format!("app-{version}.js"));
        assert!(expected.iter().any(|name| front.bytes == *name));
    }
    server.signal("KILL").await;
    let answer = sent.await.unwrap();
    let server = Arc::into_inner(server).unwrap();
    assert!(!server.wait_for_exit().await.success());
    answer
}

/// Kills the server during a deployment or rollback, and checks the site and the deployment after the restart.
async fn change_and_kill(
    data: &Path,
    server: Server,
    site: &mut DeployedSite,
    rng: &Rng,
) -> Server {
    let older: Vec<(usize, String)> = site
        .deployments
        .iter()
        .cloned()
        .enumerate()
        .filter(|(version, _)| *version != site.live)
        .filter_map(|(version, id)| Some((version, id?)))
        .collect();
    let before = site.list(&server).await.len();
    let is_rollback = !older.is_empty() && rng.below(2) == 0;
    let (new, call) = match is_rollback {
        true => {
            let (version, id) = older[rng.below(older.len())].clone();
            let path = site.path(&format!("/{id}/rollback"));
            (version, Call::post(path, &json!({})))
        }
        false => {
            let version = site.deployments.len();
            site.deployments.push(None);
            let path = site.platform.at("/deploy");
            (
                version,
                Call::upload(path, "application/x-tar", archive(version)),
            )
        }
    };
    let answer = kill_during(server, site, call.bearer(SERVICE_KEY), new, rng).await;

    let server = Server::start(data, SLOW).await;
    let found = site.visit(&server).await;
    assert!([site.live, new].contains(&found), "{found}");
    let listed = site.list(&server).await;
    if let Some(answer) = &answer {
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.json);
        assert_eq!(listed[0]["deploymentId"], answer.json["deploymentId"]);
    }
    // A change without a response was made or not.
    assert!(listed.len() == before + 1 || (answer.is_none() && listed.len() == before));
    if listed.len() > before {
        let id = listed[0]["deploymentId"].as_str().unwrap();
        assert_eq!(site.wait_until_ended(&server, id).await, "active");
        if !is_rollback {
            site.deployments[new] = Some(id.to_owned());
        }
        site.live = new;
    }
    assert_eq!(site.visit(&server).await, site.live);
    assert_eq!(site.list(&server).await[0]["isLive"], true);
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_a_random_moment_of_a_deployment_or_rollback_a_site_is_old_or_new_as_a_whole() {
    for seed in seeds(3) {
        let rng = Rng::new(seed);
        let data = tempfile::tempdir().unwrap();
        let mut server = Server::start(data.path(), SLOW).await;
        let mut site = DeployedSite::on(&server).await;
        for _ in 0..CHANGES {
            server = change_and_kill(data.path(), server, &mut site, &rng).await;
        }
        let staging = data.path().join("uploads/.staging");
        assert_eq!(std::fs::read_dir(staging).unwrap().count(), 0);
        assert!(server.terminate().await.success());
    }
}
