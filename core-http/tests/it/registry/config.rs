//! The configuration of platforms, and its version history.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::world::{
    Answer, World, admin, on_every_store, operator, platform_path, send_concurrently,
};

const IF_ABSENT: (&str, &str) = ("if-none-match", "*");

fn of(value: &Value) -> Value {
    json!({ "configValue": value })
}

impl World {
    async fn set_if(&self, platform: &str, tag: (&str, &str), value: Value) -> Answer {
        let path = platform_path(platform, "/config/features");
        let caller = operator();
        let (tags, body) = ([tag], of(&value));
        let set = self.registry.send(&caller, "PUT", &path, &tags, body);
        set.await
    }

    async fn features(&self, platform: &str, rest: &str) -> Answer {
        let path = platform_path(platform, &format!("/config/features{rest}"));
        self.registry.get(&operator(), &path).await
    }

    async fn roll_back(&self, platform: &str, tags: &[(&str, &str)], version: i64) -> Answer {
        let path = platform_path(platform, "/config/features/rollback");
        let (caller, body) = (operator(), json!({ "version": version }));
        let set = self.registry.send(&caller, "POST", &path, tags, body).await;
        self.tick(1);
        set
    }
}

#[tokio::test]
async fn the_first_value_of_a_key_creates_it_and_every_other_one_increments_its_version() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let value =
        json!({ "big": 9_007_199_254_740_993_i64, "list": [{ "z": null, "a": 0.1 }], "": "x" });
    let mut wanted = json!({
        "platformId": platform, "configKey": "features", "configValue": value, "version": 1,
        "updatedAt": world.clock_seconds(), "status": "created",
    });
    let first = world.set_config(&platform, "features", of(&value)).await;
    let first = first.expect(201);
    assert_eq!((&first.json, first.header("etag")), (&wanted, "\"1\""));
    wanted["status"] = Value::Null;
    let shown = world.features(&platform, "").await.expect(200);
    assert_eq!((&shown.json, shown.header("etag")), (&wanted, "\"1\""));

    wanted["configValue"] = json!(false);
    wanted["version"] = json!(2);
    wanted["updatedAt"] = json!(world.clock_seconds());
    let second = world.set_config(&platform, "features", of(&json!(false)));
    let second = second.await.expect(200);
    assert_eq!((&second.json, second.header("etag")), (&wanted, "\"2\""));
    // A body without a value and a missing body both set `null`.
    for (key, body) in [("auth", json!({})), ("env", Value::Null)] {
        let set = world.set_config(&platform, key, body).await.expect(201);
        assert_eq!(set.json["configValue"], Value::Null, "{key}");
    }
    let all = world
        .get_record(&platform_path(&platform, "/config"))
        .await
        .json;
    let configs = json!({ "auth": null, "env": null, "features": false });
    let wanted = json!({ "platformId": platform, "configs": configs });
    assert_eq!(all, wanted);
}

#[tokio::test]
async fn setting_the_current_value_again_writes_nothing() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let set = async |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        world.set_config(&platform, "features", of(&value)).await
    };
    let first = set(r#"{"a": [1, {"b": null}], "c": 1}"#).await.expect(201);
    let again = set(r#"{"c": 1, "a": [1, {"b": null}]}"#).await.expect(200);
    assert_eq!(again.header("etag"), "\"1\"");
    for field in ["version", "updatedAt", "configValue"] {
        assert_eq!(again.json[field], first.json[field], "{field}");
    }
    assert_eq!(world.features(&platform, "/history").await.total(), Some(1));
    assert!(world.audit("config.updated").await.is_empty());
    // The order of a list is part of its value.
    let other = set(r#"{"a": [{"b": null}, 1], "c": 1}"#).await.expect(200);
    assert_eq!(other.json["version"], 2);
}

#[tokio::test]
async fn an_unknown_key_is_invalid_and_one_that_was_never_set_is_not_found() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let ask = async |method: &str, rest: &str| {
        let path = platform_path(&platform, &format!("/config/{rest}"));
        let body = match method {
            "GET" => Value::Null,
            _ => json!({ "version": 1 }),
        };
        let caller = operator();
        world.registry.send(&caller, method, &path, &[], body).await
    };
    for (method, rest) in [
        ("GET", ""),
        ("PUT", ""),
        ("GET", "/history"),
        ("GET", "/history/1"),
        ("GET", "/diff?from=1&to=2"),
        ("POST", "/rollback"),
    ] {
        for unknown in ["colours", "Features", "%20"] {
            let answer = ask(method, &format!("{unknown}{rest}")).await;
            let refused = answer.expect_error(400, "VALIDATION_ERROR");
            assert_eq!(refused.issues(), ["configKey: pattern"]);
        }
        if method != "PUT" {
            let missing = ask(method, &format!("auth{rest}")).await;
            missing.expect_error(404, "NOT_FOUND");
        }
    }
    let all = world.get_record(&platform_path(&platform, "/config")).await;
    assert_eq!(all.json["configs"], json!({}));
}

#[tokio::test]
async fn a_conditional_write_succeeds_only_for_the_expected_version() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for tag in ["*", "\"1\""] {
        let early = world.set_if(&platform, ("if-match", tag), json!(0)).await;
        early.expect_error(412, "VERSION_CONFLICT");
    }
    world
        .features(&platform, "")
        .await
        .expect_error(404, "NOT_FOUND");
    let set = async |tag, value: i64| world.set_if(&platform, tag, json!(value)).await;
    let _ = set(IF_ABSENT, 1).await.expect(201);
    for value in [1, 2] {
        let late = set(IF_ABSENT, value).await;
        late.expect_error(412, "VERSION_CONFLICT");
    }
    let stale = set(("if-none-match", "\"1\""), 2).await;
    stale.expect_error(412, "VERSION_CONFLICT");
    let _ = set(("if-none-match", "\"9\""), 2).await.expect(200);
    let _ = set(("if-match", "\"2\""), 3).await.expect(200);
    set(("if-match", "\"2\""), 4)
        .await
        .expect_error(412, "VERSION_CONFLICT");
    let back = world.roll_back(&platform, &[("if-match", "\"2\"")], 1);
    back.await.expect_error(412, "VERSION_CONFLICT");
    assert_eq!(world.features(&platform, "").await.json["version"], 3);
}

#[tokio::test]
async fn a_value_is_limited_to_64_kib() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    // The quotes of the JSON string count too.
    let value = |bytes: usize| json!("x".repeat(bytes - 2));
    let set = async |value| world.set_config(&platform, "env", of(&value)).await;
    let refused = set(value(64 * 1024 + 1)).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.issues(), ["configValue: too_long"]);
    let _ = set(value(64 * 1024)).await.expect(201);
}

#[tokio::test]
async fn the_audit_log_contains_the_versions_and_not_the_values() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for value in ["hunter1", "hunter2"] {
        world
            .set_config(&platform, "features", of(&json!(value)))
            .await;
    }
    let _ = world.roll_back(&platform, &[], 1).await.expect(200);
    for (action, before, after) in [
        ("config.created", None, 1),
        ("config.updated", Some(1), 2),
        ("config.rolled_back", Some(2), 3),
    ] {
        let entry = world.audit(action).await.pop().unwrap();
        let of = |snapshot: &Value| snapshot["version"].as_i64();
        let entry = serde_json::to_value(&entry).unwrap();
        let versions = (of(&entry["before"]), of(&entry["after"]));
        assert_eq!(versions, (before, Some(after)), "{action}");
        assert!(!entry.to_string().contains("hunter"), "{entry}");
    }
}

#[tokio::test]
async fn every_version_can_be_read_compared_and_restored() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let values = [
        json!({ "theme": "dark", "beta": ["a", "b"] }),
        json!({ "theme": "light", "beta": ["a"], "new/one": null }),
    ];
    let set_at = world.clock_seconds();
    for value in &values {
        let path = platform_path(&platform, "/config/features");
        let (caller, body) = (admin(&platform), of(value));
        let set = world.registry.send(&caller, "PUT", &path, &[], body);
        assert!(set.await.is_success());
        world.tick(1);
    }
    let first = json!({
        "platformId": platform, "configKey": "features", "version": 1, "configValue": values[0],
        "actorId": "adam", "actorType": "user", "createdAt": set_at,
    });
    let shown = world.features(&platform, "/history/1").await.expect(200);
    assert_eq!(shown.json, first);
    let history = world.features(&platform, "/history").await.expect(200);
    assert_eq!(history.total(), Some(2));
    assert_eq!(history.json["data"][1], first);

    let diff = async |from, to| {
        let rest = format!("/diff?from={from}&to={to}");
        world.features(&platform, &rest).await
    };
    let changes = json!([
        { "op": "remove", "path": "/beta/1" },
        { "op": "add", "path": "/new~1one", "value": null },
        { "op": "replace", "path": "/theme", "value": "light" },
    ]);
    let wanted = json!({ "platformId": platform, "configKey": "features", "from": 1, "to": 2, "changes": changes });
    assert_eq!(diff(1, 2).await.expect(200).json, wanted);
    let back = diff(2, 1).await.expect(200).json["changes"].clone();
    assert_eq!(back.as_array().map(Vec::len), Some(3), "{back}");
    assert_eq!(diff(2, 2).await.expect(200).json["changes"], json!([]));

    let back = world.roll_back(&platform, &[("if-match", "\"2\"")], 1);
    let back = back.await.expect(200);
    let seen = (&back.json["version"], &back.json["configValue"]);
    assert_eq!(seen, (&json!(3), &values[0]));
    assert_eq!(back.json["status"], Value::Null);
    // Restoring the current value creates no version.
    for version in [1, 3] {
        let same = world.roll_back(&platform, &[], version).await.expect(200);
        assert_eq!(same.json["version"], 3);
    }
    assert_eq!(world.features(&platform, "/history").await.total(), Some(3));

    for rest in ["/history/9", "/history/0", "/history/01", "/history/x"] {
        let missing = world.features(&platform, rest).await;
        missing.expect_error(404, "NOT_FOUND");
    }
    diff(1, 9).await.expect_error(404, "NOT_FOUND");
    diff(0, 1).await.expect_error(400, "VALIDATION_ERROR");
    let half = world.features(&platform, "/diff?from=1").await;
    assert_eq!(
        half.expect_error(400, "VALIDATION_ERROR").issues(),
        ["to: required"]
    );
    let unknown = world.roll_back(&platform, &[], 9).await;
    unknown.expect_error(404, "NOT_FOUND");
    let none = world.roll_back(&platform, &[], 0).await;
    none.expect_error(400, "VALIDATION_ERROR");
}

async fn concurrent_writes_get_versions_without_gaps_and_none_is_lost(world: World) {
    let platform = world.create_platform("engines").await;
    let requests = (0..8).map(|number| {
        let (api, path) = (
            world.registry.clone(),
            platform_path(&platform, "/config/features"),
        );
        let body = of(&json!({ "set": number }));
        async move { api.send(&operator(), "PUT", &path, &[], body).await }
    });
    let answers = send_concurrently(requests).await;
    let created = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 1);
    let told: BTreeMap<i64, Value> = answers
        .into_iter()
        .map(|answer| {
            assert!(answer.is_success(), "{}", answer.json);
            let version = answer.json["version"].as_i64().unwrap();
            (version, answer.json["configValue"].clone())
        })
        .collect();
    assert_eq!(
        told.keys().copied().collect::<Vec<_>>(),
        (1..=8).collect::<Vec<_>>()
    );
    let history = world.features(&platform, "/history").await.expect(200);
    let kept = history.json["data"].as_array().unwrap().iter();
    let kept = kept.map(|v| (v["version"].as_i64().unwrap(), v["configValue"].clone()));
    assert_eq!(kept.collect::<BTreeMap<_, _>>(), told);
    let shown = world.features(&platform, "").await.json;
    let shown = (&shown["version"], &shown["configValue"]);
    assert_eq!(shown, (&json!(8), &told[&8]));
}

on_every_store! { concurrent_writes_get_versions_without_gaps_and_none_is_lost }
