//! Requests that name records which do not exist, in the query or in the body.

use serde_json::json;

use super::fixture::{Case, TestRequest, for_each_endpoint};
use crate::world::operator;

/// An id that no record has.
const UNKNOWN_ID: &str = "0198c0de-0000-7000-8000-000000000000";

fn is_id_of_a_record(case: &Case, value: &str) -> bool {
    value.len() == UNKNOWN_ID.len() && case.fixture.ids.values().any(|id| id == value)
}

/// Returns the valid request once for each id in its query and its body, with an unknown id in its place.
fn requests_with_an_unknown_id(case: &Case) -> Vec<TestRequest> {
    let good = case.valid_request();
    let mut requests = Vec::new();
    for pair in good.query.split('&') {
        if let Some((name, value)) = pair.split_once('=')
            && is_id_of_a_record(case, value)
        {
            let mut request = good.clone();
            request.query = good.query.replace(pair, &format!("{name}={UNKNOWN_ID}"));
            requests.push(request);
        }
    }
    for (field, value) in good.body.as_object().into_iter().flatten() {
        if value
            .as_str()
            .is_some_and(|value| is_id_of_a_record(case, value))
        {
            requests.push(good.clone().with_field(field, Some(json!(UNKNOWN_ID))));
        }
    }
    requests
}

#[tokio::test]
async fn unknown_ids_in_queries_and_bodies_have_documented_responses() {
    let checked = for_each_endpoint(async |case: &Case| {
        let requests = requests_with_an_unknown_id(case);
        for request in &requests {
            for caller in [case.lowest_caller(), operator()] {
                // `send` asserts that the response is documented.
                let answer = case.send(&caller, request).await;
                let status = answer.status;
                assert!(!status.is_server_error(), "{}: {status}", case.name());
            }
        }
        !requests.is_empty()
    })
    .await;
    assert!(checked > 40, "{checked}");
}
