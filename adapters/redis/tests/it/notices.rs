//! Notices between processes.

use core_domain::kernel::{Effect, Effects, JobId, Notice, SessionId};
use core_domain::port::Notices;
use core_redis::{Redis, RedisConfig, RedisNotices};

use crate::world::{TIMEOUT, config, connect, notices, server};

fn session(id: &str) -> Effect {
    Effect::SessionChanged(SessionId::parse(id).unwrap())
}

fn effects(effects: impl IntoIterator<Item = Effect>) -> Effects {
    let mut set = Effects::default();
    effects.into_iter().for_each(|effect| set.add(effect));
    set
}

async fn receive(notices: &RedisNotices) -> Notice {
    let received = tokio::time::timeout(TIMEOUT, notices.receive());
    received.await.expect("a notice arrives")
}

/// Expects this effect next.
async fn expect(notices: &RedisNotices, effect: &Effect) {
    assert_eq!(receive(notices).await, Notice::Effect(effect.clone()));
}

/// Waits for a notice that others were missed. Earlier notices are dropped.
async fn expect_missed(notices: &RedisNotices) {
    while receive(notices).await != Notice::Missed {}
}

/// Opens the channels of two processes, and waits until both have subscribed.
async fn two(redis: &Redis) -> [RedisNotices; 2] {
    let both = [notices(redis, 1), notices(redis, 2)];
    for one in &both {
        assert_eq!(receive(one).await, Notice::Missed);
    }
    both
}

#[tokio::test]
async fn effects_arrive_at_the_other_process_and_not_at_their_own() {
    let server = server().await;
    let [one, other] = two(&connect(server.url()).await).await;
    for round in 0..3 {
        let (first, second) = (
            session(&format!("a-{round}")),
            session(&format!("b-{round}")),
        );
        one.publish(&effects([first.clone(), Effect::JobReady]));
        expect(&other, &first).await;
        other.publish(&effects([second.clone()]));
        // The process would have received its own notice first.
        expect(&one, &second).await;
    }
    let job = Effect::JobProgressed(JobId::parse("job-1").unwrap());
    one.publish(&effects([job.clone(), Effect::AuditSealed, session("c")]));
    let received = effects([
        effect_of(receive(&other).await),
        effect_of(receive(&other).await),
        effect_of(receive(&other).await),
    ]);
    assert_eq!(received, effects([job, Effect::AuditSealed, session("c")]));
}

fn effect_of(notice: Notice) -> Effect {
    match notice {
        Notice::Effect(effect) => effect,
        Notice::Missed => panic!("no notice was missed"),
    }
}

#[tokio::test]
async fn too_many_effects_become_one_notice() {
    let server = server().await;
    let [one, other] = two(&connect(server.url()).await).await;
    one.publish(&effects(
        (0..3_000).map(|number| session(&number.to_string())),
    ));
    assert_eq!(receive(&other).await, Notice::Missed);
    one.publish(&effects([session("after")]));
    expect(&other, &session("after")).await;
}

#[tokio::test]
async fn lost_notices_are_reported_after_the_server_is_back() {
    let server = server().await;
    let redis = connect(server.url()).await;
    let [one, other] = two(&redis).await;
    server.stop().await.unwrap();
    one.publish(&effects([session("lost")]));
    server.start_again().await.unwrap();
    for notices in [&one, &other] {
        assert_eq!(receive(notices).await, Notice::Missed);
    }
    // The lost notice is replaced, and may arrive before the subscription.
    assert!(redis.wait_until_connected(TIMEOUT).await);
    one.publish(&effects([session("after")]));
    while receive(&other).await != Notice::Effect(session("after")) {}
}

#[tokio::test]
async fn a_lost_subscription_alone_is_reported() {
    let server = server().await;
    let [one, other] = two(&connect(server.url()).await).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub");
    kill.exec_async(&mut admin).await.unwrap();
    expect_missed(&one).await;
    expect_missed(&other).await;
    one.publish(&effects([session("after")]));
    expect(&other, &session("after")).await;
}

#[tokio::test]
async fn installations_with_another_prefix_or_database_receive_nothing() {
    let server = server().await;
    let [one, other] = two(&connect(server.url()).await).await;
    let elsewhere = connect(format!("{}/1", server.url())).await;
    let mut prefixed: RedisConfig = config(server.url());
    prefixed.options.key_prefix = "other:".to_owned();
    let prefixed = Redis::open(prefixed).unwrap();
    for stranger in [&elsewhere, &prefixed] {
        let [stranger, friend] = two(stranger).await;
        one.publish(&effects([session("ours")]));
        expect(&other, &session("ours")).await;
        friend.publish(&effects([session("theirs")]));
        expect(&stranger, &session("theirs")).await;
    }
    other.publish(&effects([session("last")]));
    expect(&one, &session("last")).await;
}
