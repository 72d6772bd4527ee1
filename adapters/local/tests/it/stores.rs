//! Tests of key-value namespaces, queues and buckets.

use std::time::Duration;

use core_domain::port::Infrastructure;
use core_domain::registry::ResourceType;
use core_local::{KvNamespace, LocalError, Queue};

use crate::support::{OWNER, World, request, resource, world};

const MINUTE: Duration = Duration::from_secs(60);

async fn kv(world: &World) -> KvNamespace {
    world
        .infra
        .create(&request(ResourceType::Kv, "acme-cache"))
        .await
        .unwrap();
    world.infra.kv("acme-cache").await.unwrap()
}

async fn queue(world: &World) -> Queue {
    world
        .infra
        .create(&request(ResourceType::Queue, "acme-events"))
        .await
        .unwrap();
    world.infra.queue("acme-events").await.unwrap()
}

#[tokio::test]
async fn key_has_the_last_stored_value() {
    let world = world().await;
    let kv = kv(&world).await;
    assert_eq!(kv.get("a").await.unwrap(), None);
    kv.put("a", b"one", None).await.unwrap();
    kv.put("a", b"two\0\xff", None).await.unwrap();
    assert_eq!(kv.get("a").await.unwrap().unwrap(), b"two\0\xff");
    assert!(kv.delete("a").await.unwrap());
    assert!(!kv.delete("a").await.unwrap());
    assert_eq!(kv.get("a").await.unwrap(), None);
}

#[tokio::test]
async fn value_expires_after_its_lifetime() {
    let world = world().await;
    let kv = kv(&world).await;
    kv.put("short", b"x", Some(MINUTE)).await.unwrap();
    kv.put("long", b"x", None).await.unwrap();
    world.clock.advance(MINUTE - Duration::from_millis(1));
    assert!(kv.get("short").await.unwrap().is_some());
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(kv.get("short").await.unwrap(), None);
    assert_eq!(kv.list("", "", 10).await.unwrap(), ["long"]);
    kv.put("short", b"y", None).await.unwrap();
    assert!(kv.get("short").await.unwrap().is_some());
}

#[tokio::test]
async fn keys_are_listed_by_prefix_in_byte_order_and_pages() {
    let world = world().await;
    let kv = kv(&world).await;
    for key in ["b%1", "b_2", "a", "b%", "c", "B%", "bä"] {
        kv.put(key, b"", None).await.unwrap();
    }
    assert_eq!(
        kv.list("b", "", 10).await.unwrap(),
        ["b%", "b%1", "b_2", "bä"]
    );
    assert_eq!(kv.list("b%", "", 10).await.unwrap(), ["b%", "b%1"]);
    assert_eq!(kv.list("b", "", 2).await.unwrap(), ["b%", "b%1"]);
    assert_eq!(kv.list("b", "b%1", 2).await.unwrap(), ["b_2", "bä"]);
    assert_eq!(kv.list("", "", 100).await.unwrap().len(), 7);
    for bad in [String::new(), "k".repeat(513), "a\0b".to_owned()] {
        let refused = kv.put(&bad, b"", None).await;
        assert!(matches!(refused, Err(LocalError::Invalid(_))));
    }
}

#[tokio::test]
async fn messages_are_delivered_in_order_and_hidden_while_leased() {
    let world = world().await;
    let queue = queue(&world).await;
    for body in ["one", "two", "three"] {
        queue.push(body.as_bytes(), Duration::ZERO).await.unwrap();
    }
    let first = queue.pull(2, MINUTE).await.unwrap();
    let bodies: Vec<_> = first.iter().map(|message| message.body.clone()).collect();
    assert_eq!(bodies, [b"one".to_vec(), b"two".to_vec()]);
    let second = queue.pull(10, MINUTE).await.unwrap();
    assert_eq!(second.len(), 1);
    assert!(queue.pull(10, MINUTE).await.unwrap().is_empty());
    for message in first.iter().chain(&second) {
        assert!(queue.ack(message).await.unwrap());
    }
    world.clock.advance(MINUTE * 2);
    assert!(queue.pull(10, MINUTE).await.unwrap().is_empty());
}

#[tokio::test]
async fn unacknowledged_message_is_delivered_again_and_its_old_lease_is_void() {
    let world = world().await;
    let queue = queue(&world).await;
    queue.push(b"work", Duration::ZERO).await.unwrap();
    let lost = queue.pull(1, MINUTE).await.unwrap().remove(0);
    world.clock.advance(MINUTE);
    let again = queue.pull(1, MINUTE).await.unwrap().remove(0);
    assert_eq!((again.id, again.attempts), (lost.id, 2));
    assert!(!queue.ack(&lost).await.unwrap());
    assert!(!queue.release(&lost, Duration::ZERO).await.unwrap());
    assert!(queue.ack(&again).await.unwrap());
}

#[tokio::test]
async fn messages_can_be_delayed_and_released() {
    let world = world().await;
    let queue = queue(&world).await;
    queue.push(b"later", MINUTE).await.unwrap();
    assert!(queue.pull(1, MINUTE).await.unwrap().is_empty());
    world.clock.advance(MINUTE);
    let message = queue.pull(1, MINUTE).await.unwrap().remove(0);
    assert!(
        queue
            .release(&message, Duration::from_secs(5))
            .await
            .unwrap()
    );
    assert!(queue.pull(1, MINUTE).await.unwrap().is_empty());
    world.clock.advance(Duration::from_secs(5));
    assert_eq!(queue.pull(1, MINUTE).await.unwrap()[0].attempts, 2);
    let refused = queue.push(&vec![0; 128 * 1024 + 1], MINUTE).await;
    assert!(matches!(refused, Err(LocalError::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_pulls_never_return_the_same_message() {
    let world = world().await;
    let queue = queue(&world).await;
    for number in 0..40_u8 {
        queue.push(&[number], Duration::ZERO).await.unwrap();
    }
    let other = world.infra.queue("acme-events").await.unwrap();
    let pullers = [queue.clone(), other.clone(), queue, other]
        .map(|queue| tokio::spawn(async move { queue.pull(10, MINUTE).await.unwrap() }));
    let mut seen = Vec::new();
    for puller in pullers {
        seen.extend(puller.await.unwrap().into_iter().map(|message| message.id));
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=40).collect::<Vec<i64>>());
}

#[tokio::test]
async fn bucket_stores_content_type_and_etag_with_the_content() {
    let world = world().await;
    world
        .infra
        .create(&request(ResourceType::R2, "acme-assets"))
        .await
        .unwrap();
    let bucket = world.infra.bucket("acme-assets").await.unwrap();
    let first = bucket
        .put("a.txt", "text/plain", b"one\ntwo".to_vec())
        .await
        .unwrap();
    assert_eq!(first.size, 7);
    let object = bucket.get("a.txt").await.unwrap().unwrap();
    assert_eq!(
        (object.info, object.content),
        (first.clone(), b"one\ntwo".to_vec())
    );
    let second = bucket
        .put("a.txt", "text/html", b"three".to_vec())
        .await
        .unwrap();
    assert_ne!(first.etag, second.etag);
    assert_eq!(bucket.get("a.txt").await.unwrap().unwrap().info, second);
    assert!(bucket.delete("a.txt").await.unwrap());
    assert!(!bucket.delete("a.txt").await.unwrap());
    assert_eq!(bucket.get("a.txt").await.unwrap(), None);
}

#[tokio::test]
async fn bucket_accepts_every_key_safely() {
    let world = world().await;
    world
        .infra
        .create(&request(ResourceType::R2, "acme-assets"))
        .await
        .unwrap();
    let bucket = world.infra.bucket("acme-assets").await.unwrap();
    let long = "k".repeat(1024);
    let mut keys = [
        "../../escape",
        "/etc/passwd",
        "a/b",
        "a",
        "..",
        "x\0y\n",
        "grüße",
        "CON",
        &long,
    ];
    for key in keys {
        bucket
            .put(key, "text/plain", key.as_bytes().to_vec())
            .await
            .unwrap();
    }
    for key in keys {
        assert_eq!(
            bucket.get(key).await.unwrap().unwrap().content,
            key.as_bytes()
        );
    }
    keys.sort_unstable();
    let listed = bucket.list("", "", 100).await.unwrap();
    assert!(listed.iter().map(|info| &*info.key).eq(keys));
    assert_eq!(bucket.list("a", "a", 5).await.unwrap()[0].key, "a/b");
    assert_eq!(std::fs::read_dir(world.folder.path()).unwrap().count(), 1);
    for bad in [String::new(), "k".repeat(1025)] {
        let refused = bucket.put(&bad, "", Vec::new()).await;
        assert!(matches!(refused, Err(LocalError::Invalid(_))));
    }
}

#[tokio::test]
async fn missing_and_removed_stores_cannot_be_opened() {
    let world = world().await;
    let missing = |error| matches!(error, LocalError::Missing(_));
    assert!(world.infra.kv("acme-none").await.is_err_and(missing));
    assert!(world.infra.queue("acme-none").await.is_err_and(missing));
    assert!(world.infra.bucket("acme-none").await.is_err_and(missing));
    assert!(world.infra.database("acme-none").await.is_err_and(missing));
    world
        .infra
        .create(&request(ResourceType::R2, "acme-gone"))
        .await
        .unwrap();
    let bucket = world.infra.bucket("acme-gone").await.unwrap();
    let target = resource(ResourceType::R2, "acme-gone");
    world.infra.remove(&target, OWNER).await.unwrap();
    let put = bucket.put("key", "text/plain", Vec::new()).await;
    assert!(put.is_err_and(missing));
    assert!(bucket.get("key").await.is_err_and(missing));
}
