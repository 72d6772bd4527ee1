//! Tests of objects: created once, found by exact name, deleted with their contents, and never taken from other owners.

use core_cloudflare_fake::{Fault, Kind, Settings, Silence};
use core_domain::port::{Infrastructure, ObjectRequest, ProviderError, ResourceRef};
use core_domain::registry::ResourceType;
use http::Method;
use serde_json::json;

use crate::operations::kind;
use crate::world::{OWNER, STRANGER, World, name_for, request, resource};

#[tokio::test]
async fn create_and_remove_can_be_repeated() {
    for &of in ResourceType::ALL {
        let world = World::new().await;
        assert_eq!(world.cloudflare.observe(&resource(of)).await.unwrap(), None);
        let first = world.make(of).await;
        assert_eq!(world.make(of).await, first, "{of}");
        assert_eq!(
            world.cloudflare.observe(&resource(of)).await.unwrap(),
            Some(first)
        );
        assert_eq!(world.fake.count(kind(of)), 1, "{of}");
        world.cloudflare.remove(&resource(of), OWNER).await.unwrap();
        assert_eq!(world.cloudflare.observe(&resource(of)).await.unwrap(), None);
        world.cloudflare.remove(&resource(of), OWNER).await.unwrap();
        assert_eq!(world.fake.count(kind(of)), 0, "{of}");
    }
}

#[tokio::test]
async fn concurrent_requests_make_one_object() {
    for &of in ResourceType::ALL {
        let world = World::new().await;
        let (request, cloudflare) = (request(of), &world.cloudflare);
        let both = tokio::join!(cloudflare.create(&request), cloudflare.create(&request));
        assert_eq!(both.0.unwrap().id, both.1.unwrap().id, "{of}");
        assert_eq!(world.fake.count(kind(of)), 1, "{of}");
    }
}

#[tokio::test]
async fn object_of_another_platform_is_neither_replaced_nor_removed() {
    for &of in ResourceType::ALL {
        let world = World::new().await;
        world.make(of).await;
        let taken = Err(ProviderError::NameTaken(resource(of).name));
        assert_eq!(
            world.cloudflare.remove(&resource(of), STRANGER).await,
            taken
        );
        let theirs = ObjectRequest {
            owner: STRANGER.to_owned(),
            ..request(of)
        };
        assert!(world.cloudflare.create(&theirs).await.is_err(), "{of}");
        assert_eq!(world.fake.count(kind(of)), 1, "{of}");
        // A name that does not identify its owner is refused too.
        let unmarked = !matches!(of, ResourceType::Worker | ResourceType::Pages);
        let nameless = ObjectRequest {
            resource: ResourceRef {
                resource_type: of,
                name: "shared-cache".to_owned(),
            },
            ..request(of)
        };
        let made = world.cloudflare.create(&nameless).await;
        assert_eq!(made.is_err(), unmarked, "{of}: {made:?}");
    }
}

#[tokio::test]
async fn owned_lists_the_objects_of_one_platform_across_pages() {
    for &of in ResourceType::ALL {
        let world = World::new().await;
        world.make(of).await;
        let theirs = ObjectRequest {
            resource: ResourceRef {
                resource_type: of,
                name: name_for(STRANGER, of),
            },
            owner: STRANGER.to_owned(),
            ..request(of)
        };
        world.cloudflare.create(&theirs).await.unwrap();
        if of == ResourceType::Kv {
            fill_kv(&world, 250).await;
        }
        let (mut names, mut cursor) = (Vec::new(), None);
        loop {
            let page = world
                .cloudflare
                .list_owned(OWNER, of, cursor)
                .await
                .unwrap();
            names.extend(page.objects.into_iter().map(|object| object.name));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(names, [resource(of).name], "{of}");
    }
}

async fn fill_kv(world: &World, namespaces: usize) {
    let path = world.account("storage/kv/namespaces");
    for number in 0..namespaces {
        let body = json!({ "title": format!("namespace-{number:03}") }).to_string();
        world.api(Method::POST, &path, body).await;
    }
}

#[tokio::test]
async fn namespace_is_found_on_the_third_page() {
    let world = World::new().await;
    fill_kv(&world, 250).await;
    let made = world.make(ResourceType::Kv).await;
    world.fake.clear_requests();
    assert_eq!(world.make(ResourceType::Kv).await, made);
    assert_eq!(
        (world.paths("GET").len(), world.paths("POST").len()),
        (3, 0)
    );
}

#[tokio::test]
async fn database_with_a_longer_name_is_not_a_match() {
    let world = World::new().await;
    let longer = format!("{}-old", resource(ResourceType::D1).name);
    let body = json!({ "name": longer }).to_string();
    let other = world
        .api(Method::POST, &world.account("d1/database"), body)
        .await;
    assert_eq!(
        world
            .cloudflare
            .observe(&resource(ResourceType::D1))
            .await
            .unwrap(),
        None
    );
    let made = world.make(ResourceType::D1).await;
    assert_ne!(made.id, other["result"]["uuid"].as_str().unwrap());
    assert_eq!(world.fake.count(Kind::D1), 2);
}

#[tokio::test]
async fn creation_with_a_lost_response_is_found_without_a_second_request() {
    for (of, path) in [
        (ResourceType::D1, "d1/database"),
        (ResourceType::Kv, "storage/kv/namespaces"),
        (ResourceType::R2, "r2/buckets"),
        (ResourceType::Queue, "queues"),
        (ResourceType::Pages, "pages/projects"),
    ] {
        for fault in [
            Fault::StatusAfterEffect(500),
            Fault::TimeoutAfterEffect(Silence::Close),
            Fault::DuplicateRequest,
        ] {
            let world = World::new().await;
            world.fake.inject(world.matcher("POST", path), fault);
            let made = world.cloudflare.create(&request(of)).await.unwrap();
            let found = world.cloudflare.observe(&resource(of)).await.unwrap();
            assert_eq!(found, Some(made));
            assert_eq!(world.paths("POST").len(), 1, "{of}");
        }
    }
}

#[tokio::test]
async fn bucket_is_emptied_before_its_deletion() {
    let world = World::new().await;
    world.make(ResourceType::R2).await;
    let name = resource(ResourceType::R2).name;
    for number in 0..150 {
        let path = format!("r2/buckets/{name}/objects/folder%2F{number}%20%3F");
        world.api(Method::PUT, &world.account(&path), "x").await;
    }
    world
        .cloudflare
        .remove(&resource(ResourceType::R2), OWNER)
        .await
        .unwrap();
    assert_eq!(world.fake.count(Kind::R2), 0);
}

#[tokio::test]
async fn large_bucket_is_emptied_by_several_calls() {
    let in_no_time = |options: &mut core_cloudflare::CloudflareOptions| {
        options.emptying_time = std::time::Duration::from_nanos(1);
    };
    let world = World::with(Settings::default(), in_no_time).await;
    world.make(ResourceType::R2).await;
    let bucket = resource(ResourceType::R2);
    for number in 0..20 {
        let path = format!("r2/buckets/{}/objects/{number}", bucket.name);
        world.api(Method::PUT, &world.account(&path), "x").await;
    }
    let mut calls = 0;
    while let Err(error) = world.cloudflare.remove(&bucket, OWNER).await {
        assert_eq!(error, ProviderError::Unfinished);
        calls += 1;
        assert!(calls <= 20, "the calls make no progress");
    }
    assert!(calls > 0);
    assert_eq!(world.fake.count(Kind::R2), 0);
}

#[tokio::test]
async fn queue_consumers_are_detached_before_its_deletion() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let queue = world.make(ResourceType::Queue).await;
    let path = world.account(&format!("queues/{}/consumers", queue.id));
    let script = resource(ResourceType::Worker).name;
    let body = json!({ "type": "worker", "script_name": script }).to_string();
    world.api(Method::POST, &path, body).await;
    world
        .cloudflare
        .remove(&resource(ResourceType::Queue), OWNER)
        .await
        .unwrap();
    assert_eq!(world.fake.count(Kind::Queue), 0);
    let detached = world.paths("DELETE");
    assert!(detached[0].contains("/consumers/"), "{detached:?}");
}

#[tokio::test]
async fn project_url_is_the_returned_subdomain() {
    let name = resource(ResourceType::Pages).name;
    let settings = Settings {
        taken_pages_subdomains: vec![name.clone()],
        ..Settings::default()
    };
    let world = World::with(settings, |_| ()).await;
    let url = world.make(ResourceType::Pages).await.url.unwrap();
    assert!(url.starts_with(&format!("https://{name}-")), "{url}");
    assert!(url.ends_with(".pages.dev"), "{url}");
}
