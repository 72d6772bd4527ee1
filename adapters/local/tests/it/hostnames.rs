//! Tests of the hostnames of sites and workers, of lists of an owner's objects, and of secrets.

use core_domain::kernel::Secret;
use core_domain::port::{
    HostnameState, Infrastructure, ProviderError, RouteHostname, ServeHostname, SetSecrets,
};
use core_domain::registry::ResourceType;

use crate::host::{body, get};
use crate::support::{OWNER, World, request, resource, world};

const OURS: &str = "shop.example.org";
const THEIRS: &str = "www.customer.example";

pub(crate) fn to(hostname: &str, kind: ResourceType, name: &str) -> RouteHostname {
    RouteHostname {
        hostname: hostname.to_owned(),
        target: resource(kind, name),
        owner: OWNER.to_owned(),
        effect_key: "route-1".to_owned(),
    }
}

fn serving(hostname: &str, owner: &str) -> ServeHostname {
    ServeHostname {
        hostname: hostname.to_owned(),
        target_dns: OURS.to_owned(),
        target: resource(ResourceType::Pages, "acme-site"),
        owner: owner.to_owned(),
        effect_key: "serve-1".to_owned(),
    }
}

async fn site() -> World {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "front")])
        .await;
    world
}

fn is_taken<T>(answer: Result<T, ProviderError>) -> bool {
    matches!(answer, Err(ProviderError::NameTaken(_)))
}

fn is_refused<T>(answer: Result<T, ProviderError>) -> bool {
    matches!(answer, Err(ProviderError::Permanent(_)))
}

#[tokio::test]
async fn platform_hostname_serves_its_site_after_a_restart() {
    let world = site().await;
    let wanted = to(OURS, ResourceType::Pages, "acme-site");
    let route = world.infra.route_hostname(&wanted).await.unwrap();
    assert_eq!(route.target, "acme-site");
    assert_eq!(world.infra.route_hostname(&wanted).await.unwrap(), route);

    let world = world.reopen().await;
    assert_eq!(world.infra.get_route(OURS).await.unwrap(), Some(route));
    for host in [OURS, "SHOP.example.org:8090", "acme-site.localhost:8090"] {
        let answer = get(&world, &format!("http://{host}/")).await;
        assert_eq!(body(answer).await, "front", "{host}");
    }
}

#[tokio::test]
async fn route_of_another_object_is_neither_replaced_nor_removed() {
    let world = site().await;
    world.project("acme-other").await;
    let pages = ResourceType::Pages;
    world
        .infra
        .route_hostname(&to(OURS, pages, "acme-site"))
        .await
        .unwrap();
    let other = to(OURS, pages, "acme-other");
    assert!(is_taken(world.infra.route_hostname(&other).await));
    assert!(is_taken(
        world.infra.remove_route(OURS, &other.target).await
    ));

    let target = resource(pages, "acme-site");
    world.infra.remove_route(OURS, &target).await.unwrap();
    world.infra.remove_route(OURS, &target).await.unwrap();
    assert_eq!(world.infra.get_route(OURS).await.unwrap(), None);
    assert_eq!(get(&world, &format!("http://{OURS}/")).await.status(), 404);
}

#[tokio::test]
async fn invalid_routes_are_refused_and_object_addresses_cannot_be_taken() {
    let world = site().await;
    world
        .infra
        .create(&request(ResourceType::Kv, "acme-cache"))
        .await
        .unwrap();
    let pages = ResourceType::Pages;
    let foreign = RouteHostname {
        owner: "platform-2".to_owned(),
        ..to(OURS, pages, "acme-site")
    };
    for refused in [
        foreign,
        to(OURS, pages, "acme-none"),
        to(OURS, ResourceType::Worker, "acme-site"),
        to(OURS, ResourceType::Kv, "acme-cache"),
        to("no hostname", pages, "acme-site"),
        to("../route", pages, "acme-site"),
    ] {
        let answer = world.infra.route_hostname(&refused).await;
        assert!(is_refused(answer), "{refused:?}");
    }
    let hiding = to("acme-site.localhost", pages, "acme-site");
    assert!(is_taken(world.infra.route_hostname(&hiding).await));
    let hiding = serving("acme-site.localhost", OWNER);
    assert!(is_taken(world.infra.serve_hostname(&hiding).await));
}

#[tokio::test]
async fn customer_hostname_serves_its_object_and_can_be_moved() {
    let world = site().await;
    let target = resource(ResourceType::Pages, "acme-site");
    let wanted = serving(THEIRS, OWNER);
    let served = world.infra.serve_hostname(&wanted).await.unwrap();
    assert_eq!(served.state, HostnameState::Active);
    assert_eq!(served.target.as_deref(), Some("acme-site"));
    assert_eq!(world.infra.serve_hostname(&wanted).await.unwrap(), served);

    let world = world.reopen().await;
    let url = format!("http://{THEIRS}/");
    assert_eq!(body(get(&world, &url).await).await, "front");
    let known = world
        .infra
        .get_served_hostname(THEIRS, OWNER, &target)
        .await;
    assert_eq!(known.unwrap(), Some(served.clone()));

    world.project("acme-other").await;
    world
        .deploy("acme-other", "d-2", &[("index.html", "other")])
        .await;
    let other = ServeHostname {
        target: resource(ResourceType::Pages, "acme-other"),
        ..wanted
    };
    let moved = world.infra.serve_hostname(&other).await.unwrap();
    assert_eq!(moved.id, served.id);
    assert_eq!(body(get(&world, &url).await).await, "other");

    for _ in 0..2 {
        let stopped = world.infra.stop_serving(THEIRS, OWNER, &target).await;
        stopped.unwrap();
    }
    assert_eq!(get(&world, &url).await.status(), 404);
}

#[tokio::test]
async fn customer_hostname_belongs_to_one_owner() {
    let world = site().await;
    let target = resource(ResourceType::Pages, "acme-site");
    let wanted = serving(THEIRS, OWNER);
    world.infra.serve_hostname(&wanted).await.unwrap();
    let mut theirs = request(ResourceType::Pages, "looms-site");
    theirs.owner = "platform-2".to_owned();
    world.infra.create(&theirs).await.unwrap();
    let foreign = ServeHostname {
        target: theirs.resource.clone(),
        ..serving(THEIRS, "platform-2")
    };
    assert!(is_taken(world.infra.serve_hostname(&foreign).await));
    let stopped = world.infra.stop_serving(THEIRS, "platform-2", &target);
    assert!(is_taken(stopped.await));
    let unseen = world
        .infra
        .get_served_hostname(THEIRS, "platform-2", &target);
    assert_eq!(unseen.await.unwrap(), None);
    let route = RouteHostname {
        target: theirs.resource.clone(),
        owner: theirs.owner.clone(),
        ..to(THEIRS, ResourceType::Pages, "looms-site")
    };
    assert!(is_taken(world.infra.route_hostname(&route).await));
    // The owner may have a route and a customer's hostname with the same name.
    let own = to(THEIRS, ResourceType::Pages, "acme-site");
    world.infra.route_hostname(&own).await.unwrap();
    // An owner cannot serve another owner's object.
    let foreign = serving("other.example.org", "platform-2");
    assert!(is_refused(world.infra.serve_hostname(&foreign).await));
}

#[tokio::test]
async fn hostnames_and_secrets_are_deleted_with_their_object() {
    let world = site().await;
    let wanted = to(OURS, ResourceType::Pages, "acme-site");
    world.infra.route_hostname(&wanted).await.unwrap();
    let served = serving(THEIRS, OWNER);
    world.infra.serve_hostname(&served).await.unwrap();
    let target = wanted.target.clone();
    world.infra.set_secrets(&secrets(&["TOKEN"])).await.unwrap();
    world.infra.remove(&target, OWNER).await.unwrap();
    assert_eq!(world.infra.get_route(OURS).await.unwrap(), None);
    let served = world
        .infra
        .get_served_hostname(THEIRS, OWNER, &target)
        .await;
    assert_eq!(served.unwrap(), None);
    world.project("acme-site").await;
    let names = world.infra.secret_names(&target).await.unwrap();
    assert!(names.is_empty());
}

fn secrets(names: &[&str]) -> SetSecrets {
    let value = |name: &&str| ((*name).to_owned(), Secret::new("open sesame"));
    SetSecrets {
        resource: resource(ResourceType::Pages, "acme-site"),
        owner: OWNER.to_owned(),
        secrets: names.iter().map(value).collect(),
        deleted: Vec::new(),
    }
}

#[tokio::test]
async fn setting_secrets_keeps_the_others_and_lists_only_names() {
    let world = site().await;
    world
        .infra
        .set_secrets(&secrets(&["TOKEN", "KEY"]))
        .await
        .unwrap();
    world.infra.set_secrets(&secrets(&["LATER"])).await.unwrap();
    let world = world.reopen().await;
    let pages = resource(ResourceType::Pages, "acme-site");
    let names = world.infra.secret_names(&pages).await.unwrap();
    assert_eq!(names, ["KEY", "LATER", "TOKEN"]);
    let other = resource(ResourceType::Pages, "acme-none");
    assert!(world.infra.secret_names(&other).await.unwrap().is_empty());
}

#[tokio::test]
async fn invalid_secret_requests_are_refused_completely() {
    let world = site().await;
    let foreign = SetSecrets {
        owner: "platform-2".to_owned(),
        ..secrets(&["TOKEN"])
    };
    assert!(is_taken(world.infra.set_secrets(&foreign).await));
    let missing = SetSecrets {
        resource: resource(ResourceType::Worker, "acme-none"),
        ..secrets(&["TOKEN"])
    };
    let many: Vec<String> = (0..=100).map(|n| format!("N{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for refused in [missing, secrets(&["TOKEN", "not a name"]), secrets(&many)] {
        assert!(is_refused(world.infra.set_secrets(&refused).await));
    }
    let pages = resource(ResourceType::Pages, "acme-site");
    assert!(world.infra.secret_names(&pages).await.unwrap().is_empty());
}

#[tokio::test]
async fn owned_objects_are_listed_in_pages_without_those_of_others() {
    let world = world().await;
    for n in 0..201 {
        let mut request = request(ResourceType::R2, &format!("acme-{n:03}"));
        if n % 2 == 1 {
            request.owner = "platform-2".to_owned();
        }
        world.infra.create(&request).await.unwrap();
    }
    let mut names = Vec::new();
    let mut cursor = None;
    loop {
        let page = world
            .infra
            .list_owned(OWNER, ResourceType::R2, cursor)
            .await
            .unwrap();
        names.extend(page.objects.into_iter().map(|object| object.name));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..=200)
        .step_by(2)
        .map(|n| format!("acme-{n:03}"))
        .collect();
    assert_eq!(names, expected);
    let none = world
        .infra
        .list_owned(OWNER, ResourceType::Kv, None)
        .await
        .unwrap();
    assert!(none.objects.is_empty() && none.next.is_none());
}
