//! Removal of a platform with more resources than one attempt can remove.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::port::{Infrastructure, ProviderError};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::NoSupervisor;
use core_domain::use_case::provisioning::Outcome;
use serde_json::{Value, json};

use crate::world::{
    HookedInfrastructure, World, any_target, no_answer_error, operator, platform_path,
    resource_body,
};

const RESOURCES: usize = 1000;

/// Records [`RESOURCES`] resources and creates their objects, alternating databases and workers.
async fn add_resources(world: &World, platform: &str) {
    let entity = world.tenant(platform, "tenant").await;
    let path = platform_path(platform, &format!("/entities/{entity}/resources"));
    for number in 0..RESOURCES {
        let (resource_type, named) = match number % 2 {
            0 => (ResourceType::D1, "d1"),
            _ => (ResourceType::Worker, "worker"),
        };
        let name = format!("{named}-{number:04}");
        let mut body = resource_body(&name);
        body["resourceType"] = json!(named);
        let entered = world.registry.post(&operator(), &path, body).await;
        let _ = entered.expect(201);
        world.create_object(resource_type, &name, platform).await;
    }
}

#[tokio::test]
async fn a_large_platform_is_removed_in_order_by_attempts_that_resume_the_last_one() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    add_resources(&world, &platform).await;
    let job = world.deprovision(&platform, "prod").await;
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let (clock, log) = (world.clock.clone(), Arc::clone(&calls));
    // Every removal takes five seconds, and the 700th gets no response.
    let slow = HookedInfrastructure::new(&world.provider, move |call, name| {
        if call != "remove" {
            return Ok(());
        }
        clock.advance(Duration::from_secs(5));
        let mut log = log.lock().unwrap();
        log.push(name.to_owned());
        if log.len() == 700 {
            Err(no_answer_error())
        } else {
            Ok(())
        }
    });
    let worker = world.worker_on(Arc::new(slow));
    let mut attempts = 0;
    while worker.run_one(&NoSupervisor).await.unwrap() != Outcome::Idle {
        attempts += 1;
        let left = world.count(&platform_path(&platform, "/resources")).await;
        let objects = world.provider.names().len() as u64;
        assert_eq!(
            left, objects,
            "registry and provider agree after {attempts} attempts"
        );
        let shown = world.job(&job).await;
        assert_eq!(
            (&shown["attempts"], &shown["error"]),
            (&json!(0), &Value::Null)
        );
    }
    assert!((12..17).contains(&attempts), "{attempts}");
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        0
    );
    let calls = calls.lock().unwrap();
    let made: Vec<&String> = calls
        .iter()
        .filter(|name| !name.starts_with("engines"))
        .collect();
    let mut times = BTreeMap::new();
    for name in &made {
        *times.entry(*name).or_insert(0) += 1;
    }
    assert_eq!(times.len(), RESOURCES);
    let again: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    // Only the removal without a response is repeated.
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(made.len(), RESOURCES + 1);
    let first_database = made.iter().position(|name| name.starts_with("d1")).unwrap();
    let workers = made[..first_database].len();
    assert!(
        made[first_database..]
            .iter()
            .all(|name| name.starts_with("d1"))
    );
    assert!((RESOURCES / 2..=RESOURCES / 2 + 1).contains(&workers));
}

#[tokio::test]
async fn hostnames_of_a_platform_are_removed_before_their_targets() {
    let target = &any_target();
    for for_good in [false, true] {
        let world = World::new();
        let (platform, record) = world.platform_with_dns("engines").await;
        for hostname in ["one.example.com", "two.example.com"] {
            let domain = world.domain(&platform, &record, hostname).await;
            let add = json!({
                "platformId": platform, "customHostname": hostname, "targetDnsRecordId": record,
            });
            world
                .queue_job(&operator(), "/api/v1/provision/domain/add", add)
                .await;
            world.create_records(&platform, &domain).await;
        }
        world.run_jobs().await;
        // The removal of the platform cancels the removal of a deleted domain.
        let domains = world
            .get_record(&platform_path(&platform, "/domains"))
            .await;
        let path = platform_path(&platform, &format!("/domains/{}", domains.each("id")[0]));
        assert_eq!(world.registry.delete(&operator(), &path).await.status, 204);
        if for_good {
            world.delete_platform(&platform, "delete").await;
        } else {
            // No hostname points to this environment.
            world.deprovision(&platform, "dev").await;
            world.run_jobs().await;
            let left = world
                .provider
                .get_served_hostname("one.example.com", &platform, target);
            assert!(left.await.unwrap().is_some());
            world.deprovision(&platform, "prod").await;
        }
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&calls);
        let watched = HookedInfrastructure::new(&world.provider, move |call, name| {
            log.lock().unwrap().push(format!("{call} {name}"));
            Ok(())
        });
        world.run_jobs_on(Arc::new(watched)).await;
        for hostname in ["one.example.com", "two.example.com"] {
            let served = world
                .provider
                .get_served_hostname(hostname, &platform, target)
                .await;
            assert!(served.unwrap().is_none(), "{hostname}");
        }
        let calls = calls.lock().unwrap();
        let stopped = calls
            .iter()
            .rposition(|call| call.starts_with("stop_serving"));
        let removed = calls.iter().position(|call| call.starts_with("remove"));
        assert!(stopped.unwrap() < removed.unwrap(), "{calls:?}");
    }
}

#[tokio::test]
async fn emptying_a_bucket_in_many_calls_costs_no_attempt() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.provision(&platform).await;
    world.run_jobs().await;
    let job = world.deprovision(&platform, "prod").await;
    let calls: Arc<Mutex<usize>> = Arc::default();
    let emptied = Arc::clone(&calls);
    let slow = HookedInfrastructure::new(&world.provider, move |call, name| {
        let mut calls = emptied.lock().unwrap();
        if call == "remove" && name.ends_with("-assets") {
            *calls += 1;
            if *calls <= 30 {
                return Err(ProviderError::Unfinished);
            }
        }
        Ok(())
    });
    world.run_jobs_on(Arc::new(slow)).await;
    assert_eq!(*calls.lock().unwrap(), 31);
    let shown = world.job(&job).await;
    let told = [&shown["status"], &shown["attempts"]];
    assert_eq!(told, [&json!("COMPLETED"), &json!(0)]);
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        0
    );
}
