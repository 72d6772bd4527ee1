//! Tests of the rate limiter with the limits of Stripe.

use core_domain::port::Payments;
use core_stripe_fake::{RateLimit, Settings};

use crate::world::World;

#[tokio::test]
async fn many_jobs_at_once_exceed_no_limit_of_stripe() {
    let limit = RateLimit {
        account: 400,
        endpoint: 100,
    };
    let settings = Settings {
        rate_limit: Some(limit),
        ..Settings::default()
    };
    let world = World::with(settings, |options| {
        options.requests = limit.account;
        options.endpoint_requests = limit.endpoint;
    })
    .await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..150 {
        let jobs = world.stripe.for_jobs();
        tasks.spawn(async move { jobs.method(&format!("pm_{number}")).await });
    }
    for outcome in tasks.join_all().await {
        assert_eq!(outcome.unwrap(), None);
    }
    let requests = world.fake.requests();
    assert_eq!(requests.len(), 150);
    assert!(requests.iter().all(|request| request.status == Some(404)));
}
