//! Tests of workers: uploads, bindings, secrets and versions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::world::{World, worker};

const SCRIPT: &str = "/accounts/{a}/workers/scripts/w";

fn secret(name: &str, text: &str) -> Value {
    json!({"name": name, "text": text, "type": "secret_text"})
}

fn values(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn upload_drops_existing_secrets_unless_it_keeps_them() {
    let world = World::start().await;
    world.upload("w", json!({})).await.result();
    world
        .put(&format!("{SCRIPT}/secrets"), secret("S", "value"))
        .await
        .result();
    let keep = json!({"keep_bindings": ["secret_text"], "bindings": [secret("T", "other")]});
    world.upload("w", keep).await.result();
    assert_eq!(
        world.fake.secrets("w"),
        values(&[("S", "value"), ("T", "other")])
    );
    let inherit = json!({"bindings": [{"type": "inherit", "name": "S"}]});
    world.upload("w", inherit).await.result();
    assert_eq!(world.fake.secrets("w"), values(&[("S", "value")]));
    world.upload("w", json!({})).await.result();
    assert_eq!(world.fake.secrets("w"), values(&[]));
}

#[tokio::test]
async fn strictly_inherited_bindings_must_exist() {
    let world = World::start().await;
    let parts = worker(json!({"bindings": [{"type": "inherit", "name": "S"}]}));
    let reply = world
        .form("PUT", &format!("{SCRIPT}?bindings_inherit=strict"), &parts)
        .await;
    assert_eq!(reply.failure(), (400, 10057));
    world.form("PUT", SCRIPT, &parts).await.result();
    assert_eq!(
        world.fake.script("w").unwrap().bindings,
        Vec::<Value>::new()
    );
}

#[tokio::test]
async fn upload_must_match_its_metadata() {
    let world = World::start().await;
    let code = (
        "index.js",
        Some("application/javascript+module"),
        b"export {}".to_vec(),
    );
    let metadata = |text: &str| ("metadata", None, text.as_bytes().to_vec());
    let good = metadata(r#"{"main_module":"index.js"}"#);
    for (why, parts) in [
        ("no metadata", vec![code.clone()]),
        ("metadata is no JSON", vec![metadata("x"), code.clone()]),
        ("no module is named", vec![metadata("{}"), code.clone()]),
        ("the module is not there", vec![good.clone()]),
        (
            "the module is empty",
            vec![
                good.clone(),
                ("index.js", Some("text/javascript"), Vec::new()),
            ],
        ),
        (
            "the module is no file",
            vec![good, ("index.js", None, b"x".to_vec())],
        ),
        (
            "no date",
            vec![
                metadata(r#"{"main_module":"index.js","compatibility_date":"soon"}"#),
                code.clone(),
            ],
        ),
        (
            "nine tags",
            vec![
                metadata(
                    r#"{"main_module":"index.js","tags":["1","2","3","4","5","6","7","8","9"]}"#,
                ),
                code.clone(),
            ],
        ),
        (
            "no identifier",
            vec![
                metadata(
                    r#"{"main_module":"index.js","bindings":[{"type":"plain_text","name":"a-b","text":""}]}"#,
                ),
                code,
            ],
        ),
    ] {
        assert_eq!(
            world.form("PUT", SCRIPT, &parts).await.failure(),
            (400, 10021),
            "{why}"
        );
    }
    assert_eq!(world.put(SCRIPT, json!({})).await.failure(), (400, 10021));
    assert_eq!(world.upload("No", json!({})).await.failure(), (400, 10016));
    assert!(world.fake.script("w").is_none());
}

#[tokio::test]
async fn bindings_must_refer_to_existing_objects() {
    let world = World::start().await;
    for binding in [
        json!({"type": "kv_namespace", "name": "B", "namespace_id": "x"}),
        json!({"type": "d1", "name": "B", "id": "x"}),
        json!({"type": "r2_bucket", "name": "B", "bucket_name": "x"}),
        json!({"type": "queue", "name": "B", "queue_name": "x"}),
        json!({"type": "service", "name": "B", "service": "x"}),
    ] {
        let reply = world.upload("w", json!({"bindings": [binding]})).await;
        assert_eq!(reply.status, 400, "{binding}");
    }
    world.upload("x", json!({})).await.result();
    let service = json!({"bindings": [{"type": "service", "name": "B", "service": "x"}]});
    world.upload("w", service).await.result();
    let path = "/accounts/{a}/workers/scripts/x";
    assert_eq!(world.delete(path).await.failure(), (400, 10064));
    world.delete(&format!("{path}?force=true")).await.result();
}

#[tokio::test]
async fn bulk_secrets_are_set_and_deleted_and_never_returned() {
    let world = World::start().await;
    let bulk = format!("{SCRIPT}/secrets-bulk");
    assert_eq!(
        world.patch(&bulk, json!({"secrets": {}})).await.failure(),
        (404, 10007)
    );
    world
        .upload(
            "w",
            json!({"bindings": [{"type": "plain_text", "name": "VAR", "text": "v"}]}),
        )
        .await
        .result();
    let both = json!({"secrets": {"A": secret("A", "one"), "B": secret("B", "two")}});
    let shown = world.patch(&bulk, both).await.result();
    assert_eq!(shown["A"], json!({"name": "A", "type": "secret_text"}));
    let versions = world.fake.script("w").unwrap().versions;
    world
        .patch(
            &bulk,
            json!({"secrets": {"A": null, "GONE": null, "B": secret("B", "three")}}),
        )
        .await
        .result();
    assert_eq!(world.fake.script("w").unwrap().versions, versions + 1);
    assert_eq!(world.fake.secrets("w"), values(&[("B", "three")]));
    assert_eq!(
        world.get(&format!("{SCRIPT}/secrets")).await.result(),
        json!([{"name": "B", "type": "secret_text"}])
    );
    let wrong = json!({"secrets": {"A": secret("B", "x")}});
    assert_eq!(world.patch(&bulk, wrong).await.status, 400);
    let many: BTreeMap<_, _> = (0..101)
        .map(|n| (format!("S{n}"), secret(&format!("S{n}"), "x")))
        .collect();
    assert_eq!(
        world.patch(&bulk, json!({"secrets": many})).await.status,
        400
    );
    assert_eq!(world.fake.script("w").unwrap().bindings.len(), 2);
}

#[tokio::test]
async fn secret_requires_the_latest_version_to_be_deployed() {
    let world = World::start().await;
    world.upload("w", json!({})).await.result();
    let deployed = world.fake.script("w").unwrap().version_id;
    let version = world
        .form("POST", &format!("{SCRIPT}/versions"), &worker(json!({})))
        .await
        .result();
    assert_eq!(world.fake.script("w").unwrap().version_id, deployed);
    assert_eq!(
        world
            .put(&format!("{SCRIPT}/secrets"), secret("S", "x"))
            .await
            .failure(),
        (400, 10215)
    );
    let deploy = |percentage| json!({"strategy": "percentage", "versions": [{"version_id": version["id"], "percentage": percentage}]});
    assert_eq!(
        world
            .post(&format!("{SCRIPT}/deployments"), deploy(50))
            .await
            .status,
        400
    );
    world
        .post(&format!("{SCRIPT}/deployments"), deploy(100))
        .await
        .result();
    world
        .put(&format!("{SCRIPT}/secrets"), secret("S", "x"))
        .await
        .result();
    assert_eq!(world.fake.secrets("w"), values(&[("S", "x")]));
}

#[tokio::test]
async fn settings_keep_named_bindings_and_drop_others() {
    let world = World::start().await;
    let variable = |name: &str| json!({"type": "plain_text", "name": name, "text": "v"});
    let bindings = json!([variable("A"), variable("B"), secret("S", "value")]);
    world
        .upload("w", json!({"bindings": bindings}))
        .await
        .result();
    let bare = |kind: &str, name: &str| json!({"type": kind, "name": name});
    let settings =
        json!({"bindings": [bare("plain_text", "A"), bare("inherit", "S"), secret("T", "t")]});
    let parts = [("settings", None, settings.to_string().into_bytes())];
    world
        .form("PATCH", &format!("{SCRIPT}/settings"), &parts)
        .await
        .result();
    assert_eq!(
        world.fake.secrets("w"),
        values(&[("S", "value"), ("T", "t")])
    );
    let shown = world.get(&format!("{SCRIPT}/settings")).await.result();
    let expected = json!([
        variable("A"),
        bare("secret_text", "S"),
        bare("secret_text", "T")
    ]);
    assert_eq!(shown["bindings"], expected);
}

#[tokio::test]
async fn deleted_worker_loses_its_routes_domains_and_consumers() {
    let world = World::start().await;
    world.upload("w", json!({"tags": ["ours"]})).await.result();
    world
        .post(
            "/zones/{z}/workers/routes",
            json!({"pattern": "example.com/*", "script": "w"}),
        )
        .await
        .result();
    world
        .put(
            "/accounts/{a}/workers/domains",
            json!({"hostname": "app.example.com", "service": "w"}),
        )
        .await
        .result();
    assert_eq!(world.delete(SCRIPT).await.failure(), (400, 10064));
    world.delete(&format!("{SCRIPT}?force=true")).await.result();
    for path in [
        "/zones/{z}/workers/routes",
        "/zones/{z}/dns_records",
        "/accounts/{a}/workers/domains",
    ] {
        assert_eq!(world.get(path).await.result(), json!([]), "{path}");
    }
}
