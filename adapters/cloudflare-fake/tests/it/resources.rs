//! Tests of databases, buckets, namespaces and queues.

use core_cloudflare_fake::Kind;
use serde_json::{Value, json};

use super::world::World;

const D1: &str = "/accounts/{a}/d1/database";
const R2: &str = "/accounts/{a}/r2/buckets";
const KV: &str = "/accounts/{a}/storage/kv/namespaces";
const QUEUES: &str = "/accounts/{a}/queues";

#[tokio::test]
async fn names_are_unique_until_their_deletion() {
    let world = World::start().await;
    for (path, body, id, taken, missing, kind) in [
        (
            D1,
            json!({"name": "it"}),
            "uuid",
            (400, 7502),
            (404, 7404),
            Kind::D1,
        ),
        (
            R2,
            json!({"name": "its"}),
            "name",
            (409, 10004),
            (404, 10006),
            Kind::R2,
        ),
        (
            KV,
            json!({"title": "it"}),
            "id",
            (400, 10014),
            (404, 10013),
            Kind::Kv,
        ),
        (
            QUEUES,
            json!({"queue_name": "it"}),
            "queue_id",
            (409, 11009),
            (404, 11000),
            Kind::Queue,
        ),
    ] {
        let made = world.post(path, body.clone()).await.result();
        let one = format!("{path}/{}", made[id].as_str().unwrap());
        assert_eq!(world.post(path, body.clone()).await.failure(), taken);
        assert_eq!(world.fake.count(kind), 1);
        assert_eq!(world.delete(&one).await.status, 200);
        assert_eq!(world.fake.count(kind), 0);
        assert_eq!(world.delete(&one).await.failure(), missing);
        assert_eq!(world.post(path, body).await.status, 200);
    }
}

#[tokio::test]
async fn invalid_names_are_refused() {
    let world = World::start().await;
    let long = "x".repeat(64);
    for (path, field, names, refusal) in [
        (D1, "name", ["", "Upper", "-a"], (400, 7400)),
        (R2, "name", ["ab", "-abc", long.as_str()], (400, 10005)),
        (
            QUEUES,
            "queue_name",
            ["", "a_b", long.as_str()],
            (400, 11003),
        ),
    ] {
        for name in names {
            assert_eq!(
                world.post(path, json!({field: name})).await.failure(),
                refusal,
                "{path} {name}"
            );
        }
    }
    assert_eq!(world.post(KV, json!({})).await.failure(), (400, 10019));
    assert_eq!(
        world
            .post(KV, json!({"title": "x".repeat(513)}))
            .await
            .failure(),
        (400, 10012)
    );
}

#[tokio::test]
async fn databases_are_searched_by_a_part_of_the_name() {
    let world = World::start().await;
    for name in ["app", "app-2", "other"] {
        world.post(D1, json!({"name": name})).await.result();
    }
    let found = world.get(&format!("{D1}?name=app")).await.result();
    let names: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|database| &database["name"])
        .collect();
    assert_eq!(names, ["app", "app-2"]);
}

#[tokio::test]
async fn bucket_with_objects_is_not_deleted() {
    let world = World::start().await;
    world.post(R2, json!({"name": "bucket"})).await.result();
    for number in 0..3 {
        world
            .put(
                &format!("{R2}/bucket/objects/folder/{number}"),
                json!(number),
            )
            .await
            .result();
    }
    assert_eq!(
        world.delete(&format!("{R2}/bucket")).await.failure(),
        (409, 10008)
    );
    let mut cursor = String::new();
    let mut keys = Vec::new();
    loop {
        let reply = world
            .get(&format!("{R2}/bucket/objects?per_page=2&cursor={cursor}"))
            .await
            .json();
        keys.extend(
            reply["result"]
                .as_array()
                .unwrap()
                .iter()
                .map(|object| object["key"].as_str().unwrap().to_owned()),
        );
        cursor = reply["result_info"]["cursor"].as_str().unwrap().to_owned();
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(keys, ["folder/0", "folder/1", "folder/2"]);
    for key in keys {
        world
            .delete(&format!("{R2}/bucket/objects/{key}"))
            .await
            .result();
    }
    world.delete(&format!("{R2}/bucket")).await.result();
    assert_eq!(world.fake.count(Kind::R2), 0);
}

#[tokio::test]
async fn namespaces_are_listed_in_pages_of_at_most_100() {
    let world = World::start().await;
    for number in 0..205 {
        world
            .post(KV, json!({"title": format!("n{number}")}))
            .await
            .result();
    }
    let page = world.get(&format!("{KV}?per_page=100&page=3")).await.json();
    assert_eq!(page["result"].as_array().unwrap().len(), 5);
    let info =
        json!({"page": 3, "per_page": 100, "count": 5, "total_count": 205, "total_pages": 3});
    assert_eq!(page["result_info"], info);
    for query in ["per_page=101", "per_page=4", "page=0", "page=x"] {
        assert_eq!(
            world.get(&format!("{KV}?{query}")).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn values_are_stored_if_their_metadata_and_expiry_are_valid() {
    let world = World::start().await;
    let id = world.post(KV, json!({"title": "it"})).await.result()["id"].clone();
    let path = format!("{KV}/{}", id.as_str().unwrap());
    let parts = [
        ("value", None, b"text".to_vec()),
        ("metadata", None, b"{\"a\":1}".to_vec()),
    ];
    world
        .form("PUT", &format!("{path}/values/a%2Fb"), &parts)
        .await
        .result();
    assert_eq!(
        world.get(&format!("{path}/values/a%2Fb")).await.body,
        "text"
    );
    let no_json = [
        ("value", None, b"text".to_vec()),
        ("metadata", None, b"x".to_vec()),
    ];
    assert_eq!(
        world
            .form("PUT", &format!("{path}/values/c"), &no_json)
            .await
            .failure(),
        (400, 10012)
    );
    assert_eq!(
        world
            .put(&format!("{path}/values/c?expiration_ttl=59"), json!(1))
            .await
            .failure(),
        (400, 10012)
    );
    assert_eq!(
        world.get(&format!("{path}/values/c")).await.failure(),
        (404, 10009)
    );
}

#[tokio::test]
async fn queue_with_a_consumer_is_not_deleted_and_its_worker_must_exist() {
    let world = World::start().await;
    let queue = world
        .post(QUEUES, json!({"queue_name": "q"}))
        .await
        .result();
    let path = format!("{QUEUES}/{}", queue["queue_id"].as_str().unwrap());
    let consumer = json!({"type": "worker", "script_name": "w"});
    assert_eq!(
        world
            .post(&format!("{path}/consumers"), consumer.clone())
            .await
            .failure(),
        (400, 10007)
    );
    world.upload("w", json!({})).await.result();
    let consumer = world
        .post(&format!("{path}/consumers"), consumer)
        .await
        .result();
    assert_eq!(world.delete(&path).await.failure(), (409, 11005));
    let worker = "/accounts/{a}/workers/scripts/w";
    assert_eq!(world.delete(worker).await.failure(), (400, 10064));
    world
        .delete(&format!(
            "{path}/consumers/{}",
            consumer["consumer_id"].as_str().unwrap()
        ))
        .await;
    world.delete(worker).await.result();
    assert_eq!(world.delete(&path).await.status, 200);
    let delay = json!({"queue_name": "r", "settings": {"delivery_delay": 86_401}});
    assert_eq!(world.post(QUEUES, delay).await.failure(), (400, 100_128));
    assert_eq!(world.get(QUEUES).await.result(), Value::Array(Vec::new()));
}
