//! Tests of the retention of old deployments.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use core_domain::port::{Infrastructure, ProviderError};
use core_local::{FaultMoment, Faults};

use crate::host::{body, get};
use crate::support::{World, upload, world, world_with};

const PAGE: &str = "http://acme-site.localhost:8090/";
const DEPLOYMENTS: &str = "pages/acme-site/deployments";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn deploy(world: &World, branch: &str, key: &str) -> Result<(), ProviderError> {
    let upload = upload("acme-site", branch, key, &[("index.html", key)]);
    world.infra.deploy_site(upload).await.map(drop)
}

async fn world_with_deployments(branch: &str, count: usize) -> World {
    let world = world().await;
    world.project("acme-site").await;
    for n in 1..=count {
        deploy(&world, branch, &format!("d-{n}")).await.unwrap();
    }
    world
}

async fn get_body(world: &World, url: &str) -> String {
    body(get(world, url).await).await
}

#[tokio::test]
async fn live_deployment_and_ten_previous_ones_are_kept() {
    let world = world_with_deployments("production", 14).await;
    assert_eq!(world.names(DEPLOYMENTS).len(), 11);
    assert_eq!(get_body(&world, PAGE).await, "d-14");
    assert!(world.staging().is_empty());
    assert_eq!(world.names("pages/acme-site/content").len(), 11);
}

#[tokio::test]
async fn retry_of_a_deleted_deployment_does_not_restore_it() {
    let world = world_with_deployments("production", 14).await;
    let found = world.infra.site_deployment("acme-site", "d-1").await;
    assert!(found.unwrap().is_some());
    deploy(&world, "production", "d-1").await.unwrap();
    assert_eq!(get_body(&world, PAGE).await, "d-14");
    assert_eq!(world.names(DEPLOYMENTS).len(), 11);
}

#[tokio::test]
async fn marks_of_deleted_deployments_expire_after_a_week() {
    let world = world_with_deployments("production", 14).await;
    assert_eq!(world.names("pages/acme-site/replaced").len(), 3);
    world.clock.advance(DAY * 8);
    deploy(&world, "production", "d-15").await.unwrap();
    assert_eq!(world.names("pages/acme-site/replaced").len(), 1);
    let found = world.infra.site_deployment("acme-site", "d-1").await;
    assert_eq!(found, Ok(None));
}

#[tokio::test]
async fn production_deployments_are_kept_at_any_age() {
    let world = world_with_deployments("production", 3).await;
    world.clock.advance(DAY * 400);
    deploy(&world, "production", "d-4").await.unwrap();
    assert_eq!(world.names(DEPLOYMENTS).len(), 4);
}

#[tokio::test]
async fn preview_ends_seven_days_after_its_last_deployment() {
    const PREVIEW: &str = "http://preview--acme-site.localhost:8090/";
    let world = world_with_deployments("preview", 2).await;
    world.clock.advance(DAY * 7);
    deploy(&world, "production", "live-1").await.unwrap();
    assert_eq!(get_body(&world, PREVIEW).await, "d-2");
    assert_eq!(world.names(DEPLOYMENTS).len(), 2);
    world.clock.advance(DAY);
    deploy(&world, "production", "live-2").await.unwrap();
    assert_eq!(get(&world, PREVIEW).await.status(), 404);
    assert_eq!(get_body(&world, PAGE).await, "live-2");
    assert_eq!(world.names(DEPLOYMENTS).len(), 2);
    // A late retry of the old request does not restore the address; a new deployment does.
    deploy(&world, "preview", "d-2").await.unwrap();
    assert_eq!(get(&world, PREVIEW).await.status(), 404);
    deploy(&world, "preview", "d-3").await.unwrap();
    assert_eq!(get_body(&world, PREVIEW).await, "d-3");
}

#[tokio::test]
async fn many_previews_do_not_displace_production() {
    let world = world_with_deployments("production", 5).await;
    for n in 0..20 {
        deploy(&world, "preview", &format!("p-{n}")).await.unwrap();
    }
    assert_eq!(world.names(DEPLOYMENTS).len(), 5 + 1);
}

#[tokio::test]
async fn interrupted_pruning_is_finished_by_the_next_deployment() {
    for moment in [FaultMoment::Live, FaultMoment::Pruning] {
        let armed = Arc::new(AtomicBool::new(false));
        let faults = {
            let armed = armed.clone();
            Faults::new(move |point| {
                let fails = point.moment == moment && armed.load(Ordering::Relaxed);
                fails.then(|| ProviderError::OutcomeUnknown("the process died".into()))
            })
        };
        let world = world_with(faults).await;
        world.project("acme-site").await;
        for n in 1..=11 {
            deploy(&world, "production", &format!("d-{n}"))
                .await
                .unwrap();
        }
        armed.store(true, Ordering::Relaxed);
        assert!(deploy(&world, "production", "d-12").await.is_err());
        assert_eq!(get_body(&world, PAGE).await, "d-12", "{moment:?}");
        assert_eq!(world.names(DEPLOYMENTS).len(), 12, "{moment:?}");
        let found = world.infra.site_deployment("acme-site", "d-12").await;
        assert!(found.unwrap().is_some());
        armed.store(false, Ordering::Relaxed);
        let world = world.reopen().await;
        deploy(&world, "production", "d-13").await.unwrap();
        assert_eq!(get_body(&world, PAGE).await, "d-13", "{moment:?}");
        assert_eq!(world.names(DEPLOYMENTS).len(), 11, "{moment:?}");
        deploy(&world, "production", "d-1").await.unwrap();
        assert_eq!(get_body(&world, PAGE).await, "d-13", "{moment:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_deployments_leave_the_live_one_and_ten_others() {
    let world = world_with_deployments("production", 11).await;
    let tasks = (0..12).map(|n| {
        let infra = world.infra.clone();
        tokio::spawn(async move {
            let key = format!("again-{n}");
            let upload = upload("acme-site", "production", &key, &[("index.html", &key)]);
            infra.deploy_site(upload).await.unwrap();
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    deploy(&world, "production", "last").await.unwrap();
    assert_eq!(get_body(&world, PAGE).await, "last");
    assert_eq!(world.names(DEPLOYMENTS).len(), 11);
}
