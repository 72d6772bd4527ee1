//! Every row that creates something refuses it above a limit.

use std::collections::BTreeSet;

use core_domain::kernel::{Code, Limits};
use http::Method;

use super::fixture::{Case, every_row};
use super::samples::Least;

/// Rows that no limit refuses, and why nothing grows by them.
const WITHOUT_LIMIT: &[(&str, &[&str])] = &[];

/// Rows whose good request is not refused at once, and the test that refuses another one.
const BY_HAND: &[&str] = &[];

async fn is_refused(case: &Case) -> bool {
    let services = case.fixture.world.services_with(Limits::of(0));
    let name = case.service.0.name();
    let limited = services.iter().find(|api| api.0.name() == name).unwrap();
    let answer = Case::send_to(limited, &case.least(), &case.ask()).await;
    answer.status == 409 && (answer.json.is_null() || answer.code() == Code::LimitReached.as_str())
}

#[tokio::test]
async fn every_row_that_creates_refuses_above_its_limit_or_says_why_it_has_none() {
    let without: BTreeSet<&str> = WITHOUT_LIMIT
        .iter()
        .flat_map(|(_, rows)| *rows)
        .copied()
        .collect();
    let checked = every_row(async |case| {
        let creates = [Method::POST, Method::PUT].contains(case.row().method());
        let operates = [Least::Operator, Least::Service].contains(&case.sample.least);
        if !creates || operates || BY_HAND.contains(&case.name()) {
            return false;
        }
        let refused = is_refused(case).await;
        let expected = !without.contains(case.name());
        assert_eq!(refused, expected, "{}", case.name());
        true
    })
    .await;
    assert!(checked > 80, "{checked}");
}
