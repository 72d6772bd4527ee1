//! F6: the clocks of nodes are ten minutes wrong, each in its way, and jump while jobs run.

use std::path::{Path, PathBuf};

use super::site::{Queued, Site};
use crate::world::{Backend, Call, Installation, Server};

/// What the C library is asked for the time through.
fn clock_library(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/faults/clock.c");
    let library = folder.join("clock.so");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library);
    assert!(compiler.arg(source).arg("-ldl").status().unwrap().success());
    library
}

/// A node with a clock of its own.
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

    /// Its clock jumps.
    fn set(&self, seconds: i64) {
        std::fs::write(&self.offset, seconds.to_string()).unwrap();
    }

    /// The minute of the hour, by its clock.
    async fn minute(&self) -> String {
        let answer = self.server.send("provisioning", Call::get("/health")).await;
        // Sun, 06 Nov 1994 08:49:37 GMT
        answer.header("date")[20..22].to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_clock_of_a_node_takes_a_job_from_another_or_keeps_it() {
    let site = Site::on(Backend::Postgres).await;
    let library = clock_library(site.data.path());
    let ahead = Node::start(&site, &library, "ahead", 600).await;
    let behind = Node::start(&site, &library, "behind", -600).await;
    assert_ne!(ahead.minute().await, behind.minute().await);

    let mut all = Queued::many(&ahead.server, "ahead", 4).await;
    all.extend(Queued::many(&behind.server, "behind", 4).await);
    all[7].runs(&ahead.server).await;
    ahead.set(-600);
    behind.set(600);
    let jobs = site.is_complete(&ahead.server, &all).await;
    for job in jobs {
        let costs = [&job["lostLeases"], &job["attempts"]];
        assert_eq!(costs, [0, 0], "{job}");
        let times = ["createdAt", "startedAt", "finishedAt"].map(|at| job[at].as_str().unwrap());
        assert!(times.is_sorted(), "the time is the database's: {times:?}");
    }
    assert!(ahead.server.terminate().await.success());
    assert!(behind.server.terminate().await.success());
    site.is_consistent().await;
}
