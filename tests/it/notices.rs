//! Several nodes on one Postgres database: changes at one node apply at the others at once, and with Redis the nodes
//! share rate limits.

use std::time::{Duration, Instant};

use core_domain::kernel::{Clock, Timestamp};
use core_http::gateway::Gateway;
use core_redis::testing::RedisServer;
use core_suite::{RateKind, Settings, Suite, SuiteBuilder, SystemClock};
use http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::{Backend, Call, Fresh, Installation, PlatformMember, SERVICE_KEY, sign_up};

/// How long a gateway uses a session without asking IAM again.
const SESSION_CACHE: Duration = Duration::from_secs(5);
/// The interval at which an event stream reads the store without a signal.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A time limit that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Two nodes on one database.
struct Nodes {
    first: Suite,
    second: Suite,
    _database: Fresh,
}

impl Nodes {
    /// Builds the nodes. Only the first one runs jobs.
    async fn new(backend: Backend, change: impl Fn(SuiteBuilder) -> SuiteBuilder) -> Self {
        let database = Fresh::on(backend).await;
        let builder = database.builder.clone().secret([7; 32]).settings(|s| {
            s.gateway.session_cache = SESSION_CACHE;
            // A busy machine does not reach it.
            s.gateway.limiter_timeout = Duration::from_secs(20);
            set_rate(s, RateKind::Client, 1_000_000);
        });
        let builder = change(builder);
        Self {
            first: builder.clone().build().await.unwrap(),
            second: builder.worker_slots(0).build().await.unwrap(),
            _database: database,
        }
    }

    async fn shutdown(self) {
        self.first.shutdown().await;
        self.second.shutdown().await;
    }
}

fn set_rate(settings: &mut Settings, kind: RateKind, quota: u32) {
    let rates = &mut settings.gateway.rates;
    rates.set(kind, quota, Duration::from_secs(60)).unwrap();
}

/// Lets tests ask often.
fn without_limits(builder: SuiteBuilder) -> SuiteBuilder {
    builder.settings(|s| set_rate(s, RateKind::Default, 1_000_000))
}

/// Sends requests until one has this status. Panics if that takes as long as the cache of sessions.
async fn until_status(node: &Suite, caller: &PlatformMember, status: u16) {
    let began = Instant::now();
    while node.get(&caller.token, &caller.at("")).await.status != status {
        assert!(began.elapsed() < SESSION_CACHE, "the cache expires by now");
        tokio::task::yield_now().await;
    }
    assert!(
        began.elapsed() < SESSION_CACHE,
        "the cache may have expired"
    );
}

async fn sign_out(node: &Suite, caller: &PlatformMember) {
    let call = Call::post("/api/auth/sign-out", &json!({})).bearer(&caller.token);
    let _ = node.send("iam", call).await.expect(200);
}

/// Opens a stream of server-sent events.
async fn open_stream(
    node: &Suite,
    caller: &PlatformMember,
    path: &str,
) -> Response<core_suite::Body> {
    let call = Call::get(path).bearer(&caller.token);
    let call = call.header("accept", "text/event-stream");
    let request = call.header("host", "suite.test").at("");
    let gateway: Gateway = node.gateway();
    let response = gateway.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

/// Changes at the first node apply at the second one. The first change of a kind could be covered by the notice with
/// which the second node begins to listen, so there are two.
async fn changes_apply_at_the_other_node(nodes: Nodes) {
    for slug in ["engines", "motors"] {
        let ada = sign_up(&nodes.first, slug, "Ada").await;
        let _ = nodes.second.get(&ada.token, &ada.at("")).await.expect(200);
        for (change, status) in [("/suspend", 451), ("/restore", 200)] {
            let body = json!({ "reason": "late" });
            let path = ada.at(change);
            let _ = nodes.first.post(SERVICE_KEY, &path, body).await.expect(200);
            until_status(&nodes.second, &ada, status).await;
        }
        sign_out(&nodes.first, &ada).await;
        until_status(&nodes.second, &ada, 401).await;
    }
    streams_end_with_their_sessions(&nodes).await;
    job_events_arrive_promptly(&nodes).await;
    nodes.shutdown().await;
}

/// Without notices, no stream would end before its first poll.
async fn streams_end_with_their_sessions(nodes: &Nodes) {
    let mut times = Vec::new();
    for slug in ["stream-1", "stream-2", "stream-3"] {
        let ada = sign_up(&nodes.first, slug, "Ada").await;
        let opened_at = Instant::now();
        let path = "/api/v1/platforms/api/v1/events";
        let mut stream = open_stream(&nodes.second, &ada, path).await.into_body();
        let end = async { while stream.frame().await.is_some() {} };
        let end = tokio::time::timeout(TIMEOUT, end);
        let (ended, ()) = tokio::join!(end, sign_out(&nodes.first, &ada));
        ended.unwrap();
        times.push(opened_at.elapsed());
    }
    // On a busy machine one of them can be slow.
    assert!(times.iter().any(|time| *time < POLL_INTERVAL), "{times:?}");
}

/// Follows a job of the first node at the second one. Without notices the second node would find an event after half a
/// second on average.
async fn job_events_arrive_promptly(nodes: &Nodes) {
    let ada = sign_up(&nodes.first, "jobs", "Ada").await;
    let job = ada.job(&nodes.second).await;
    let path = format!("/api/v1/provisioning/jobs/{job}/events");
    let mut stream = open_stream(&nodes.second, &ada, &path).await.into_body();
    let mut delays = Vec::new();
    while let Some(frame) = stream.frame().await {
        let text = frame.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: "));
        let Some(data) = data else { continue };
        let event: Value = serde_json::from_str(data).unwrap();
        let written_at = event["at"].as_str().unwrap();
        let written_at = Timestamp::parse_rfc3339(written_at).unwrap();
        delays.push(SystemClock.now().since(written_at));
    }
    delays.sort_unstable();
    let median = delays[delays.len() / 2];
    assert!(median < Duration::from_millis(250), "{delays:?}");
}

/// Slows the jobs of the first node down, so that their events are apart.
fn slow_jobs(builder: SuiteBuilder) -> SuiteBuilder {
    without_limits(builder).local_latency(Duration::from_millis(70))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_apply_at_the_other_node_with_notices_of_postgres() {
    let nodes = Nodes::new(Backend::Postgres, slow_jobs).await;
    changes_apply_at_the_other_node(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_apply_at_the_other_node_with_notices_of_a_pool_of_sqlx() {
    let nodes = Nodes::new(Backend::Sqlx, slow_jobs).await;
    changes_apply_at_the_other_node(nodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_apply_at_the_other_node_with_notices_of_redis_over_postgres() {
    let server = RedisServer::start(&[]).await.unwrap();
    let nodes = |builder| slow_jobs(builder).redis(server.url());
    let nodes = Nodes::new(Backend::Postgres, nodes).await;
    changes_apply_at_the_other_node(nodes).await;
}

/// Sends a request. Returns the number of further requests that the limit of its path allows; `None` if it is refused.
async fn remaining(node: &Suite, caller: &PlatformMember, path: &str) -> Option<u32> {
    let answer = node.get(&caller.token, &caller.at(path)).await;
    if answer.status == 429 {
        return None;
    }
    let limit = answer.header("ratelimit");
    let rest = limit.strip_prefix("\"default\";r=").unwrap();
    Some(rest.split(';').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_on_postgres_share_limits_while_redis_runs_and_count_alone_without_it() {
    let server = RedisServer::start(&[]).await.unwrap();
    let nodes = Nodes::new(Backend::Postgres, |builder| builder.redis(server.url())).await;
    let (first, second) = (&nodes.first, &nodes.second);
    let ada = &sign_up(first, "engines", "Ada").await;
    for number in (0..100).rev() {
        let node = if number % 2 == 0 { first } else { second };
        assert_eq!(remaining(node, ada, "/resources").await, Some(number));
    }
    for node in [first, second, first] {
        assert_eq!(remaining(node, ada, "/resources").await, None);
    }

    server.stop().await.unwrap();
    for node in [first, second] {
        for number in (0..100).rev() {
            assert_eq!(remaining(node, ada, "/resources").await, Some(number));
        }
        assert_eq!(remaining(node, ada, "/resources").await, None);
    }

    server.start_again().await.unwrap();
    let shared = async {
        // A limiter that has failed is tried again after a second.
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        for path in 0.. {
            ticks.tick().await;
            let path = format!("/entities/{path}");
            let mut counts = Vec::new();
            for node in [first, second, first, second] {
                counts.extend(remaining(node, ada, &path).await);
            }
            if counts == [99, 98, 97, 96] {
                return;
            }
        }
    };
    let shared = tokio::time::timeout(TIMEOUT, shared).await;
    shared.unwrap();
    nodes.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_on_postgres_start_without_redis_and_use_it_later() {
    let server = RedisServer::start(&[]).await.unwrap();
    server.stop().await.unwrap();
    let with_redis = |builder| without_limits(builder).redis(server.url());
    let nodes = Nodes::new(Backend::Postgres, with_redis).await;
    let ada = sign_up(&nodes.first, "engines", "Ada").await;
    let _ = nodes.second.get(&ada.token, &ada.at("")).await.expect(200);
    server.start_again().await.unwrap();
    // The subscription of the second node voids its cache, whether it comes before or after the sign-out.
    sign_out(&nodes.first, &ada).await;
    until_status(&nodes.second, &ada, 401).await;
    nodes.shutdown().await;
}
