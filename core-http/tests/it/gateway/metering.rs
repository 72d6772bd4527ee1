//! Metering of requests, and the refusal of those that a plan does not include.

use std::sync::{Arc, Mutex};

use core_domain::kernel::PlatformId;
use core_domain::port::TrafficMeter;
use core_http::gateway::{ExhaustedRequests, UsageMeter};
use serde_json::json;

use super::world::{KEY, World, anonymous};

/// Records what is counted. Every platform is exhausted if `exhausted` is set.
#[derive(Debug, Default)]
struct FakeMeter {
    counted: Mutex<Vec<(String, u64)>>,
    exhausted: Option<ExhaustedRequests>,
}

impl TrafficMeter for FakeMeter {
    fn count(&self, platform: &PlatformId, response_bytes: u64) {
        let counted = (platform.to_string(), response_bytes);
        self.counted.lock().unwrap().push(counted);
    }
}

impl UsageMeter for FakeMeter {
    fn find_exhausted(&self, _: &PlatformId) -> Option<ExhaustedRequests> {
        self.exhausted
    }
}

fn exhausted_world() -> (World, Arc<FakeMeter>) {
    let meter = Arc::new(FakeMeter {
        counted: Mutex::default(),
        exhausted: Some(ExhaustedRequests {
            used: 50_001,
            limit: 50_000,
        }),
    });
    (World::with_meter(meter.clone()), meter)
}

#[tokio::test]
async fn a_request_of_a_platform_counts_with_the_bytes_of_its_response() {
    let meter = Arc::new(FakeMeter::default());
    let world = World::with_meter(meter.clone());
    for _ in 0..2 {
        assert_eq!(world.get("/api/v1/platforms/p-1").await.status, 200);
    }
    let expected = ("p-1".to_owned(), "fine".len() as u64);
    assert_eq!(*meter.counted.lock().unwrap(), vec![expected; 2]);
}

#[tokio::test]
async fn requests_without_a_platform_and_refused_requests_do_not_count() {
    let meter = Arc::new(FakeMeter::default());
    let world = World::with_meter(meter.clone());
    let by_service = anonymous("/api/v1/platforms/p-1");
    let by_service = by_service.header("authorization", &format!("Bearer {KEY}"));
    assert_eq!(world.send(by_service.build()).await.status, 200);
    let unknown = anonymous("/api/v1/platforms/p-1").header("authorization", "Bearer nobody");
    assert_eq!(world.send(unknown.build()).await.status, 401);
    assert_eq!(world.get("/api/v1/nothing-here").await.status, 404);
    assert_eq!(world.send(anonymous("/health").build()).await.status, 200);
    assert!(meter.counted.lock().unwrap().is_empty());
}

#[tokio::test]
async fn exhausted_requests_are_refused_except_those_to_iam_and_billing() {
    let (world, meter) = exhausted_world();
    let refused = world.get("/api/v1/platforms/p-1").await;
    let refused = refused.expect_error(403, "QUOTA_EXCEEDED");
    let details = &refused.json["error"]["details"];
    let expected = json!({ "metric": "requests", "used": 50_001, "limit": 50_000 });
    assert_eq!(*details, expected);
    assert!(world.received_requests().is_empty());
    assert!(meter.counted.lock().unwrap().is_empty());
    let iam = world.get("/api/v1/iam/api/auth/get-session").await;
    assert_eq!(iam.status, 200);
    // The fakes have no billing service, so a request that passes gets 503.
    assert_eq!(world.get("/api/v1/billing/plans").await.status, 503);
}

#[tokio::test]
async fn the_service_key_is_never_exhausted() {
    let (world, _) = exhausted_world();
    let request = anonymous("/api/v1/platforms/p-1");
    let request = request.header("authorization", &format!("Bearer {KEY}"));
    assert_eq!(world.send(request.build()).await.status, 200);
}
