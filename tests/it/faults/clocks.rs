//! F6: the clocks of two nodes are wrong by ten minutes in opposite directions, and jump while jobs run.

use std::path::{Path, PathBuf};

use super::site::{ProvisioningJob, Site};
use crate::world::{Backend, Call, Installation, Server};

/// Builds a library that shifts the time of the C library.
fn clock_library(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/faults/clock.c");
    let library = folder.join("clock.so");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    assert!(compiler.arg(source).arg("-ldl").status().unwrap().success());
    library
}

/// A node with its own clock offset.
struct Node {
    server: Server,
    offset: PathBuf,
}

impl Node {
    async fn start(site: &Site, library: &Path, name: &str, seconds: i64) -> Self {
        let offset = site.data.path().join(name);
        std::fs::write(&offset, seconds.to_string()).unwrap();
        let mut environment = site.environment("error");
        environment.extend([
            ("LD_PRELOAD", library.display().to_string()),
            ("CLOCK_OFFSET_FILE", offset.display().to_string()),
        ]);
        let arguments = ["--local-latency-ms", "100"];
        let server = Server::start_with(site.data.path(), &arguments, &environment).await;
        Self { server, offset }
    }

    /// Makes the clock jump to another offset.
    fn set(&self, seconds: i64) {
        std::fs::write(&self.offset, seconds.to_string()).unwrap();
    }

    /// Returns the minute of the hour by the node's clock.
    async fn minute(&self) -> String {
        let answer = self.server.send("provisioning", Call::get("/health")).await;
        // Format: Sun, 06 Nov 1994 08:49:37 GMT
        answer.header("date")[20..22].to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clocks_of_nodes_cost_no_job_its_lease() {
    let site = Site::on(Backend::Postgres).await;
    let library = clock_library(site.data.path());
    let ahead = Node::start(&site, &library, "ahead", 600).await;
    let behind = Node::start(&site, &library, "behind", -600).await;
    assert_ne!(ahead.minute().await, behind.minute().await);

    let mut all = ProvisioningJob::many(&ahead.server, "ahead", 4).await;
    all.extend(ProvisioningJob::many(&behind.server, "behind", 4).await);
    all[7].wait_until_running(&ahead.server).await;
    ahead.set(-600);
    behind.set(600);
    let jobs = site.assert_complete(&ahead.server, &all).await;
    for job in jobs {
        let costs = [&job["lostLeases"], &job["attempts"]];
        assert_eq!(costs, [0, 0], "{job}");
        let times = ["createdAt", "startedAt", "finishedAt"].map(|at| job[at].as_str().unwrap());
        assert!(
            times.is_sorted(),
            "times are taken from the database: {times:?}"
        );
    }
    assert!(ahead.server.terminate().await.success());
    assert!(behind.server.terminate().await.success());
    site.assert_consistent().await;
}
