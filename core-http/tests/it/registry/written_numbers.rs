//! Numbers in free-form values are returned as they were written, with any size and precision.

use std::sync::Arc;

use core_domain::kernel::Caller;
use core_http::kernel::{ViaGateway, bytes_body};
use http::Request;

use crate::world::{Answer, Api, World, on_every_store, operator, platform_path, resource_body};

on_every_store! { numbers_in_free_form_values_are_returned_as_they_were_written }

/// A value with the field order and the white space of a client.
const SENT: &str = r#"{ "c": 9007199254740993, "a": 18446744073709551616,
    "b": [0.1234567890123456789012, -0, 1.50, 1E2, 7.0, "1e2"] }"#;

/// The same value as it is stored.
const STORED: &str = r#"{"a":18446744073709551616,"b":[0.1234567890123456789012,-0,1.50,1E2,7.0,"1e2"],"c":9007199254740993}"#;

async fn send_json_text(
    api: &Api,
    caller: &Caller,
    to: (&str, &str),
    key: &str,
    body: String,
) -> Answer {
    let request = Request::builder().method(to.0).uri(to.1);
    let request = request
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .extension(ViaGateway)
        .extension(Arc::new(caller.clone()));
    api.raw(request.body(bytes_body(body)).unwrap()).await
}

/// Asserts that the text of a response contains a field with exactly this value.
fn assert_field(answer: &Answer, name: &str, value: &str) {
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    assert!(text.contains(&format!("\"{name}\":{value}")), "{text}");
}

async fn numbers_in_free_form_values_are_returned_as_they_were_written(world: World) {
    let platform = world.create_platform("engines").await;
    let operator = operator();
    let path = platform_path(&platform, "/config/features");
    let set = async |key: &str, value: &str| {
        let body = format!(r#"{{"configValue":{value}}}"#);
        send_json_text(&world.registry, &operator, ("PUT", &path), key, body).await
    };
    let other = STORED.replace("551616", "551617");
    for (key, value, version) in [("1", SENT, 1), ("2", STORED, 1), ("3", &other, 2)] {
        let answer = set(key, value).await;
        assert_eq!(answer.json["version"], version, "{}", answer.json);
    }
    set("3", STORED)
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    assert_field(&world.get_record(&path).await, "configValue", &other);
    let all = world.get_record(&platform_path(&platform, "/config")).await;
    assert_field(&all, "features", &other);
    let body = r#"{"version":1}"#.to_owned();
    let back = ("POST", &*format!("{path}/rollback"));
    let back = send_json_text(&world.registry, &operator, back, "4", body).await;
    assert_field(&back, "configValue", STORED);
    let first = world.get_record(&format!("{path}/history/1")).await;
    assert_field(&first, "configValue", STORED);

    let tenant = world.tenant(&platform, "tenant").await;
    let path = platform_path(&platform, &format!("/entities/{tenant}/resources"));
    let resource = resource_body("engines-db").to_string();
    let resource = resource.replacen('{', &format!(r#"{{"config":{SENT},"#), 1);
    let made = send_json_text(&world.registry, &operator, ("POST", &path), "5", resource).await;
    assert_field(&made, "config", STORED);
    let path = platform_path(&platform, &format!("/resources/{}", made.id()));
    let body = r#"{"config":1e-7}"#.to_owned();
    let changed = send_json_text(&world.registry, &operator, ("PATCH", &path), "6", body).await;
    assert_field(&changed, "config", "1e-7");
    assert_field(&world.get_record(&path).await, "config", "1e-7");

    let path = "/api/v1/stacks";
    let web = r#"{"name":"web","displayName":"Web","description":"A shop","domain":"shops"}"#;
    let created = send_json_text(
        &world.stacks,
        &operator,
        ("POST", path),
        "7",
        web.to_owned(),
    );
    let _ = created.await.expect(201);
    let version =
        format!(r#"{{"version":"1.0.0","coreSdkVersion":"1.0.0","stackDefinition":{SENT}}}"#);
    let versions = ("POST", "/api/v1/stacks/web/versions");
    let published = send_json_text(&world.stacks, &operator, versions, "8", version).await;
    let _ = published.expect(201);
    let shown = world
        .stacks
        .get(&operator, "/api/v1/stacks/web/1.0.0")
        .await;
    assert_eq!(shown.text("stack_definition"), STORED);

    let person = world.sign_up("ada@example.org").await.caller();
    let path = ("POST", "/api/auth/organization/create");
    let acme = format!(r#"{{"name":"Acme","slug":"acme","metadata":{SENT}}}"#);
    let created = send_json_text(&world.iam, &person, path, "9", acme).await;
    assert_field(&created, "metadata", STORED);
    let listed = world.iam.get(&person, "/api/auth/organization/list").await;
    assert_eq!(listed.json[0]["metadata"], STORED);
}
