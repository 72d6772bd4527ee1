//! Tests of hostnames: platform hostnames serve workers and sites, customers' hostnames get certificates, and no
//! hostname is taken from another owner.

use core_cloudflare_fake::{Fault, HostnameTarget, Kind};
use core_domain::port::{
    HostnameState, Infrastructure, ObjectRequest, ProviderError, ResourceRef, RouteHostname,
    ServeHostname,
};
use core_domain::registry::{ResourceType, SslStatus};
use http::Method;
use serde_json::json;

use crate::operations::{CUSTOMERS, OURS, WILDCARD};
use crate::world::{OWNER, STRANGER, World, adapter, request, resource};

const SERVED: [ResourceType; 2] = [ResourceType::Worker, ResourceType::Pages];

fn to(hostname: &str, target: ResourceRef) -> RouteHostname {
    RouteHostname {
        hostname: hostname.to_owned(),
        target,
        owner: OWNER.to_owned(),
        effect_key: "effect".to_owned(),
    }
}

fn serve(owner: &str) -> ServeHostname {
    ServeHostname {
        hostname: CUSTOMERS.to_owned(),
        target_dns: OURS.to_owned(),
        target: worker(),
        owner: owner.to_owned(),
        effect_key: "effect".to_owned(),
    }
}

fn worker() -> ResourceRef {
    resource(ResourceType::Worker)
}

/// Creates an account with the worker that serves customers' hostnames.
async fn with_worker() -> World {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    world
}

#[tokio::test]
async fn hostname_serves_its_object_until_it_is_removed() {
    for of in SERVED {
        for hostname in [OURS, "example.com", WILDCARD] {
            if of == ResourceType::Pages && hostname.starts_with('*') {
                continue;
            }
            let world = World::new().await;
            world.make(of).await;
            let request = to(hostname, resource(of));
            assert_eq!(world.cloudflare.get_route(hostname).await.unwrap(), None);
            let made = world.cloudflare.route_hostname(&request).await.unwrap();
            assert_eq!(made.target, resource(of).name);
            assert_eq!(
                world.cloudflare.route_hostname(&request).await.unwrap(),
                made
            );
            assert_eq!(
                world.cloudflare.get_route(hostname).await.unwrap(),
                Some(made)
            );
            world
                .cloudflare
                .remove_route(hostname, &resource(of))
                .await
                .unwrap();
            world
                .cloudflare
                .remove_route(hostname, &resource(of))
                .await
                .unwrap();
            assert_eq!(world.cloudflare.get_route(hostname).await.unwrap(), None);
            for kind in [Kind::DnsRecord, Kind::Route, Kind::WorkerDomain] {
                assert_eq!(world.fake.count(kind), 0, "{of} {hostname}");
            }
        }
    }
}

#[tokio::test]
async fn hostname_with_another_target_is_not_changed() {
    for of in SERVED {
        let world = World::new().await;
        world.make(of).await;
        let record =
            json!({ "type": "CNAME", "name": OURS, "content": "old.example.net", "ttl": 1 });
        world
            .api(Method::POST, &world.zone("dns_records"), record.to_string())
            .await;
        let taken = ProviderError::NameTaken(OURS.to_owned());
        let made = world
            .cloudflare
            .route_hostname(&to(OURS, resource(of)))
            .await;
        assert_eq!(made, Err(taken.clone()));
        let removed = world.cloudflare.remove_route(OURS, &resource(of)).await;
        assert_eq!(removed, Err(taken));
        let found = world.cloudflare.get_route(OURS).await.unwrap().unwrap();
        assert_eq!(found.target, "old.example.net");
    }
    let world = World::new().await;
    for of in SERVED {
        world.make(of).await;
    }
    let [worker, site] = SERVED.map(resource);
    world
        .cloudflare
        .route_hostname(&to(OURS, worker.clone()))
        .await
        .unwrap();
    let taken = Err(ProviderError::NameTaken(OURS.to_owned()));
    assert_eq!(
        world
            .cloudflare
            .route_hostname(&to(OURS, site.clone()))
            .await,
        taken
    );
    let taken = Err(ProviderError::NameTaken(OURS.to_owned()));
    assert_eq!(world.cloudflare.remove_route(OURS, &site).await, taken);
    assert_eq!(
        world
            .cloudflare
            .get_route(OURS)
            .await
            .unwrap()
            .unwrap()
            .target,
        worker.name
    );
}

#[tokio::test]
async fn name_with_records_of_other_types_can_serve_a_site() {
    let world = World::new().await;
    world.make(ResourceType::Pages).await;
    let record =
        json!({ "type": "TXT", "name": "example.com", "content": "\"v=spf1 -all\"", "ttl": 1 });
    world
        .api(Method::POST, &world.zone("dns_records"), record.to_string())
        .await;
    let site = resource(ResourceType::Pages);
    let made = world
        .cloudflare
        .route_hostname(&to("example.com", site.clone()))
        .await
        .unwrap();
    assert_eq!(made.target, site.name);
    world
        .cloudflare
        .remove_route("example.com", &site)
        .await
        .unwrap();
    assert_eq!(world.fake.count(Kind::DnsRecord), 1);
}

#[tokio::test]
async fn hostname_requires_an_active_zone_and_an_object_of_the_owner() {
    let world = World::new().await;
    world.fake.add_zone("pending.org", "pending");
    let worker = resource(ResourceType::Worker);
    let missing = world
        .cloudflare
        .route_hostname(&to(OURS, worker.clone()))
        .await;
    assert!(
        matches!(missing, Err(ProviderError::Permanent(_))),
        "{missing:?}"
    );
    world.make(ResourceType::Worker).await;
    for hostname in ["shop.customer.org", "shop.pending.org"] {
        let refused = world
            .cloudflare
            .route_hostname(&to(hostname, worker.clone()))
            .await;
        assert!(
            matches!(refused, Err(ProviderError::Permanent(_))),
            "{refused:?}"
        );
        assert_eq!(world.cloudflare.get_route(hostname).await.unwrap(), None);
        world
            .cloudflare
            .remove_route(hostname, &worker)
            .await
            .unwrap();
    }
    let theirs = RouteHostname {
        owner: STRANGER.to_owned(),
        ..to(OURS, worker.clone())
    };
    let foreign = world.cloudflare.route_hostname(&theirs).await;
    assert_eq!(foreign, Err(ProviderError::NameTaken(worker.name)));
    world.make(ResourceType::D1).await;
    let useless = world
        .cloudflare
        .route_hostname(&to(OURS, resource(ResourceType::D1)))
        .await;
    assert!(
        matches!(useless, Err(ProviderError::Permanent(_))),
        "{useless:?}"
    );
}

#[tokio::test]
async fn zone_with_the_longest_name_is_used() {
    let world = World::new().await;
    let inner = world.fake.add_zone("shops.example.com", "active");
    world.make(ResourceType::Pages).await;
    let request = to("a.shops.example.com", resource(ResourceType::Pages));
    world.cloudflare.route_hostname(&request).await.unwrap();
    let path = format!("/zones/{inner}/dns_records");
    assert!(
        world.paths("POST").contains(&path),
        "{:?}",
        world.paths("POST")
    );
}

#[tokio::test]
async fn route_is_retried_while_its_script_is_unknown() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let unknown = Fault::Refusal {
        status: 400,
        code: 10_019,
    };
    let hostname = WILDCARD;
    let routes = core_cloudflare_fake::Matcher::new("POST", &world.zone("workers/routes"));
    world.fake.inject_times(&routes, &unknown, 3);
    let request = to(hostname, resource(ResourceType::Worker));
    world.cloudflare.route_hostname(&request).await.unwrap();
    assert_eq!(world.fake.waiting_faults(), 0);
}

#[tokio::test]
async fn hostnames_are_removed_with_their_object() {
    for of in SERVED {
        let world = World::new().await;
        world.make(of).await;
        world
            .cloudflare
            .route_hostname(&to(OURS, resource(of)))
            .await
            .unwrap();
        world.cloudflare.remove(&resource(of), OWNER).await.unwrap();
        assert_eq!(world.cloudflare.get_route(OURS).await.unwrap(), None);
        assert_eq!(world.fake.count(Kind::DnsRecord), 0, "{of}");
    }
}

#[tokio::test]
async fn customer_hostname_is_active_after_its_certificate() {
    let world = with_worker().await;
    let asked = world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    assert!(
        matches!(asked.state, HostnameState::Pending(_)),
        "{asked:?}"
    );
    let mut seen = Vec::new();
    for _ in 0..20 {
        let found = world
            .cloudflare
            .get_served_hostname(CUSTOMERS, OWNER, &worker())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.id, asked.id);
        if found.state == HostnameState::Active {
            assert_eq!(found.certificate, SslStatus::Active);
            let again = world
                .cloudflare
                .serve_hostname(&serve(OWNER))
                .await
                .unwrap();
            assert_eq!(again.state, HostnameState::Active);
            assert!(!seen.is_empty());
            return;
        }
        seen.push(found.certificate);
    }
    panic!("never active: {seen:?}");
}

#[tokio::test]
async fn failed_hostname_is_restarted_by_a_new_request() {
    let world = with_worker().await;
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    for (status, ssl, is_failed) in [
        ("pending", "validation_timed_out", true),
        ("moved", "active", true),
        ("active", "expired", true),
        ("active", "dreaming", false),
        ("dreaming", "active", false),
    ] {
        world.fake.pin_hostname(CUSTOMERS, status, ssl);
        let found = world
            .cloudflare
            .get_served_hostname(CUSTOMERS, OWNER, &worker())
            .await
            .unwrap()
            .unwrap();
        let failed = matches!(found.state, HostnameState::Failed(_));
        assert_eq!(failed, is_failed, "{status} {ssl}");
    }
    world
        .fake
        .pin_hostname(CUSTOMERS, "pending", "validation_timed_out");
    let again = world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    assert!(
        !matches!(again.state, HostnameState::Failed(_)),
        "{again:?}"
    );
    assert_eq!(world.fake.count(Kind::CustomHostname), 1);
}

#[tokio::test]
async fn outage_does_not_mark_a_hostname_as_failed() {
    let world = with_worker().await;
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    let path = world.zone("custom_hostnames");
    let matcher = core_cloudflare_fake::Matcher::new("GET", &path);
    world.fake.inject(matcher, Fault::StatusAfterEffect(503));
    let outcome = world
        .cloudflare
        .get_served_hostname(CUSTOMERS, OWNER, &worker())
        .await;
    assert!(
        matches!(outcome, Err(ProviderError::Transient(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn customer_hostname_belongs_to_the_first_platform() {
    let world = with_worker().await;
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    let taken = ProviderError::NameTaken(CUSTOMERS.to_owned());
    let theirs = ObjectRequest {
        resource: ResourceRef {
            resource_type: ResourceType::Worker,
            name: "strangers-api".to_owned(),
        },
        owner: STRANGER.to_owned(),
        ..request(ResourceType::Worker)
    };
    world.cloudflare.create(&theirs).await.unwrap();
    let foreign = ServeHostname {
        target: theirs.resource.clone(),
        ..serve(STRANGER)
    };
    assert_eq!(
        world.cloudflare.serve_hostname(&foreign).await,
        Err(taken.clone())
    );
    assert_eq!(
        world
            .cloudflare
            .get_served_hostname(CUSTOMERS, STRANGER, &worker())
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        world
            .cloudflare
            .stop_serving(CUSTOMERS, STRANGER, &worker())
            .await,
        Err(taken)
    );
    world
        .cloudflare
        .stop_serving(CUSTOMERS, OWNER, &worker())
        .await
        .unwrap();
    world
        .cloudflare
        .stop_serving(CUSTOMERS, OWNER, &worker())
        .await
        .unwrap();
    assert_eq!(world.fake.count(Kind::CustomHostname), 0);
    assert_eq!(world.fake.count(Kind::Route), 0);
}

#[tokio::test]
async fn customer_hostname_serves_its_target_until_it_is_stopped() {
    for (of, visited) in [
        (
            ResourceType::Worker,
            HostnameTarget::Worker(resource(ResourceType::Worker).name),
        ),
        (
            ResourceType::Pages,
            HostnameTarget::Project(resource(ResourceType::Pages).name),
        ),
    ] {
        let world = World::new().await;
        world.make(of).await;
        let target = resource(of);
        let request = ServeHostname {
            target: target.clone(),
            ..serve(OWNER)
        };
        assert_eq!(world.fake.visit(CUSTOMERS), None, "{of}");
        world.cloudflare.serve_hostname(&request).await.unwrap();
        for _ in 0..20 {
            let found = world
                .cloudflare
                .get_served_hostname(CUSTOMERS, OWNER, &target);
            let found = found.await.unwrap().unwrap();
            assert_eq!(found.target, Some(target.name.clone()), "{of}");
            let is_active = found.state == HostnameState::Active;
            if is_active {
                break;
            }
        }
        assert_eq!(world.fake.visit(CUSTOMERS), Some(visited), "{of}");
        for _ in 0..2 {
            let stopped = world.cloudflare.stop_serving(CUSTOMERS, OWNER, &target);
            stopped.await.unwrap();
        }
        assert_eq!(world.fake.visit(CUSTOMERS), None, "{of}");
        assert_eq!(world.fake.count(Kind::Route), 0, "{of}");
    }
}

#[tokio::test]
async fn missing_route_of_a_customer_hostname_is_restored_by_a_new_request() {
    let world = with_worker().await;
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    world.fake.pin_hostname(CUSTOMERS, "active", "active");
    let routes = world.zone("workers/routes");
    let listed = world.api(Method::GET, &routes, "").await;
    let route = listed["result"][0]["id"].as_str().unwrap();
    world
        .api(Method::DELETE, &format!("{routes}/{route}"), "")
        .await;
    let target = worker();
    let found = world
        .cloudflare
        .get_served_hostname(CUSTOMERS, OWNER, &target);
    assert_eq!(found.await.unwrap().unwrap().target, None);
    assert_eq!(world.fake.visit(CUSTOMERS), None);
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    let reached = HostnameTarget::Worker(worker().name);
    assert_eq!(world.fake.visit(CUSTOMERS), Some(reached));
}

#[tokio::test]
async fn hostname_is_requested_without_metadata_if_the_plan_has_none() {
    let world = with_worker().await;
    let matcher = core_cloudflare_fake::Matcher::new("POST", &world.zone("custom_hostnames"));
    let refused = Fault::Refusal {
        status: 403,
        code: 1_413,
    };
    world.fake.inject(matcher, refused);
    world
        .cloudflare
        .serve_hostname(&serve(OWNER))
        .await
        .unwrap();
    assert!(
        world
            .cloudflare
            .get_served_hostname(CUSTOMERS, OWNER, &worker())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(world.fake.count(Kind::CustomHostname), 1);
}

#[tokio::test]
async fn customer_hostnames_require_a_zone() {
    let world = with_worker().await;
    let cloudflare = adapter(&world.fake, |options| options.saas_zone = None);
    let refused = cloudflare.serve_hostname(&serve(OWNER)).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
    assert_eq!(
        cloudflare
            .get_served_hostname(CUSTOMERS, OWNER, &worker())
            .await
            .unwrap(),
        None
    );
    cloudflare
        .stop_serving(CUSTOMERS, OWNER, &worker())
        .await
        .unwrap();
    // If the configured zone is not active, the state of its hostnames is unknown, so every call fails.
    let unknown = Some("unknown.org".to_owned());
    let cloudflare = adapter(&world.fake, |options| options.saas_zone = unknown);
    let served = cloudflare.serve_hostname(&serve(OWNER)).await.map(drop);
    let found = cloudflare
        .get_served_hostname(CUSTOMERS, OWNER, &worker())
        .await
        .map(drop);
    let ended = cloudflare.stop_serving(CUSTOMERS, OWNER, &worker()).await;
    for outcome in [served, found, ended] {
        assert!(
            matches!(outcome, Err(ProviderError::Transient(_))),
            "{outcome:?}"
        );
    }
    let by_id = adapter(&world.fake, |options| {
        options.saas_zone = Some(world.fake.zone_id())
    });
    by_id.serve_hostname(&serve(OWNER)).await.unwrap();
    let wildcard = ServeHostname {
        hostname: "*.customer.org".to_owned(),
        ..serve(OWNER)
    };
    let refused = by_id.serve_hostname(&wildcard).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
}
