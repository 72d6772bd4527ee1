//! Notices between processes.

use std::fmt::Display;

use core_domain::kernel::{Effect, Effects, Notice, ProcessName, SessionId};
use core_domain::port::Notices;
use core_domain::testing::SeededEntropy;
use core_sqlx::PoolNotices;
use core_storage::postgres::{PostgresConfig, PostgresNotices};
use core_storage::testing::{self, TestDatabase};

use crate::world::{TIMEOUT, pool};

fn process(number: u64) -> ProcessName {
    ProcessName::generate(&SeededEntropy::new(number))
}

async fn open(database: &TestDatabase, schema: Option<&str>, number: u64) -> PoolNotices {
    let (pool, schema) = (pool(&database.url, 1), schema.map(str::to_owned));
    let notices = PoolNotices::open(&pool, schema, process(number)).unwrap();
    expect_missed(&notices).await;
    notices
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
    let (one, other) = (
        open(&database, None, 1).await,
        open(&database, None, 2).await,
    );
    for round in 0..3 {
        one.publish(&effects([session(round), Effect::JobReady]));
        expect_effect(&other, session(round)).await;
        other.publish(&effects([session(round + 10)]));
        // The process would have received its own notice first.
        expect_effect(&one, session(round + 10)).await;
    }
    one.publish(&effects((0..3_000).map(session)));
    expect_missed(&other).await;
}

#[tokio::test]
async fn notices_pass_between_the_engines_in_the_same_schema() {
    let database = testing::postgres().await;
    for schema in [None, Some("core_one")] {
        let pooled = open(&database, schema, 1).await;
        let mut config = PostgresConfig::new(&*database.url, [7; 32]);
        config.schema = schema.map(str::to_owned);
        let other = PostgresNotices::open(&config, process(2)).unwrap();
        expect_missed(&other).await;
        pooled.publish(&effects([session("of-the-pool")]));
        expect_effect(&other, session("of-the-pool")).await;
        other.publish(&effects([session("of-the-other")]));
        expect_effect(&pooled, session("of-the-other")).await;
    }
}

#[tokio::test]
async fn a_lost_connection_is_reported_when_it_is_open_again() {
    let database = testing::postgres().await;
    let (one, other) = (
        open(&database, None, 1).await,
        open(&database, None, 2).await,
    );
    database.end_connections().await;
    expect_missed(&one).await;
    expect_missed(&other).await;
    one.publish(&effects([session("after")]));
    // The connection of the pool was also lost. Its notices are replaced.
    let received = receive(&other).await;
    let after = Notice::Effect(session("after"));
    assert!(
        received == after || received == Notice::Missed,
        "{received:?}"
    );
}

#[tokio::test]
async fn an_invalid_schema_is_refused_and_a_closed_pool_ends_the_channel() {
    let database = testing::postgres().await;
    let pool = pool(&database.url, 2);
    assert!(PoolNotices::open(&pool, Some("A".to_owned()), process(1)).is_err());
    let notices = PoolNotices::open(&pool, None, process(1)).unwrap();
    expect_missed(&notices).await;
    notices.publish(&effects([session("last")]));
    let closed = tokio::time::timeout(TIMEOUT, pool.close()).await;
    closed.expect("no connection of the pool is in use");
    drop(notices);
}
