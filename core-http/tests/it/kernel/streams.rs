//! The limit on concurrent event streams of a caller.

use core_domain::kernel::Caller;
use serde_json::Value;

use crate::world::{Answer, Follower, World, admin, api_key, api_key_named, owner};

const EVENTS: &str = "/api/v1/events";

/// The default limit of concurrent event streams per caller.
const LIMIT: usize = 16;

async fn streams(world: &World, caller: &Caller, count: usize) -> Vec<Follower> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        streams.push(Follower::open(&world.registry, caller, EVENTS, None, &[]).await);
    }
    streams
}

#[track_caller]
fn assert_refused(answer: Answer) {
    let refused = answer.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.json["error"]["details"]["limit"], LIMIT);
    assert_eq!(refused.header("retry-after"), "5");
}

#[tokio::test]
async fn the_17th_event_stream_of_a_caller_is_429_across_all_services() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let job = format!("/api/v1/provision/jobs/{job}/events");
    let accept = [("accept", "text/event-stream")];
    let caller = owner(&platform);
    let mut open = streams(&world, &caller, LIMIT / 2).await;
    for _ in LIMIT / 2..LIMIT {
        open.push(Follower::open(&world.provisioning, &caller, &job, None, &[]).await);
    }
    let (registry, provisioning) = (&world.registry, &world.provisioning);
    assert_refused(registry.get(&caller, EVENTS).await);
    let refused = provisioning.send(&caller, "GET", &job, &accept, Value::Null);
    assert_refused(refused.await);
    // A request that is not a stream succeeds, and so does the stream of another caller.
    let _ = provisioning.get(&caller, &job).await.expect(200);
    let _other = streams(&world, &admin(&platform), 1).await;
    // A closed stream frees its slot.
    open.pop();
    let _again = streams(&world, &caller, 1).await;
    assert_refused(registry.get(&caller, EVENTS).await);
}

#[tokio::test]
async fn the_api_keys_of_an_organization_share_its_event_streams() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let _open = streams(&world, &api_key(&platform), LIMIT).await;
    let other = api_key_named("key-2", &platform);
    assert_refused(world.registry.get(&other, EVENTS).await);
}
