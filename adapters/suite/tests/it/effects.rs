//! The effects of a commit in the same process. Time is paused in most of these tests, so polling wakes nothing.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::kernel::{Effect, Effects, Notice, PlatformId};
use core_domain::port::{AnnouncingStore, CommitListener, Mode, Notices, Store};
use core_domain::testing::{MemoryInfrastructure, MockOutlet, SeededEntropy};
use core_suite::SuiteBuilder;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep};

use crate::store::{Commits, LossyStore};
use crate::world::{SERVICE_KEY, World, json_body, request, send};

/// Lets all other tasks run until the condition holds. Asserts that no time passes.
async fn at_once(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    for _ in 0..100_000 {
        if is_so() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(is_so());
    assert_eq!(Instant::now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_queued_job_starts_before_the_worker_polls() {
    let provider = MemoryInfrastructure::default();
    let world = World::at(provider.clone()).await;
    let platform = world.platform("shop").await;
    sleep(Duration::from_millis(10)).await;
    assert!(provider.names().is_empty());
    let body =
        json!({ "platformId": platform, "planTier": "starter", "billingEmail": "ada@example.org" });
    let path = "/api/v1/provisioning/platform";
    let queued = world.call("POST", path, SERVICE_KEY, body).await;
    let _ = queued.expect(202);
    at_once(|| !provider.names().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_reaches_the_outlet_before_the_relay_polls() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut outlet = MockOutlet::new();
    let keeps = Arc::clone(&heard);
    outlet.expect_deliver().returning(move |message| {
        keeps.lock().unwrap().push(message.payload.clone());
        Ok(())
    });
    let world = World::with(|builder| builder.outlet(Arc::new(outlet))).await;
    let platform = world.platform("shop").await;
    sleep(Duration::from_millis(10)).await;
    heard.lock().unwrap().clear();
    let path = format!("/api/v1/platforms/{platform}/suspend");
    let suspended = world.call("POST", &path, SERVICE_KEY, json!({ "reason": "late" }));
    let _ = suspended.await.expect(200);
    at_once(|| !heard.lock().unwrap().is_empty()).await;
    assert_eq!(heard.lock().unwrap()[0]["platformId"], json!(platform));
}

#[tokio::test]
async fn an_ended_session_is_refused_at_once_even_if_the_outcome_of_the_commit_is_unknown() {
    for (commits, status, after) in [
        (Commits::Applied, 200, 401),
        (Commits::AppliedButAnswerLost, 503, 401),
        (Commits::Aborted, 503, 404),
    ] {
        let store = LossyStore::new();
        let world = World::with(|builder| builder.store(Arc::new(store.clone()))).await;
        let token = world.signed_up().await;
        // From here on the gateway has cached the session.
        let get = || world.call("GET", "/api/v1/platforms/none", &token, Value::Null);
        let _ = get().await.expect(404);
        store.commits(commits);
        let request = json_body(request("POST", "/api/auth/sign-out", &token), &json!({}));
        let _ = send(world.suite.iam(), request).await.expect(status);
        store.commits(Commits::Applied);
        let _ = get().await.expect(after);
    }
}

#[tokio::test]
async fn line_25_a_platform_status_takes_effect_on_cached_sessions_at_once() {
    let world = World::new().await;
    let token = world.signed_up_with_platform("shop").await;
    let listed = world.call("GET", "/api/v1/platforms", &token, Value::Null);
    let platform = &listed.await.expect(200).json["data"][0]["id"];
    let get = || world.call("GET", "/api/v1/platforms/none", &token, Value::Null);
    for service in [world.suite.iam(), world.suite.provisioning()] {
        for (status, expected) in [("suspended", 451), ("active", 404)] {
            let body = json!({ "platformId": platform, "status": status });
            let request = request("POST", "/internal/platform-status", SERVICE_KEY);
            let _ = send(service.clone(), json_body(request, &body))
                .await
                .expect(200);
            // The first request fills the cache again.
            for _ in 0..2 {
                let _ = get().await.expect(expected);
            }
        }
    }
}

/// A channel of notices that records what is sent, and receives what a test sends.
#[derive(Debug)]
struct Channel {
    sent: Mutex<Vec<Effects>>,
    received: tokio::sync::Mutex<mpsc::UnboundedReceiver<Notice>>,
}

#[async_trait]
impl Notices for Channel {
    fn publish(&self, effects: &Effects) {
        self.sent.lock().unwrap().push(effects.clone());
    }

    async fn receive(&self) -> Notice {
        let notice = self.received.lock().await.recv().await;
        notice.unwrap()
    }
}

#[tokio::test]
async fn effects_are_sent_to_the_channel_of_the_builder_and_its_notices_void_caches() {
    let (sender, received) = mpsc::unbounded_channel();
    let channel = Arc::new(Channel {
        sent: Mutex::default(),
        received: tokio::sync::Mutex::new(received),
    });
    let store = LossyStore::new();
    let node = |builder: SuiteBuilder, seed| {
        let builder = builder.store(Arc::new(store.clone())).secret([7; 32]);
        let builder = builder.entropy(Arc::new(SeededEntropy::new(seed)));
        builder.settings(|s| s.gateway.session_cache = Duration::from_secs(5))
    };
    let world = World::with(|builder| node(builder, 1).notices(Arc::clone(&channel) as _)).await;
    let token = world.signed_up().await;
    let get = || world.call("GET", "/api/v1/platforms/none", &token, Value::Null);
    let _ = get().await.expect(404);

    // Another node with the same store signs the caller out.
    let other = World::with(|builder| node(builder, 2)).await;
    let request = json_body(request("POST", "/api/auth/sign-out", &token), &json!({}));
    let _ = send(other.suite.iam(), request).await.expect(200);
    let _ = get().await.expect(404);
    sender.send(Notice::Missed).unwrap();
    while get().await.status != 401 {
        tokio::task::yield_now().await;
    }

    channel.sent.lock().unwrap().clear();
    let platform = world.platform("shop").await;
    let path = format!("/api/v1/platforms/{platform}/suspend");
    let suspended = world.call("POST", &path, SERVICE_KEY, json!({ "reason": "late" }));
    let _ = suspended.await.expect(200);
    let suspended = Effect::PlatformAccessChanged(PlatformId::parse(&platform).unwrap());
    let sent = channel.sent.lock().unwrap();
    assert!(sent.iter().any(|effects| effects.contains(&suspended)));
}

/// A listener that records the effects after each commit, and those announced before it.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<Effects>>, Mutex<Vec<Effects>>);

impl CommitListener for Listener {
    fn on_committed(&self, effects: &Effects) {
        assert_eq!(self.1.lock().unwrap().last(), Some(effects));
        self.0.lock().unwrap().push(effects.clone());
    }

    fn on_committing(&self, effects: &Effects) {
        assert!(
            self.0.lock().unwrap().is_empty(),
            "announced before the commit"
        );
        self.1.lock().unwrap().push(effects.clone());
    }
}

#[tokio::test]
async fn the_collected_effects_are_announced_only_if_the_commit_may_have_been_applied() {
    let suspended = Effect::PlatformAccessChanged(PlatformId::parse("p-1").unwrap());
    let some = [Effect::JobReady, suspended, Effect::JobReady];
    for (mode, commits, collected, announced) in [
        (Mode::Write, Commits::Applied, &some[..], true),
        (Mode::Write, Commits::Applied, &[], false),
        (Mode::Write, Commits::AppliedButAnswerLost, &some, true),
        (Mode::Write, Commits::AppliedButAnswerLost, &[], false),
        (Mode::Write, Commits::Aborted, &some, false),
        (Mode::Read, Commits::Applied, &some, false),
    ] {
        let (listener, store) = (Arc::new(Listener::default()), LossyStore::new());
        store.commits(commits);
        let store = AnnouncingStore::new(Arc::new(store), listener.clone());
        let mut unit = store.begin(mode).await.unwrap();
        for effect in collected {
            unit.effects().add(effect.clone());
        }
        let expected = unit.effects().clone();
        let ended = unit.commit().await;
        assert_eq!(ended.is_ok(), commits == Commits::Applied);
        let heard = listener.0.lock().unwrap();
        let foretold = mode == Mode::Write && !collected.is_empty();
        assert_eq!(listener.1.lock().unwrap().len(), usize::from(foretold));
        let expected = if announced { vec![expected] } else { vec![] };
        assert_eq!(*heard, expected, "{mode:?} {commits:?} {collected:?}");
    }
    let (listener, store) = (Arc::new(Listener::default()), LossyStore::new());
    let store = AnnouncingStore::new(Arc::new(store), listener.clone());
    let mut unit = store.begin(Mode::Write).await.unwrap();
    unit.effects().add(Effect::JobReady);
    unit.rollback().await;
    assert!(listener.0.lock().unwrap().is_empty());
    assert!(listener.1.lock().unwrap().is_empty());
}
