//! Tests of the usage that the provider reports: requests to sites, sent bytes and stored bytes.

use std::sync::{Arc, Mutex};

use core_domain::kernel::PlatformId;
use core_domain::port::{Infrastructure, TrafficMeter};
use core_domain::registry::ResourceType;

use crate::host::{body, get};
use crate::support::{OWNER, request, resource, world, world_of};

/// Collects what was counted.
#[derive(Debug, Default)]
struct CountingMeter(Mutex<Vec<(String, u64)>>);

impl TrafficMeter for CountingMeter {
    fn count(&self, platform: &PlatformId, response_bytes: u64) {
        let counted = (platform.to_string(), response_bytes);
        self.0.lock().unwrap().push(counted);
    }
}

#[tokio::test]
async fn a_visit_counts_for_the_owner_of_the_site_with_the_bytes_that_were_sent() {
    let meter = Arc::new(CountingMeter::default());
    let traffic = Arc::clone(&meter);
    let world = world_of(|config| config.traffic = Some(traffic)).await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "front page")])
        .await;
    let answer = get(&world, "http://acme-site.localhost:8090/").await;
    assert_eq!(body(answer).await, "front page");
    // A visitor who leaves before the body has used a request, and no bytes.
    drop(get(&world, "http://acme-site.localhost:8090/").await);
    drop(get(&world, "http://missing.localhost:8090/").await);
    let counted = meter.0.lock().unwrap();
    assert_eq!(*counted, [(OWNER.to_owned(), 10), (OWNER.to_owned(), 0)]);
}

#[tokio::test]
async fn the_size_of_a_store_grows_with_its_content() {
    let world = world().await;
    for kind in [ResourceType::Kv, ResourceType::R2, ResourceType::D1] {
        let name = format!("acme-{}", kind.as_str());
        let object = resource(kind, &name);
        assert_eq!(world.infra.stored_bytes(&object).await.unwrap(), None);
        world.infra.create(&request(kind, &name)).await.unwrap();
        assert!(world.infra.stored_bytes(&object).await.unwrap().is_some());
    }
    let object = resource(ResourceType::R2, "acme-r2");
    let size = || async { world.infra.stored_bytes(&object).await.unwrap().unwrap() };
    let empty = size().await;
    let bucket = world.infra.bucket("acme-r2").await.unwrap();
    bucket
        .put("a/b.txt", "text/plain", vec![7; 50_000])
        .await
        .unwrap();
    let full = size().await;
    assert!(
        (empty + 50_000..empty + 60_000).contains(&full),
        "{empty} {full}"
    );
}
