//! The export of the audit log.

use core_domain::kernel::{Caller, JsonText};
use core_http::kernel::testing::Answer;
use core_http::kernel::{Body, ViaGateway, empty_body};
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::world::{World, audit_entry, entry_id, on_every_store, operator, owner};

on_every_store! { an_export_has_every_entry_once_oldest_first_in_both_formats }

const EXPORT: &str = "/api/v1/audit/export";

async fn export(world: &World, caller: &Caller, query: &str) -> Answer {
    world
        .registry
        .get(caller, &format!("{EXPORT}?{query}"))
        .await
}

fn lines(answer: &Answer) -> Vec<Value> {
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn an_export_has_every_entry_once_oldest_first_in_both_formats(world: World) {
    let entries: Vec<_> = (0..2_501)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.tick(10_000);
    let first = export(&world, &operator(), "").await.expect(200);
    assert_eq!(first.header("content-type"), "application/x-ndjson");
    assert_eq!(
        first.header("content-disposition"),
        "attachment; filename=\"audit.jsonl\""
    );
    let shown: Vec<Value> = entries
        .iter()
        .map(|e| serde_json::to_value(e).unwrap())
        .collect();
    assert_eq!(lines(&first), shown);
    let again = export(&world, &operator(), "format=jsonl&platformId=p-1").await;
    assert_eq!(
        again.bytes, first.bytes,
        "repeated exports have the same bytes"
    );

    let part = export(
        &world,
        &operator(),
        "from=2027-01-15T08:00:01Z&to=2027-01-15T08:00:02Z",
    )
    .await;
    assert_eq!(lines(&part), shown[3..6]);
    let none = export(&world, &operator(), "eventType=nothing")
        .await
        .expect(200);
    assert!(none.bytes.is_empty());

    let csv = export(
        &world,
        &operator(),
        "format=csv&to=2027-01-15T08:00:00.001Z",
    )
    .await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        csv.header("content-disposition"),
        "attachment; filename=\"audit.csv\""
    );
    let rows: Vec<_> = (0..3).map(|n| format!(
        "{},p-1,olga,user,thing.made,thing,thing-{n},2027-01-15T08:00:00.000Z,,\"{{\"\"n\"\":{n}}}\",\"{{\"\"requestId\"\":\"\"r\"\"}}\"\r\n",
        entry_id(n)
    )).collect();
    let header = "id,platformId,actorId,actorType,action,entityType,entityId,createdAt,before,after,metadata\r\n";
    assert_eq!(csv.bytes, format!("{header}{}", rows.concat()));
    assert_eq!(
        world.audit("audit.read").await.len(),
        5,
        "each read is recorded once"
    );
}

#[tokio::test]
async fn text_of_users_cannot_break_lines_or_inject_formulas() {
    let world = World::new();
    let mut odd = audit_entry(0, Some("p-1"), "thing.made");
    odd.entity_id = "=HYPERLINK(\"http://evil.test\")".to_owned();
    odd.after = Some(serde_json::from_str::<JsonText>("{\"a\":\r\n 1}").unwrap());
    world.write_entries(&[odd]).await;
    let jsonl = export(&world, &operator(), "").await.expect(200);
    assert_eq!(lines(&jsonl)[0]["after"], json!({ "a": 1 }));
    let csv = export(&world, &operator(), "format=csv").await.expect(200);
    let text = std::str::from_utf8(&csv.bytes).unwrap();
    assert!(
        text.contains(",\"'=HYPERLINK(\"\"http://evil.test\"\")\","),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2);
}

#[tokio::test]
async fn an_export_with_invalid_parameters_is_refused() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for bad in ["format=xml", "from=yesterday", "platformId=a%20b"] {
        export(&world, &owner(&platform), bad)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    let own = export(&world, &owner(&platform), "").await.expect(200);
    assert_eq!(lines(&own).len(), 1);
}

async fn start_export(world: &World) -> Response<Body> {
    let request = Request::get(EXPORT)
        .extension(ViaGateway)
        .extension(std::sync::Arc::new(operator()));
    world
        .registry
        .0
        .answer(request.body(empty_body()).unwrap())
        .await
}

#[tokio::test]
async fn pages_of_an_export_are_read_on_demand_and_a_failed_page_aborts_it() {
    let (world, faults) = World::faulty();
    let entries: Vec<_> = (0..2_500)
        .map(|n| audit_entry(n, None, "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.tick(10_000);
    let mut body = start_export(&world).await.into_body();
    // If more than one page were read ahead, the next frame would not fail.
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.iter().filter(|byte| **byte == b'\n').count(), 1_000);
    faults.fail_call(1);
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none());

    let mut body = start_export(&world).await.into_body();
    let mut pages = Vec::new();
    while let Some(frame) = body.frame().await {
        let page = frame.unwrap().into_data().unwrap();
        pages.push(page.iter().filter(|byte| **byte == b'\n').count());
    }
    assert_eq!(pages, [1_000, 1_000, 500]);
}
