//! Requests to every operation of the fake.

use core_cloudflare_fake::Exchange;
use serde_json::{Value, json};

use crate::world::{PAGE, World, file, worker};

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// Creates and deletes a tail of the worker or deployment at a path.
async fn drive_tails(world: &World, path: &str) {
    let tails = format!("{path}/tails");
    let tail = world.post(&tails, json!({})).await.result();
    let tail = format!("{tails}/{}", text(&tail, "id"));
    world.delete(&tail).await.result();
    world.delete(&tail).await.failure();
}

async fn drive_storage(world: &World) -> Value {
    let d1 = world
        .post(
            "/accounts/{a}/d1/database",
            json!({"name": "db", "primary_location_hint": "weur"}),
        )
        .await
        .result();
    let uuid = text(&d1, "uuid");
    world
        .get("/accounts/{a}/d1/database?name=db&page=1&per_page=10")
        .await
        .result();
    world
        .post(
            "/accounts/{a}/r2/buckets",
            json!({"name": "bucket", "storageClass": "Standard"}),
        )
        .await
        .result();
    world
        .get("/accounts/{a}/r2/buckets?per_page=10")
        .await
        .result();
    world.get("/accounts/{a}/r2/buckets/bucket").await.result();
    world
        .put(
            "/accounts/{a}/r2/buckets/bucket/objects/a/b.txt",
            json!("text"),
        )
        .await
        .result();
    world
        .get("/accounts/{a}/r2/buckets/bucket/objects?prefix=a")
        .await
        .result();
    world
        .delete("/accounts/{a}/r2/buckets/bucket")
        .await
        .failure();
    let kv = world
        .post(
            "/accounts/{a}/storage/kv/namespaces",
            json!({"title": "one"}),
        )
        .await
        .result();
    let namespace = format!("/accounts/{{a}}/storage/kv/namespaces/{}", text(&kv, "id"));
    world
        .get("/accounts/{a}/storage/kv/namespaces?page=1&per_page=5")
        .await
        .result();
    let parts = [
        ("value", None, b"v".to_vec()),
        ("metadata", None, b"{\"m\":1}".to_vec()),
    ];
    world
        .form(
            "PUT",
            &format!("{namespace}/values/key?expiration_ttl=60"),
            &parts,
        )
        .await
        .result();
    assert_eq!(
        world.get(&format!("{namespace}/values/key")).await.body,
        "v"
    );
    world
        .get(&format!("{namespace}/values/gone"))
        .await
        .failure();
    json!({"d1": uuid, "kv": kv["id"]})
}

async fn drive_queues(world: &World, script: &str) {
    let queue = world
        .post("/accounts/{a}/queues", json!({"queue_name": "q"}))
        .await
        .result();
    let path = format!("/accounts/{{a}}/queues/{}", text(&queue, "queue_id"));
    world.get("/accounts/{a}/queues").await.result();
    let consumer = json!({"type": "worker", "script_name": script, "settings": {"batch_size": 10}});
    let made = world
        .post(&format!("{path}/consumers"), consumer.clone())
        .await
        .result();
    let consumer_path = format!("{path}/consumers/{}", text(&made, "consumer_id"));
    world.get(&format!("{path}/consumers")).await.result();
    world.put(&consumer_path, consumer).await.result();
    world.delete(&path).await.failure();
    world.delete(&consumer_path).await.json();
    assert_eq!(world.delete(&path).await.status, 200);
}

async fn drive_workers(world: &World, storage: &Value) {
    let bindings = json!([
        {"type": "d1", "name": "DB", "database_id": storage["d1"]},
        {"type": "kv_namespace", "name": "KV", "namespace_id": storage["kv"]},
        {"type": "r2_bucket", "name": "R2", "bucket_name": "bucket"},
        {"type": "plain_text", "name": "VAR", "text": "v"},
        {"type": "secret_text", "name": "SECRET", "text": "s"},
    ]);
    let metadata = json!({"bindings": bindings, "compatibility_date": "2026-10-01", "tags": ["p"]});
    world.upload("w", metadata).await.result();
    drive_queues(world, "w").await;
    let script = "/accounts/{a}/workers/scripts/w";
    world
        .get("/accounts/{a}/workers/scripts?tags=p:yes")
        .await
        .result();
    let settings = json!({"bindings": [{"type": "inherit", "name": "SECRET"}], "logpush": true});
    let parts = [("settings", None, settings.to_string().into_bytes())];
    world
        .form("PATCH", &format!("{script}/settings"), &parts)
        .await
        .result();
    world.get(&format!("{script}/settings")).await.result();
    world
        .patch(
            &format!("{script}/script-settings"),
            json!({"tags": ["q"], "observability": {"enabled": true}}),
        )
        .await
        .result();
    world.get("/accounts/{a}/workers/subdomain").await.result();
    world
        .post(&format!("{script}/subdomain"), json!({"enabled": true}))
        .await
        .result();
    world.get(&format!("{script}/subdomain")).await.result();
    world
        .put(
            &format!("{script}/secrets"),
            json!({"name": "A", "text": "1", "type": "secret_text"}),
        )
        .await
        .result();
    let bulk =
        json!({"secrets": {"B": {"name": "B", "text": "2", "type": "secret_text"}, "A": null}});
    world
        .patch(&format!("{script}/secrets-bulk"), bulk)
        .await
        .result();
    world.get(&format!("{script}/secrets")).await.result();
    let version = world
        .form(
            "POST",
            &format!("{script}/versions?bindings_inherit=strict"),
            &worker(json!({})),
        )
        .await
        .result();
    let id = text(&version, "id");
    world
        .get(&format!("{script}/versions?per_page=5"))
        .await
        .result();
    world.get(&format!("{script}/versions/{id}")).await.result();
    let deploy =
        json!({"strategy": "percentage", "versions": [{"version_id": id, "percentage": 100}]});
    world
        .post(&format!("{script}/deployments"), deploy)
        .await
        .result();
    world.get(&format!("{script}/deployments")).await.result();
    drive_tails(world, script).await;
    world.get(&format!("{script}/tails")).await.result();
    world.get("/accounts/{a}/workers/services/w").await.result();
    world
        .get("/accounts/{a}/workers/services/gone")
        .await
        .failure();
}

async fn drive_zone(world: &World) {
    world.get("/user").await.result();
    world.get("/user/tokens/verify").await.result();
    world.get("/accounts?per_page=5").await.result();
    world
        .get("/zones?name=example.com&status=active")
        .await
        .result();
    let fields = json!({"type": "CNAME", "name": "www", "content": "example.net", "ttl": 1, "proxied": true});
    let record = world
        .post("/zones/{z}/dns_records", fields.clone())
        .await
        .result();
    let path = format!("/zones/{{z}}/dns_records/{}", text(&record, "id"));
    world
        .get("/zones/{z}/dns_records?name.exact=www.example.com&type=CNAME&per_page=5")
        .await
        .result();
    world.patch(&path, fields).await.result();
    world.delete(&path).await.result();
    world.delete(&path).await.failure();
    let route = world
        .post(
            "/zones/{z}/workers/routes",
            json!({"pattern": "a.example.com/*", "script": "w"}),
        )
        .await
        .result();
    let path = format!("/zones/{{z}}/workers/routes/{}", text(&route, "id"));
    world.get("/zones/{z}/workers/routes").await.result();
    world
        .put(&path, json!({"pattern": "b.example.com/*", "script": "w"}))
        .await
        .result();
    world.delete(&path).await.result();
    let domain =
        json!({"hostname": "app.example.com", "service": "w", "zone_id": world.fake.zone_id()});
    let domain = world
        .put("/accounts/{a}/workers/domains", domain)
        .await
        .result();
    let path = format!("/accounts/{{a}}/workers/domains/{}", text(&domain, "id"));
    world
        .get("/accounts/{a}/workers/domains?hostname=app.example.com")
        .await
        .result();
    assert_eq!(world.delete(&path).await.status, 200);
    drive_hostnames(world).await;
}

async fn drive_hostnames(world: &World) {
    let ssl = json!({"method": "http", "type": "dv"});
    let hostname = json!({"hostname": "shop.customer.test", "ssl": ssl});
    let made = world
        .post("/zones/{z}/custom_hostnames", hostname.clone())
        .await
        .result();
    world
        .post("/zones/{z}/custom_hostnames", hostname)
        .await
        .failure();
    let path = format!("/zones/{{z}}/custom_hostnames/{}", text(&made, "id"));
    world
        .get("/zones/{z}/custom_hostnames?hostname=shop.customer.test")
        .await
        .result();
    for _ in 0..5 {
        world.get(&path).await.result();
    }
    world.patch(&path, json!({"ssl": ssl})).await.result();
    assert_eq!(world.delete(&path).await.json(), json!({"id": made["id"]}));
}

async fn drive_pages(world: &World) {
    world.create_project("site").await;
    let project = "/accounts/{a}/pages/projects/site";
    world
        .get("/accounts/{a}/pages/projects?page=1")
        .await
        .result();
    let variables = json!({"S": {"type": "secret_text", "value": "s"}});
    world
        .patch(
            project,
            json!({"deployment_configs": {"production": {"env_vars": variables}}}),
        )
        .await
        .result();
    let token = world.upload_token("site").await;
    let hashes = json!({"hashes": [PAGE.0]});
    assert_eq!(
        world
            .assets(&token, "check-missing", &hashes)
            .await
            .result(),
        json!([PAGE.0])
    );
    assert_eq!(
        world
            .assets(&token, "upload", &json!([file(PAGE.0, PAGE.1)]))
            .await
            .status,
        200
    );
    assert_eq!(
        world.assets(&token, "upsert-hashes", &hashes).await.status,
        200
    );
    let manifest = json!({"/index.html": PAGE.0});
    let deployment = world.deploy("site", &manifest, "main").await.result();
    let path = format!("{project}/deployments/{}", text(&deployment, "id"));
    drive_tails(world, &path).await;
    world
        .get(&format!("{project}/deployments?env=production"))
        .await
        .result();
    for _ in 0..2 {
        world.get(&path).await.result();
    }
    world.get(project).await.result();
    world.get(&format!("{path}/history/logs")).await.result();
    world
        .post(
            &format!("{project}/domains"),
            json!({"name": "www.example.org"}),
        )
        .await
        .result();
    world.get(&format!("{project}/domains")).await.result();
    let domain = format!("{project}/domains/www.example.org");
    world.get(&domain).await.result();
    world.patch(&domain, Value::Null).await.result();
    world.delete(&domain).await.result();
    world.delete(project).await.result();
}

async fn delete_all(world: &World, storage: &Value) {
    world
        .delete(&format!(
            "/accounts/{{a}}/d1/database/{}",
            text(storage, "d1")
        ))
        .await
        .result();
    world
        .delete(&format!(
            "/accounts/{{a}}/storage/kv/namespaces/{}",
            text(storage, "kv")
        ))
        .await
        .result();
    world
        .delete("/accounts/{a}/r2/buckets/bucket/objects/a/b.txt")
        .await
        .result();
    world
        .delete("/accounts/{a}/r2/buckets/bucket")
        .await
        .result();
    world
        .delete("/accounts/{a}/workers/scripts/w?force=true")
        .await
        .result();
    world.upload("v", json!({})).await.result();
    world
        .delete("/accounts/{a}/workers/services/v?force=true")
        .await
        .result();
}

/// Calls every operation of the fake at least once and returns the exchanges.
pub(super) async fn drive() -> Vec<Exchange> {
    let world = World::start().await;
    let storage = drive_storage(&world).await;
    drive_workers(&world, &storage).await;
    drive_zone(&world).await;
    drive_pages(&world).await;
    delete_all(&world, &storage).await;
    world.fake.exchanges()
}
