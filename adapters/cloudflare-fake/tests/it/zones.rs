//! Tests of DNS records, routes, worker domains and custom hostnames.

use core_cloudflare_fake::Kind;
use serde_json::{Value, json};

use super::world::World;

const RECORDS: &str = "/zones/{z}/dns_records";
const ROUTES: &str = "/zones/{z}/workers/routes";
const DOMAINS: &str = "/accounts/{a}/workers/domains";
const HOSTNAMES: &str = "/zones/{z}/custom_hostnames";

fn record(kind: &str, name: &str, content: &str) -> Value {
    json!({"type": kind, "name": name, "content": content, "ttl": 1, "proxied": false})
}

#[tokio::test]
async fn duplicate_and_conflicting_records_are_refused() {
    let world = World::start().await;
    let made = world
        .post(RECORDS, record("CNAME", "www", "example.net"))
        .await
        .result();
    assert_eq!(made["name"], "www.example.com");
    let name = "www.example.com";
    let mut other_ttl = record("CNAME", name, "example.net");
    other_ttl["ttl"] = json!(60);
    for (body, refusal) in [
        (record("CNAME", name, "example.net"), (400, 81058)),
        (other_ttl, (400, 81057)),
        (record("CNAME", name, "example.org"), (400, 81053)),
        (record("A", name, "192.0.2.1"), (400, 81053)),
        (record("AAAA", name, "not an address"), (400, 9005)),
        (record("PIGEON", name, "x"), (400, 1004)),
        (
            json!({"type": "TXT", "name": name, "content": "x", "ttl": 59}),
            (400, 1004),
        ),
        (
            json!({"type": "TXT", "name": name, "content": "x", "proxied": true}),
            (400, 9004),
        ),
    ] {
        assert_eq!(
            world.post(RECORDS, body.clone()).await.failure(),
            refusal,
            "{body}"
        );
    }
    world
        .post(RECORDS, record("TXT", name, "one"))
        .await
        .result();
    world
        .post(RECORDS, record("TXT", name, "two"))
        .await
        .result();
    let path = format!("{RECORDS}/{}", made["id"].as_str().unwrap());
    let patched = world.patch(&path, json!({"proxied": true})).await.result();
    assert_eq!(
        (&patched["content"], &patched["proxied"]),
        (&json!("example.net"), &json!(true))
    );
    world.delete(&path).await.result();
    assert_eq!(world.delete(&path).await.failure(), (404, 81044));
    assert_eq!(world.fake.count(Kind::DnsRecord), 2);
}

#[tokio::test]
async fn records_are_found_by_exact_name() {
    let world = World::start().await;
    for name in ["a", "b.a", "c"] {
        world
            .post(RECORDS, record("A", name, "192.0.2.1"))
            .await
            .result();
    }
    world
        .post(RECORDS, record("TXT", "a", "text"))
        .await
        .result();
    for (query, count) in [
        ("name.exact=a.example.com&type=A", 1),
        ("name=a.example.com", 2),
        ("name.contains=a.example.com", 3),
        ("name.startswith=b&content.exact=192.0.2.1", 1),
        ("name.endswith=example.com&type=TXT", 1),
        ("name.exact=c.example.com&type=TXT&match=any", 2),
        ("name.exact=example.com", 0),
    ] {
        let found = world.get(&format!("{RECORDS}?{query}")).await.result();
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn zones_are_looked_up_by_name() {
    let world = World::start().await;
    let id = world.fake.add_zone("pending.test", "pending");
    let found = world.get("/zones?name=pending.test").await.result();
    assert_eq!(
        (&found[0]["id"], &found[0]["status"]),
        (&json!(id), &json!("pending"))
    );
    assert_eq!(world.get("/zones?name=test").await.result(), json!([]));
}

#[tokio::test]
async fn route_needs_a_pattern_of_the_zone_and_an_existing_worker() {
    let world = World::start().await;
    let route = |pattern: &str| json!({"pattern": pattern, "script": "w"});
    assert_eq!(
        world.post(ROUTES, route("example.com/*")).await.failure(),
        (400, 10019)
    );
    world.upload("w", json!({})).await.result();
    let made = world.post(ROUTES, route("example.com/*")).await.result();
    assert_eq!(
        world.post(ROUTES, route("example.com/*")).await.failure(),
        (409, 10020)
    );
    for pattern in [
        "other.test/*",
        "a*.example.com/",
        "example.com/*/x",
        "badexample.com/",
    ] {
        assert_eq!(
            world.post(ROUTES, route(pattern)).await.failure(),
            (400, 10022),
            "{pattern}"
        );
    }
    for pattern in ["*.example.com/*", "*example.com/x*", "a.example.com"] {
        world.post(ROUTES, route(pattern)).await.result();
    }
    let path = format!("{ROUTES}/{}", made["id"].as_str().unwrap());
    assert_eq!(
        world.delete(&path).await.result(),
        json!({"id": made["id"]})
    );
    assert_eq!(world.delete(&path).await.failure(), (404, 10009));
}

#[tokio::test]
async fn worker_domain_creates_its_record_and_conflicts_with_others() {
    let world = World::start().await;
    let domain = |hostname: &str, service: &str| json!({"hostname": hostname, "service": service});
    assert_eq!(
        world
            .put(DOMAINS, domain("app.example.com", "w"))
            .await
            .failure(),
        (404, 10007)
    );
    world.upload("w", json!({})).await.result();
    world.upload("v", json!({})).await.result();
    world
        .post(RECORDS, record("A", "taken", "192.0.2.1"))
        .await
        .result();
    assert_eq!(
        world
            .put(DOMAINS, domain("taken.example.com", "w"))
            .await
            .failure(),
        (409, 100_117)
    );
    assert_eq!(
        world
            .put(DOMAINS, domain("app.other.test", "w"))
            .await
            .failure(),
        (400, 100_116)
    );
    let made = world
        .put(DOMAINS, domain("app.example.com", "w"))
        .await
        .result();
    let moved = world
        .put(DOMAINS, domain("app.example.com", "v"))
        .await
        .result();
    assert_eq!(
        (&moved["id"], &moved["service"]),
        (&made["id"], &json!("v"))
    );
    assert_eq!(world.fake.count(Kind::DnsRecord), 2);
    let path = format!("{DOMAINS}/{}", made["id"].as_str().unwrap());
    assert_eq!(world.delete(&path).await.status, 200);
    assert_eq!(world.delete(&path).await.failure(), (404, 100_114));
    assert_eq!(world.fake.count(Kind::DnsRecord), 1);
}

#[tokio::test]
async fn hostname_is_active_before_its_certificate_and_patch_restarts_it() {
    let world = World::start().await;
    let ssl = json!({"method": "txt", "type": "dv"});
    let body = json!({"hostname": "shop.customer.test", "ssl": ssl});
    let made = world.post(HOSTNAMES, body.clone()).await.result();
    assert_eq!(
        made["ownership_verification"]["name"],
        "_cf-custom-hostname.shop.customer.test"
    );
    assert_eq!(world.post(HOSTNAMES, body).await.failure(), (409, 1406));
    assert_eq!(
        world
            .post(HOSTNAMES, json!({"hostname": "nodot"}))
            .await
            .failure(),
        (400, 1407)
    );
    let path = format!("{HOSTNAMES}/{}", made["id"].as_str().unwrap());
    let states = |hostname: &Value| {
        (
            hostname["status"].clone(),
            hostname["ssl"]["status"].clone(),
        )
    };
    let mut walked = Vec::new();
    for _ in 0..6 {
        walked.push(states(&world.get(&path).await.result()));
    }
    walked.dedup();
    let expected = [
        ("pending", "initializing"),
        ("pending", "pending_validation"),
        ("active", "pending_issuance"),
        ("active", "pending_deployment"),
        ("active", "active"),
    ];
    assert_eq!(
        walked,
        expected.map(|(status, ssl)| (json!(status), json!(ssl)))
    );
    world
        .fake
        .pin_hostname("shop.customer.test", "moved", "a_state_of_tomorrow");
    assert_eq!(
        states(&world.get(&path).await.result()),
        (json!("moved"), json!("a_state_of_tomorrow"))
    );
    assert_eq!(
        states(&world.patch(&path, json!({"ssl": ssl})).await.result()),
        (json!("pending"), json!("initializing"))
    );
    assert_eq!(world.delete(&path).await.json(), json!({"id": made["id"]}));
    assert_eq!(world.delete(&path).await.failure(), (404, 1436));
}

#[tokio::test]
async fn hostnames_are_found_by_name_and_state() {
    let world = World::start().await;
    for hostname in ["a.test", "b.a.test"] {
        world
            .post(HOSTNAMES, json!({"hostname": hostname}))
            .await
            .result();
    }
    for (query, count) in [
        ("hostname=a.test", 2),
        ("hostname.exact=a.test", 1),
        ("ssl_status=active", 0),
        ("hostname_status=pending", 2),
    ] {
        let found = world.get(&format!("{HOSTNAMES}?{query}")).await.result();
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
}
