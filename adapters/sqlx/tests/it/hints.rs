//! Hints between processes.

use core_domain::port::JobHints;
use core_sqlx::Hints;
use core_storage::testing;

use crate::world::{TIMEOUT, pool};

async fn expect_hint(hints: &Hints) {
    let hinted = tokio::time::timeout(TIMEOUT, hints.wait_for_hint()).await;
    hinted.expect("a hint arrives");
}

#[tokio::test]
async fn a_hint_reaches_every_process_on_the_database() {
    let database = testing::postgres().await;
    let open = || Hints::open(&pool(&database.url, 1), "core_test");
    let (one, other) = (open(), open());
    // Returns after both have started to listen.
    expect_hint(&one).await;
    expect_hint(&other).await;
    for _ in 0..3 {
        one.notify().await;
        expect_hint(&other).await;
        expect_hint(&one).await;
    }
}

#[tokio::test]
async fn hints_pass_between_the_engines() {
    let database = testing::postgres().await;
    let config = core_storage::postgres::PostgresConfig::new(&*database.url, [7; 32]);
    let other = core_storage::postgres::Hints::open(&config, "core_test").unwrap();
    let hints = Hints::open(&pool(&database.url, 1), "core_test");
    expect_hint(&hints).await;
    let heard = || tokio::time::timeout(TIMEOUT, other.wait_for_hint());
    heard().await.expect("it listens");
    hints.notify().await;
    heard().await.expect("the hint arrives");
    expect_hint(&hints).await;
    other.notify().await;
    expect_hint(&hints).await;
}

#[tokio::test]
async fn a_listener_receives_a_hint_after_it_has_reconnected() {
    let database = testing::postgres().await;
    let hints = Hints::open(&pool(&database.url, 1), "core_test");
    expect_hint(&hints).await;
    database.end_connections().await;
    expect_hint(&hints).await;
    hints.notify().await;
    expect_hint(&hints).await;
}

#[tokio::test]
async fn a_pool_that_is_closed_ends_its_hints() {
    let database = testing::postgres().await;
    let pool = pool(&database.url, 2);
    let hints = Hints::open(&pool, "core_test");
    expect_hint(&hints).await;
    let closed = tokio::time::timeout(TIMEOUT, pool.close()).await;
    closed.expect("no connection of the pool is in use");
    drop(hints);
}
