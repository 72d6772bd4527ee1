//! The stack registry through its tower service, over the memory store.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Caller, ManualClock, Role, Timestamp};
use core_domain::port::Mode;
use core_domain::shared::AuditQuery;
use core_http::kernel::testing::{Answer, app, call, call_with, member, operator};
use core_http::kernel::{App, Service};
use core_storage::memory::{MemoryConfig, open};
use http::StatusCode;
use serde_json::{Value, json};

struct Suite {
    service: Service,
    app: Arc<App>,
    clock: Arc<ManualClock>,
}

impl Suite {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let app = app(
            open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [7; 32].into(),
            }),
            clock.clone(),
        );
        let service = core_http::stacks::service(app.clone()).unwrap();
        Self {
            service,
            app,
            clock,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        call(&self.service, "GET", path, &operator(), Value::Null).await
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        call(&self.service, method, path, &operator(), body).await
    }

    async fn template(&self, name: &str) {
        let body = json!({"name": name, "displayName": "Web", "description": "A web stack"});
        let made = self.send("POST", "/api/v1/stacks", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    }

    async fn publish(&self, name: &str, version: &str) -> Answer {
        let path = format!("/api/v1/stacks/{name}/versions");
        self.send("POST", &path, definition(version, json!({"resources": []})))
            .await
    }

    async fn latest(&self, name: &str) -> Value {
        let shown = self.get(&format!("/api/v1/stacks/{name}")).await;
        let latest = shown.json["template"]["latest_version"].clone();
        assert_eq!(shown.json["latestVersion"]["version"], latest);
        latest
    }

    async fn actions(&self) -> Vec<String> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let entries = uow
            .audit_entries()
            .list(&AuditQuery::default(), 100)
            .await
            .unwrap();
        let mut actions: Vec<String> = entries.iter().map(|e| e.action.clone()).collect();
        actions.sort();
        actions
    }
}

fn definition(version: &str, definition: Value) -> Value {
    json!({"version": version, "stackDefinition": definition, "coreSdkVersion": "1.0.0"})
}

#[tokio::test]
async fn a_template_is_made_shown_and_listed_with_exactly_the_fields_of_the_interface() {
    let suite = Suite::new();
    let body = json!({"name": "web", "displayName": "Web", "description": "For sites", "icon": "globe", "id": "mine", "status": "deprecated"});
    let made = suite.send("POST", "/api/v1/stacks", body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let expected = json!({
        "id": made.json["id"], "name": "web", "display_name": "Web", "description": "For sites", "icon": "globe",
        "domain": null, "latest_version": null, "status": "active", "created_at": 1_800_000_000, "updated_at": 1_800_000_000,
    });
    assert_ne!(made.json["id"], "mine");
    let shown = suite.get("/api/v1/stacks/web").await;
    assert_eq!(
        shown.json,
        json!({"template": expected, "latestVersion": null})
    );
    assert_eq!(shown.header("etag"), "\"1\"");
    suite.clock.advance(Duration::from_secs(1));
    suite.template("api").await;
    let listed = suite.get("/api/v1/stacks").await;
    assert_eq!(listed.json["total"], 2);
    assert_eq!(listed.json["data"][0]["name"], "api", "newest first");
    assert_eq!(listed.json["data"][1], expected);
}

#[tokio::test]
async fn a_version_keeps_its_definition_as_text_and_its_digest_is_the_entity_tag() {
    let suite = Suite::new();
    suite.template("web").await;
    let given = json!({"b": 9_007_199_254_740_993_i64, "a": {"x": [1, 2.5, null, "é"]}});
    let path = "/api/v1/stacks/web/versions";
    let made = suite
        .send("POST", path, definition("1.0.0", given.clone()))
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    let shown = suite.get("/api/v1/stacks/web/1.0.0").await;
    let text = shown.json["stack_definition"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), given);
    let fields: Vec<&String> = shown.json.as_object().unwrap().keys().collect();
    assert_eq!(fields.len(), 8, "{fields:?}");
    assert_eq!(shown.json["id"], made.json["id"]);
    assert_eq!(shown.json["published_at"], 1_800_000_000);
    let tag = shown.header("etag");
    assert_eq!(tag.len(), 66);
    assert_eq!(made.header("etag"), tag);
    let headers = [("if-none-match", tag)];
    let again = call_with(
        &suite.service,
        "GET",
        "/web/1.0.0",
        &operator(),
        &headers,
        Value::Null,
    )
    .await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    assert!(again.bytes.is_empty());
}

#[tokio::test]
async fn versions_are_listed_by_precedence_and_the_latest_is_settled_at_every_change() {
    let suite = Suite::new();
    suite.template("web").await;
    for (version, latest) in [
        ("1.0.0-rc.1", "1.0.0-rc.1"),
        ("1.10.0-beta", "1.10.0-beta"),
        ("1.2.0", "1.2.0"),
        ("1.10.0", "1.10.0"),
        ("1.9.0", "1.10.0"),
    ] {
        assert_eq!(
            suite.publish("web", version).await.status,
            StatusCode::CREATED
        );
        assert_eq!(suite.latest("web").await, latest);
    }
    let listed = suite.get("/api/v1/stacks/web/versions").await;
    let versions: Vec<&str> = listed.json["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["version"].as_str().unwrap())
        .collect();
    assert_eq!(
        versions,
        ["1.10.0", "1.10.0-beta", "1.9.0", "1.2.0", "1.0.0-rc.1"]
    );
    assert_eq!(listed.json["total"], 5);
    for (version, latest) in [
        ("1.10.0", "1.9.0"),
        ("1.9.0", "1.2.0"),
        ("1.2.0", "1.10.0-beta"),
        ("1.10.0-beta", "1.0.0-rc.1"),
        ("1.0.0-rc.1", "1.10.0"),
    ] {
        let path = format!("/api/v1/stacks/web/{version}");
        let done = suite.send("DELETE", &path, Value::Null).await;
        assert_eq!(
            (done.status, done.json),
            (StatusCode::OK, json!({"ok": true}))
        );
        assert_eq!(suite.latest("web").await, latest);
    }
    let shown = suite.get("/api/v1/stacks/web/1.2.0").await;
    assert_eq!(shown.json["status"], "deprecated", "still readable");
}

#[tokio::test]
async fn a_version_is_published_once_even_after_deprecation_and_in_any_spelling() {
    let suite = Suite::new();
    suite.template("web").await;
    suite.publish("web", "1.0.0").await;
    for spelled in ["1.0.0", "01.0.0"] {
        let again = suite.publish("web", spelled).await;
        assert_eq!(
            (again.status, again.code()),
            (StatusCode::CONFLICT, "CONFLICT")
        );
    }
    for _ in 0..2 {
        let done = suite
            .send("DELETE", "/api/v1/stacks/web/1.0.0", Value::Null)
            .await;
        assert_eq!(done.status, StatusCode::OK, "twice is once");
    }
    assert_eq!(suite.publish("web", "1.0.0").await.code(), "CONFLICT");
    let expected = [
        "stack_template.created",
        "stack_version.deprecated",
        "stack_version.published",
    ];
    assert_eq!(
        suite.actions().await,
        expected,
        "one entry a change, none for refusals"
    );
}

#[tokio::test]
async fn a_deprecated_template_takes_no_versions_until_it_is_offered_again() {
    let suite = Suite::new();
    suite.template("web").await;
    let path = "/api/v1/stacks/web";
    let done = suite
        .send("PATCH", path, json!({"status": "deprecated"}))
        .await;
    assert_eq!(
        (done.status, done.json),
        (StatusCode::OK, json!({"ok": true}))
    );
    let refused = suite.publish("web", "1.0.0").await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::CONFLICT, "INVALID_STATE")
    );
    assert_eq!(
        refused.json["error"]["details"],
        json!({"status": "deprecated", "allowedFrom": ["active"]})
    );
    suite.send("PATCH", path, json!({"status": "active"})).await;
    assert_eq!(
        suite.publish("web", "1.0.0").await.status,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_obeys_if_match() {
    let suite = Suite::new();
    suite.template("web").await;
    let path = "/api/v1/stacks/web";
    let headers = [("if-match", "\"1\"")];
    let change = json!({"displayName": "Better", "icon": "globe", "name": "other", "latestVersion": "9.9.9"});
    let first = call_with(
        &suite.service,
        "PATCH",
        path,
        &operator(),
        &headers,
        change.clone(),
    )
    .await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.json);
    let second = call_with(&suite.service, "PATCH", path, &operator(), &headers, change).await;
    assert_eq!(
        (second.status, second.code()),
        (StatusCode::PRECONDITION_FAILED, "VERSION_CONFLICT")
    );
    let shown = suite.get(path).await;
    assert_eq!(shown.json["template"]["display_name"], "Better");
    assert_eq!(shown.json["template"]["description"], "A web stack");
    assert_eq!(shown.json["template"]["icon"], "globe");
    assert_eq!(shown.json["template"]["name"], "web");
    suite.send("PATCH", path, json!({"icon": null})).await;
    assert_eq!(suite.get(path).await.json["template"]["icon"], Value::Null);
    let unchanged = suite.send("PATCH", path, json!({})).await;
    assert_eq!(unchanged.status, StatusCode::OK);
    assert_eq!(
        unchanged.header("etag"),
        suite.get(path).await.header("etag")
    );
}

#[tokio::test]
async fn bad_input_is_refused_with_every_issue() {
    let suite = Suite::new();
    suite.template("web").await;
    let long = "x".repeat(1025);
    for (method, path, body, issues) in [
        (
            "POST",
            "/api/v1/stacks",
            json!({}),
            vec![
                "description: required",
                "displayName: required",
                "name: required",
            ],
        ),
        (
            "POST",
            "/api/v1/stacks",
            json!({"name": "A b", "displayName": "", "description": long, "icon": 3}),
            vec![
                "description: too_long",
                "displayName: too_short",
                "icon: invalid_type",
                "name: pattern",
            ],
        ),
        ("POST", "/api/v1/stacks", json!([1]), vec![": invalid_type"]),
        (
            "PATCH",
            "/api/v1/stacks/web",
            json!({"status": "gone"}),
            vec!["status: invalid_enum"],
        ),
        (
            "POST",
            "/api/v1/stacks/web/versions",
            json!({"version": "1.0.0+build", "stackDefinition": [], "coreSdkVersion": "v1"}),
            vec![
                "coreSdkVersion: pattern",
                "stackDefinition: invalid_type",
                "version: pattern",
            ],
        ),
        (
            "POST",
            "/api/v1/stacks/web/versions",
            definition("1.0.0", json!({"text": "x".repeat(256 * 1024)})),
            vec!["stackDefinition: too_long"],
        ),
    ] {
        let refused = suite.send(method, path, body).await;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::BAD_REQUEST, "VALIDATION_ERROR"),
            "{path}"
        );
        assert_eq!(refused.issues(), issues, "{path}");
        assert!(
            !refused.json["error"]["requestId"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let suite = Suite::new();
    suite.template("web").await;
    for (method, path, body) in [
        ("GET", "/api/v1/stacks/none", Value::Null),
        ("PATCH", "/api/v1/stacks/none", json!({})),
        ("GET", "/api/v1/stacks/none/versions", Value::Null),
        (
            "POST",
            "/api/v1/stacks/none/versions",
            definition("1.0.0", json!({})),
        ),
        ("GET", "/api/v1/stacks/web/1.0.0", Value::Null),
        ("GET", "/api/v1/stacks/web/not-a-version", Value::Null),
        ("DELETE", "/api/v1/stacks/web/1.0.0", Value::Null),
        ("GET", "/api/v1/stacks/web/1.0.0/more", Value::Null),
        ("GET", "/api/v1/stacks/%00", Value::Null),
    ] {
        let refused = suite.send(method, path, body).await;
        assert_eq!(
            (refused.status, refused.code()),
            (StatusCode::NOT_FOUND, "NOT_FOUND"),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn everybody_signed_in_reads_and_only_operators_write() {
    let suite = Suite::new();
    suite.template("web").await;
    suite.publish("web", "1.0.0").await;
    let owner = member("ada", "p1", Role::Owner).unwrap();
    let new = json!({"name": "api", "displayName": "Api", "description": "d"});
    let rows = [
        ("GET", "/api/v1/stacks", Value::Null, StatusCode::OK),
        ("GET", "/api/v1/stacks/web", Value::Null, StatusCode::OK),
        (
            "GET",
            "/api/v1/stacks/web/versions",
            Value::Null,
            StatusCode::OK,
        ),
        (
            "GET",
            "/api/v1/stacks/web/1.0.0",
            Value::Null,
            StatusCode::OK,
        ),
        ("POST", "/api/v1/stacks", new, StatusCode::FORBIDDEN),
        (
            "PATCH",
            "/api/v1/stacks/web",
            json!({}),
            StatusCode::FORBIDDEN,
        ),
        (
            "POST",
            "/api/v1/stacks/web/versions",
            definition("2.0.0", json!({})),
            StatusCode::FORBIDDEN,
        ),
        (
            "DELETE",
            "/api/v1/stacks/web/1.0.0",
            Value::Null,
            StatusCode::FORBIDDEN,
        ),
    ];
    for (method, path, body, expected) in rows {
        let by_owner = call(&suite.service, method, path, &owner, body.clone()).await;
        assert_eq!(by_owner.status, expected, "{method} {path}");
        let by_nobody = call(&suite.service, method, path, &Caller::Anonymous, body).await;
        assert_eq!(by_nobody.code(), "UNAUTHORIZED", "{method} {path}");
        assert_eq!(by_nobody.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn of_many_publishing_the_same_version_at_once_one_succeeds() {
    let suite = Suite::new();
    suite.template("web").await;
    let attempts = (0..16).map(|_| suite.publish("web", "1.0.0"));
    let answers = futures_util::future::join_all(attempts).await;
    let made = answers
        .iter()
        .filter(|a| a.status == StatusCode::CREATED)
        .count();
    let refused = answers
        .iter()
        .filter(|a| a.status == StatusCode::CONFLICT)
        .count();
    assert_eq!((made, refused), (1, 15));
}

#[tokio::test]
async fn a_name_belongs_to_one_template_for_good() {
    let suite = Suite::new();
    suite.template("web").await;
    suite
        .send(
            "PATCH",
            "/api/v1/stacks/web",
            json!({"status": "deprecated"}),
        )
        .await;
    let body = json!({"name": "web", "displayName": "Web", "description": "again"});
    let refused = suite.send("POST", "/api/v1/stacks", body).await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::CONFLICT, "CONFLICT")
    );
}
