use std::time::Duration;

use core_domain::kernel::Clock;

use super::world::{API_KEY, SESSION, Says, World, anonymous, config, owner, signed, yes};
use crate::gateway::Resolved;

const PATH: &str = "/api/v1/platforms";

fn suspended() -> Resolved {
    Resolved {
        suspended: true,
        ..owner()
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_remembered_for_a_second_and_no_longer() {
    let world = World::new();
    for _ in 0..3 {
        assert_eq!(world.get(PATH).await.status, 200);
    }
    assert_eq!(world.iam.asked(), 1);
    tokio::time::advance(Duration::from_millis(1_000)).await;
    world.get(PATH).await;
    assert_eq!(world.iam.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_announced_sign_out_takes_effect_at_once() {
    let world = World::new();
    assert_eq!(world.get(PATH).await.status, 200);
    world.iam.forget(SESSION);
    assert_eq!(world.get(PATH).await.status, 200);
    world.gateway.invalidate().all();
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_sign_out_that_is_not_announced_takes_effect_within_a_second() {
    let world = World::new();
    world.get(PATH).await;
    world.iam.forget(SESSION);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn announced_suspension_and_restoration_take_effect_at_once() {
    let world = World::new();
    assert_eq!(world.get(PATH).await.status, 200);
    world.iam.say(SESSION, yes(suspended()));
    world.gateway.invalidate().all();
    assert_eq!(world.get(PATH).await.status, 451);
    world.iam.say(SESSION, yes(owner()));
    world.gateway.invalidate().all();
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_asked_for_before_an_announcement_is_not_used_after_it() {
    let world = World::new();
    // The first request has its answer in hand, and not yet given it to the cache, when the suspension is announced.
    let first = world.get(PATH);
    let mut first = std::pin::pin!(first);
    assert!(futures_util::poll!(&mut first).is_pending());
    world.iam.say(SESSION, yes(suspended()));
    world.gateway.invalidate().all();
    assert_eq!(world.get(PATH).await.status, 451);
    assert_eq!(first.await.status, 200);
    assert_eq!(world.get(PATH).await.status, 451);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_remembered_beyond_the_end_of_the_session() {
    let world = World::new();
    let ends = world.clock.now().plus(Duration::from_millis(300));
    world.iam.say(
        SESSION,
        yes(Resolved {
            expires_at: Some(ends),
            ..owner()
        }),
    );
    assert_eq!(world.get(PATH).await.status, 200);
    world.clock.advance(Duration::from_millis(300));
    assert_eq!(world.get(PATH).await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn many_requests_with_one_token_ask_once() {
    let world = World::new();
    let requests = (0..20).map(|_| world.get(PATH));
    let answers = futures_util::future::join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(world.iam.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_remembered_and_a_failure_is_not() {
    let world = World::new();
    for _ in 0..2 {
        let wrong = anonymous(PATH).header("authorization", "Bearer wrong");
        assert_eq!(world.send(wrong.build()).await.status, 401);
    }
    assert_eq!(world.iam.asked(), 1);
    world.iam.say(SESSION, Says::Down);
    assert_eq!(world.get(PATH).await.status, 503);
    world.iam.say(SESSION, yes(owner()));
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn the_same_text_as_bearer_and_as_api_key_is_asked_for_twice() {
    let world = World::new();
    world
        .send(anonymous(PATH).header("x-api-key", API_KEY).build())
        .await;
    let bearer = anonymous(PATH).header("authorization", &format!("Bearer {API_KEY}"));
    world.send(bearer.build()).await;
    assert_eq!(world.iam.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_no_time_asks_every_time() {
    let mut config = config();
    config.session_cache = Duration::ZERO;
    let world = World::with(config);
    for _ in 0..3 {
        assert_eq!(world.send(signed(PATH).build()).await.status, 200);
    }
    assert_eq!(world.iam.asked(), 3);
}
