//! Tests of the limits of the stores and of the calls that workers make to them.

use std::collections::BTreeMap;
use std::time::Duration;

use core_domain::port::{Infrastructure, ObjectRequest};
use core_domain::registry::ResourceType;
use core_local::{BindingLimits, KvEntry, LocalError, ObjectMetadata, WorkerdOptions};
use serde_json::{Value, json};

use crate::host::{body, get};
use crate::running::running;
use crate::support::{World, request, script, world, world_of};

async fn world_within(limits: BindingLimits) -> World {
    world_of(|config| config.workers.bindings = limits).await
}

fn is_limit<T>(result: Result<T, LocalError>) -> bool {
    matches!(result, Err(LocalError::Limit(_)))
}

#[tokio::test]
async fn kv_values_metadata_and_lists_are_limited() {
    let world = world().await;
    let namespace = request(ResourceType::Kv, "acme-cache");
    world.infra.create(&namespace).await.unwrap();
    let kv = world.infra.kv("acme-cache").await.unwrap();
    let entry = |value: usize, metadata: usize| KvEntry {
        value: vec![0; value],
        metadata: Some("m".repeat(metadata)),
        expires_at: None,
    };
    let largest = 25 * 1024 * 1024;
    kv.put_entry("large", entry(largest, 1024)).await.unwrap();
    assert!(is_limit(kv.put_entry("large", entry(largest + 1, 0)).await));
    assert!(is_limit(kv.put_entry("large", entry(0, 1025)).await));
    assert_eq!(kv.get("large").await.unwrap().unwrap().len(), largest);
    for number in 0..1_001 {
        kv.put(&format!("k{number:04}"), b"", None).await.unwrap();
    }
    let page = kv.list("k", "", u32::MAX).await.unwrap();
    assert_eq!(page.len(), 1_000);
    assert_eq!(kv.list("k", "k0999", 10).await.unwrap(), ["k1000"]);
}

#[tokio::test]
async fn full_namespace_or_queue_refuses_writes_and_keeps_its_data() {
    let world = world_within(BindingLimits {
        database_bytes: 256 * 1024,
        ..BindingLimits::default()
    })
    .await;
    for (kind, name) in [
        (ResourceType::Kv, "acme-cache"),
        (ResourceType::Queue, "acme-events"),
    ] {
        world.infra.create(&request(kind, name)).await.unwrap();
    }
    let kv = world.infra.kv("acme-cache").await.unwrap();
    kv.put("small", b"kept", None).await.unwrap();
    assert!(is_limit(kv.put("large", &[1; 300 * 1024], None).await));
    assert_eq!(kv.get("small").await.unwrap().unwrap(), b"kept");
    assert_eq!(kv.get("large").await.unwrap(), None);

    let queue = world.infra.queue("acme-events").await.unwrap();
    let mut pushed = 0;
    while queue.push(&[1; 64 * 1024], Duration::ZERO).await.is_ok() {
        pushed += 1;
    }
    assert!((1..4).contains(&pushed), "{pushed}");
    assert_eq!(queue.backlog().await.unwrap(), (pushed, pushed * 64 * 1024));
}

#[tokio::test]
async fn queue_batches_are_limited_and_the_backlog_is_exact() {
    let world = world().await;
    let events = request(ResourceType::Queue, "acme-events");
    world.infra.create(&events).await.unwrap();
    let queue = world.infra.queue("acme-events").await.unwrap();
    let messages = |count: usize, bytes: usize| vec![(vec![0; bytes], Duration::ZERO); count];
    for (count, bytes) in [(101, 1), (3, 100 * 1024)] {
        assert!(is_limit(queue.push_all(messages(count, bytes)).await));
    }
    assert_eq!(queue.backlog().await.unwrap(), (0, 0));
    queue.push_all(messages(100, 1)).await.unwrap();
    queue.push_all(messages(2, 128 * 1024)).await.unwrap();
    assert_eq!(queue.backlog().await.unwrap(), (102, 100 + 256 * 1024));
    let pulled = queue.pull(u32::MAX, Duration::from_secs(60)).await.unwrap();
    assert_eq!(pulled.len(), 100);
    for message in &pulled {
        assert!(queue.ack(message).await.unwrap());
    }
    assert_eq!(queue.backlog().await.unwrap(), (2, 256 * 1024));
}

#[tokio::test]
async fn bucket_objects_metadata_and_lists_are_limited() {
    let world = world_within(BindingLimits {
        object_bytes: 1_000,
        ..BindingLimits::default()
    })
    .await;
    let assets = request(ResourceType::R2, "acme-assets");
    world.infra.create(&assets).await.unwrap();
    let bucket = world.infra.bucket("acme-assets").await.unwrap();
    bucket.put("a", "", vec![0; 1_000]).await.unwrap();
    assert!(is_limit(bucket.put("a", "", vec![0; 1_001]).await));
    assert_eq!(bucket.get("a").await.unwrap().unwrap().content, [0; 1_000]);
    let metadata = |bytes: usize| ObjectMetadata {
        content_type: "text/plain".to_owned(),
        http: BTreeMap::from([("cacheControl".to_owned(), "no-store".to_owned())]),
        custom: BTreeMap::from([("note".to_owned(), "x".repeat(bytes))]),
    };
    // Each pair counts 32 additional bytes.
    let others = "text/plaincacheControlno-storenote".len() + 2 * 32;
    let put = |bytes| bucket.put_object("b", metadata(bytes), bytes::Bytes::new());
    let info = put(8_192 - others).await.unwrap();
    assert_eq!(bucket.head("b").await.unwrap().unwrap(), info);
    assert!(is_limit(put(8_192 - others + 1).await));
    for number in 0..1_001 {
        let key = format!("k{number:04}");
        bucket.put(&key, "", Vec::new()).await.unwrap();
    }
    let page = bucket.list("k", "", usize::MAX).await.unwrap();
    assert_eq!(page.len(), 1_000);
    assert_eq!(page[999].key, "k0999");
    let pairs = (0..300).map(|nth| (format!("{nth}"), String::new()));
    let many = ObjectMetadata {
        custom: pairs.collect(),
        ..ObjectMetadata::default()
    };
    assert!(is_limit(
        bucket.put_object("b", many, bytes::Bytes::new()).await
    ));
    // A page of objects with long metadata contains fewer objects.
    for number in 0..300 {
        let key = format!("m{number:04}");
        let put = bucket.put_object(&key, metadata(8_192 - others), bytes::Bytes::new());
        put.await.unwrap();
    }
    let first = bucket.list("m", "", usize::MAX).await.unwrap();
    assert!((200..300).contains(&first.len()), "{}", first.len());
    let last = &first[first.len() - 1].key;
    let second = bucket.list("m", last, usize::MAX).await.unwrap();
    assert_eq!(first.len() + second.len(), 300);
    assert!(world.staging().is_empty());
}

/// Creates a worker with every store. The path of a request selects one of the JavaScript functions in `calls`.
async fn worker(limits: BindingLimits, calls: &str) -> Option<World> {
    let options = WorkerdOptions {
        bindings: limits,
        ..WorkerdOptions::default()
    };
    let world = running(options).await?;
    let mut bindings = Vec::new();
    for (name, kind) in [
        ("CACHE", ResourceType::Kv),
        ("DB", ResourceType::D1),
        ("ASSETS", ResourceType::R2),
        ("EVENTS", ResourceType::Queue),
    ] {
        let resource = format!("acme-{}", kind.as_str());
        world.infra.create(&request(kind, &resource)).await.unwrap();
        bindings.push(json!({ "name": name, "type": kind.as_str(), "resource": resource }));
    }
    let text = format!(
        "const calls = {{ {calls} }};
         export default {{ async fetch(request, env) {{
           const call = calls[new URL(request.url).pathname.slice(1)];
           try {{ return Response.json((await call(env)) ?? null); }}
           catch (error) {{ return new Response(String(error), {{ status: 500 }}); }}
         }} }};"
    );
    let create = ObjectRequest {
        config: script(&text, &Value::Array(bindings)),
        ..request(ResourceType::Worker, "acme-api")
    };
    world.infra.create(&create).await.unwrap();
    Some(world)
}

async fn call(world: &World, name: &str) -> (u16, String) {
    let answer = get(world, &format!("http://acme-api.localhost/{name}")).await;
    (answer.status().as_u16(), body(answer).await)
}

#[tokio::test]
async fn call_that_exceeds_a_limit_throws_and_the_worker_continues() {
    let limits = BindingLimits {
        result_rows: 1_000,
        call_timeout: Duration::from_millis(500),
        ..BindingLimits::default()
    };
    let calls = r#"
      rows: ({ DB }) => DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n").all(),
      time: ({ DB }) => DB.prepare("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n").all(),
      blob: ({ DB }) => DB.prepare("SELECT hex(randomblob(2000000)) AS x").first(),
      params: ({ DB }) => DB.prepare("SELECT 1").bind(...Array(101).fill(1)).first(),
      path: ({ DB }) => DB.prepare("PRAGMA database_list").all(),
      value: ({ CACHE }) => CACHE.put("k", new Uint8Array(25 * 1024 * 1024 + 1)),
      key: ({ CACHE }) => CACHE.put("k".repeat(513), ""),
      object_key: ({ ASSETS }) => ASSETS.put("k".repeat(1025), ""),
      object_metadata: ({ ASSETS }) => ASSETS.put("k", "", { customMetadata: { x: "x".repeat(8193) } }),
      message: ({ EVENTS }) => EVENTS.send("x".repeat(128 * 1024 + 1), { contentType: "text" }),
      batch: ({ EVENTS }) => EVENTS.sendBatch(Array(101).fill({ body: "x" })),
      batch_bytes: ({ EVENTS }) => EVENTS.sendBatch(Array(3).fill({ body: "x".repeat(100 * 1024), contentType: "text" })),
      fine: async ({ DB, CACHE, ASSETS, EVENTS }) => {
        await CACHE.put("k", "v");
        await ASSETS.put("o", "content");
        await EVENTS.send("x");
        return [await DB.prepare("SELECT 1 AS x").first("x"), await CACHE.get("k"), await (await ASSETS.get("o")).text()];
      },
    "#;
    let Some(world) = worker(limits, calls).await else {
        return;
    };
    for (name, expected) in [
        ("rows", "1000 rows"),
        ("time", "0.5 seconds"),
        ("blob", "too big"),
        ("params", ""),
        ("path", "not authorized"),
        ("value", "413"),
        ("key", "512"),
        ("object_key", ""),
        ("object_metadata", ""),
        ("message", ""),
        ("batch", ""),
        ("batch_bytes", ""),
    ] {
        let (status, text) = call(&world, name).await;
        assert_eq!(status, 500, "{name}: {text}");
        assert!(text.contains(expected), "{name}: {text}");
        assert!(
            !text.contains(world.folder.path().to_str().unwrap()),
            "{text}"
        );
        let fine = (200, r#"[1,"v","content"]"#.to_owned());
        assert_eq!(call(&world, "fine").await, fine, "after {name}");
    }
}

#[tokio::test]
async fn excess_calls_wait_and_then_fail() {
    let limits = BindingLimits {
        calls: 2,
        call_wait: Duration::from_millis(500),
        ..BindingLimits::default()
    };
    let calls = r#"
      many: async ({ CACHE }) => {
        await CACHE.put("k", "v");
        return (await Promise.all(Array.from({ length: 40 }, () => CACHE.get("k")))).join("");
      },
      unread: async ({ CACHE }) => {
        await CACHE.put("k", new Uint8Array(8 * 1024 * 1024));
        const streams = [await CACHE.get("k", "stream"), await CACHE.get("k", "stream")];
        const third = await CACHE.get("k", "stream").then(() => "found", String);
        for (const stream of streams) await new Response(stream).arrayBuffer();
        return [third, (await CACHE.get("k", "arrayBuffer")).byteLength];
      },
    "#;
    let Some(world) = worker(limits, calls).await else {
        return;
    };
    let many = (200, format!("\"{}\"", "v".repeat(40)));
    assert_eq!(call(&world, "many").await, many);
    let (status, text) = call(&world, "unread").await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("429") && text.contains("8388608"), "{text}");
}

#[tokio::test]
async fn unread_values_respect_the_memory_limit_of_the_worker() {
    let limits = BindingLimits {
        memory_bytes: 10 * 1024 * 1024,
        ..BindingLimits::default()
    };
    let calls = r#"
      unread: async ({ CACHE }) => {
        await CACHE.put("k", new Uint8Array(8 * 1024 * 1024));
        const stream = await CACHE.get("k", "stream");
        const second = await CACHE.get("k", "stream").then(() => "found", String);
        await new Response(stream).arrayBuffer();
        return [second, (await CACHE.get("k", "arrayBuffer")).byteLength];
      },
    "#;
    let Some(world) = worker(limits, calls).await else {
        return;
    };
    let (status, text) = call(&world, "unread").await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("413") && text.contains("8388608"), "{text}");
}

#[tokio::test]
async fn object_larger_than_the_memory_limit_is_streamed_both_ways() {
    let limits = BindingLimits {
        memory_bytes: 1024 * 1024,
        object_bytes: 20 * 1024 * 1024,
        ..BindingLimits::default()
    };
    let calls = r#"
      streamed: async ({ ASSETS }) => {
        const sent = new Uint8Array(20 * 1024 * 1024).map((_, at) => at % 251);
        const { size } = await ASSETS.put("large", sent);
        const got = new Uint8Array(await (await ASSETS.get("large")).arrayBuffer());
        const piece = await ASSETS.get("large", { range: { offset: 5000001, length: 3 } });
        const refused = await ASSETS.put("large", new Uint8Array(20 * 1024 * 1024 + 1)).then(() => "stored", String);
        return [size, got.length, got.every((byte, at) => byte === at % 251), ...new Uint8Array(await piece.arrayBuffer()), refused];
      },
    "#;
    let Some(world) = worker(limits, calls).await else {
        return;
    };
    let (status, text) = call(&world, "streamed").await;
    assert_eq!(status, 200, "{text}");
    let answer: Vec<Value> = serde_json::from_str(&text).unwrap();
    let size = 20 * 1024 * 1024;
    let first = 5_000_001 % 251;
    let expected = [json!(size), json!(size), json!(true)];
    assert_eq!(answer[..3], expected);
    assert_eq!(answer[3..6], [first, first + 1, first + 2].map(Value::from));
    assert_ne!(answer[6], "stored");
    assert!(world.staging().iter().all(|name| !name.contains("large")));
}

#[tokio::test]
async fn excess_connections_are_refused_immediately() {
    let limits = BindingLimits {
        calls: 1,
        connections: 3,
        call_wait: Duration::from_millis(500),
        ..BindingLimits::default()
    };
    let calls = r#"
      many: async ({ CACHE }) => {
        await CACHE.put("k", new Uint8Array(8 * 1024 * 1024));
        const unread = await CACHE.get("k", "stream");
        const rest = await Promise.all(Array.from({ length: 6 }, () => CACHE.get("k", "stream").then(() => "found", () => "refused")));
        await new Response(unread).arrayBuffer();
        return [rest, (await CACHE.get("k", "arrayBuffer")).byteLength];
      },
    "#;
    let Some(world) = worker(limits, calls).await else {
        return;
    };
    let (status, text) = call(&world, "many").await;
    assert_eq!(status, 200, "{text}");
    let expected = json!([vec!["refused"; 6], 8_388_608]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}
