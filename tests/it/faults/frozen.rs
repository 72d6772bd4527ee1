//! F2: a worker is stopped by SIGSTOP past its lease, another one finishes its job, and it goes on.

use super::site::{Queued, SHORT_LEASES, Site, in_time};
use crate::world::{Backend, Server};

/// A server whose provider is slow enough for it to be caught before an effect and after it.
async fn slow_server(site: &Site) -> Server {
    let mut arguments = vec!["--local-latency-ms", "900"];
    arguments.extend(SHORT_LEASES);
    let environment = site.environment("error,core_suite=debug");
    Server::start_with(site.data.path(), &arguments, &environment).await
}

/// Another server finishes the job of a frozen one, which then goes on, with its late effect or its late report; answers it.
async fn frozen_after_effects(effects: usize) -> Server {
    let site = Site::on(Backend::Postgres).await;
    let server = slow_server(&site).await;
    let first = [Queued::on(&server, "engines").await];
    first[0].runs(&server).await;
    in_time(async {
        while site.objects(&first[0]) < effects {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.signal("STOP").await;

    let other = site.start_slow(0).await;
    let jobs = site.is_complete(&other, &first).await;
    assert_eq!(jobs[0]["lostLeases"], 1);
    assert!(other.terminate().await.success());

    server.signal("CONT").await;
    let second = [Queued::on(&server, "tables").await];
    site.is_complete(&server, &second).await;
    let unchanged = site.is_complete(&server, &first).await;
    assert_eq!(unchanged, jobs, "what came late changed nothing");
    site.is_consistent().await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_late_report_of_a_frozen_worker_is_refused() {
    let server = frozen_after_effects(1).await;
    server.log().until_logged("LeaseLost").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_late_effect_of_a_frozen_worker_makes_nothing_twice() {
    let server = frozen_after_effects(0).await;
    assert!(server.terminate().await.success());
}
