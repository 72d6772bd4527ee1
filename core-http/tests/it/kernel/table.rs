//! Validation of the endpoint table of a service.

use core_domain::access::PublicScope;
use core_domain::kernel::{Caller, Result};
use core_domain::port::UnitOfWork;
use core_http::kernel::{Cx, Endpoint, Input, Output, ServiceError, get, post};
use http::Method;
use serde::{Deserialize, Serialize};

use super::rows::{nothing, of_rows, one, service};
use crate::world::{Api, bare_app};

#[tokio::test]
async fn a_contradictory_endpoint_table_is_refused() {
    let row = |path: &'static str, operation: &'static str| get(path, operation).reads(nothing);
    let refused = |rows: Vec<Endpoint>| service(bare_app().0, rows).unwrap_err();
    let twice = refused(vec![row("/api/v1/a", "a"), row("/api/v1/a", "b")]);
    assert!(matches!(twice, ServiceError::Duplicate(_)), "{twice}");
    let alias = get("/api/v1/b", "b").alias("/api/v1/a").reads(nothing);
    let alias = refused(vec![row("/api/v1/a", "a"), alias]);
    assert!(matches!(alias, ServiceError::Duplicate(_)), "{alias}");
    let same_name = refused(vec![row("/api/v1/a", "a"), row("/api/v1/b", "a")]);
    assert!(
        matches!(same_name, ServiceError::Operation("a")),
        "{same_name}"
    );
    let parameters = refused(vec![row("/api/v1/{a}", "a")]);
    assert!(
        matches!(parameters, ServiceError::Params("a")),
        "{parameters}"
    );
    assert!(
        service(
            bare_app().0,
            vec![row("/api/v1/a", "a"), row("/api/v1/b", "b")]
        )
        .is_ok()
    );
}

mod other {
    #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
    pub(super) struct Thing {
        pub(super) number: u32,
    }
}

#[derive(Deserialize, Serialize, schemars::JsonSchema)]
struct Thing {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

async fn takes_a_thing(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    input: Input<(), (), Thing>,
) -> Result<Output<Thing>> {
    Ok(Output::new(input.body))
}

async fn answers_another_thing(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input<(), (), Thing>,
) -> Result<Output<other::Thing>> {
    Ok(Output::new(other::Thing { number: 1 }))
}

async fn takes_other_things(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input<(), (), Vec<other::Thing>>,
) -> Result<()> {
    Ok(())
}

#[tokio::test]
async fn two_types_with_the_same_schema_name_cannot_be_described() {
    let thing = || post("/api/v1/a", "a").writes(takes_a_thing);
    assert!(of_rows(vec![thing()]).0.openapi().is_ok());
    let answered = vec![post("/api/v1/b", "b").writes(answers_another_thing)];
    let taken = vec![thing(), post("/api/v1/b", "b").writes(takes_other_things)];
    for rows in [answered, taken] {
        let api = of_rows(rows);
        let clash = api.0.openapi().unwrap_err();
        assert!(matches!(clash, ServiceError::Component(_)), "{clash}");
        let answer = api.get(&Caller::Anonymous, "/openapi.json").await;
        answer.expect_error(500, "INTERNAL_ERROR");
    }
}

#[test]
fn the_removed_prefix_distinguishes_routes_with_the_same_remaining_path() {
    let api = of_rows(vec![
        get("/api/v1/onboarding/{id}", "onboarding").reads(one),
        get("/api/v1/{id}", "platform").reads(one),
    ]);
    let found = |path: &str, prefix| {
        let row = api.0.find(&Method::GET, path, prefix);
        row.map(|row| row.operation())
    };
    assert_eq!(found("/x", Some("/api/v1/onboarding")), Some("onboarding"));
    assert_eq!(found("/x", None), Some("platform"));
    assert_eq!(found("/onboarding/x", None), Some("onboarding"));
}

async fn takes_text(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input<(), (), String>,
) -> Result<()> {
    Ok(())
}

/// Creates a service with an endpoint that takes a text body of at most `bytes` bytes.
pub(super) fn with_body_limit(bytes: usize) -> Api {
    let row = post("/api/v1/things", "make").body_limit(bytes);
    of_rows(vec![row.writes(takes_text)])
}
