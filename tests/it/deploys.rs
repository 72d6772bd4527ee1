//! Concurrent deployments, on every store.

use std::collections::BTreeSet;

use core_http::kernel::testing::Answer;
use core_suite::Suite;
use futures_util::future::join_all;

use crate::world::{Fresh, PlatformMember, on_every_store, sign_up, site_archive};

const AT_ONCE: usize = 10;

on_every_store! { Fresh: concurrent_equal_deployments_create_one_deployment }

async fn at_once(suite: &Suite, person: &PlatformMember, headers: &[(&str, &str)]) -> Vec<Answer> {
    let mut call = person.deployment(site_archive());
    for (name, value) in headers {
        call = call.header(name, *value);
    }
    let running = (0..AT_ONCE).map(|_| {
        let (call, gateway) = (call.clone(), suite.gateway());
        tokio::spawn(async move { call.to(gateway).await })
    });
    let answers = join_all(running).await.into_iter();
    answers.map(Result::unwrap).collect()
}

fn one_is_new(answers: &[Answer]) {
    let statuses = answers.iter().map(|answer| answer.status.as_u16());
    let mut statuses: Vec<u16> = statuses.collect();
    statuses.sort_unstable();
    let mut expected = vec![200; AT_ONCE - 1];
    expected.push(202);
    assert_eq!(statuses, expected);
    let ids = answers.iter().map(|answer| answer.text("deploymentId"));
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
}

async fn concurrent_equal_deployments_create_one_deployment(fresh: Fresh) {
    let suite = fresh.suite().await;
    let person = sign_up(&suite, "engines", "Analytical Engines").await;
    let (first, second) = (("x-core-deploy-branch", "a"), ("x-core-deploy-branch", "b"));
    let keyed = [first, ("idempotency-key", "build-1")];
    one_is_new(&at_once(&suite, &person, &keyed).await);
    one_is_new(&at_once(&suite, &person, &[second]).await);
    suite.shutdown().await;
}
