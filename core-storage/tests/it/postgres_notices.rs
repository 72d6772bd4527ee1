//! Notices between processes, as notifications of a Postgres database.

use std::fmt::Display;
use std::time::Duration;

use core_domain::kernel::{Effect, Effects, JobId, Notice, ProcessName, SessionId};
use core_domain::port::Notices;
use core_domain::testing::SeededEntropy;
use core_storage::postgres::{PostgresConfig, PostgresNotices};
use core_storage::testing::{self, TestDatabase};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

fn open(database: &TestDatabase, schema: Option<&str>, process: u64) -> PostgresNotices {
    let mut config = PostgresConfig::new(&*database.url, [7; 32]);
    config.schema = schema.map(str::to_owned);
    let process = ProcessName::generate(&SeededEntropy::new(process));
    PostgresNotices::open(&config, process).expect("the URL is valid")
}

/// Opens the channels of two processes, and waits until both listen.
async fn two(database: &TestDatabase, schema: Option<&str>) -> [PostgresNotices; 2] {
    let both = [open(database, schema, 1), open(database, schema, 2)];
    for one in &both {
        expect_missed(one).await;
    }
    both
}

fn session(id: impl Display) -> Effect {
    Effect::SessionChanged(SessionId::parse(&id.to_string()).unwrap())
}

fn effects(effects: impl IntoIterator<Item = Effect>) -> Effects {
    let mut set = Effects::default();
    effects.into_iter().for_each(|effect| set.add(effect));
    set
}

async fn receive(notices: &dyn Notices) -> Notice {
    let received = tokio::time::timeout(TIMEOUT, notices.receive());
    received.await.expect("a notice arrives")
}

async fn expect_effect(notices: &dyn Notices, effect: Effect) {
    assert_eq!(receive(notices).await, Notice::Effect(effect));
}

/// Expects the notice that a channel reports when it has started to listen.
async fn expect_missed(notices: &dyn Notices) {
    assert_eq!(receive(notices).await, Notice::Missed);
}

#[tokio::test]
async fn effects_arrive_at_the_other_process_and_not_at_their_own() {
    let database = testing::postgres().await;
    let [one, other] = two(&database, None).await;
    for round in 0..3 {
        one.publish(&effects([session(round), Effect::JobReady]));
        expect_effect(&other, session(round)).await;
        other.publish(&effects([session(round + 10)]));
        // The process would have received its own notice first.
        expect_effect(&one, session(round + 10)).await;
    }
    let job = Effect::JobProgressed(JobId::parse("job-1").unwrap());
    one.publish(&effects([job.clone(), Effect::AuditSealed]));
    expect_effect(&other, job).await;
    expect_effect(&other, Effect::AuditSealed).await;
}

#[tokio::test]
async fn many_effects_are_split_into_payloads_and_too_many_become_one_notice() {
    let database = testing::postgres().await;
    let [one, other] = two(&database, None).await;
    let long = "x".repeat(100);
    let many: Vec<Effect> = (0..1_000).map(|n| session(format!("{long}{n}"))).collect();
    one.publish(&effects(many.clone()));
    let mut received = Effects::default();
    for _ in &many {
        match receive(&other).await {
            Notice::Effect(effect) => received.add(effect),
            Notice::Missed => panic!("no notice was missed"),
        }
    }
    assert_eq!(received, effects(many));
    one.publish(&effects((0..3_000).map(session)));
    expect_missed(&other).await;
    one.publish(&effects([session("after")]));
    expect_effect(&other, session("after")).await;
}

#[tokio::test]
async fn a_lost_connection_is_reported_when_it_is_open_again() {
    let database = testing::postgres().await;
    let [one, other] = two(&database, None).await;
    one.publish(&effects([session("before")]));
    expect_effect(&other, session("before")).await;
    database.end_connections().await;
    expect_missed(&one).await;
    expect_missed(&other).await;
    // The connection that sends was also lost. Its notices are replaced.
    one.publish(&effects([session("lost")]));
    expect_missed(&other).await;
    one.publish(&effects([session("after")]));
    expect_effect(&other, session("after")).await;
}

#[tokio::test]
async fn installations_in_other_schemas_of_the_database_receive_nothing() {
    let database = testing::postgres().await;
    let [one, other] = two(&database, None).await;
    let long = "x".repeat(63);
    for schema in ["core_one", &long] {
        let [stranger, friend] = two(&database, Some(schema)).await;
        one.publish(&effects([session("ours")]));
        expect_effect(&other, session("ours")).await;
        friend.publish(&effects([session("theirs")]));
        expect_effect(&stranger, session("theirs")).await;
    }
    // The default schema of a connection has one channel, whether it is named or not.
    let named = open(&database, Some("public"), 3);
    expect_missed(&named).await;
    named.publish(&effects([session("last")]));
    expect_effect(&one, session("last")).await;
    expect_effect(&other, session("last")).await;
}
