//! Ownership of hostnames: the proof that a DNS record needs, reserved names, and the end of records without a proof.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::{Caller, Limits};
use core_domain::port::{Infrastructure, ObjectRequest, ProviderError, ResourceRef};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::NoSupervisor;
use core_domain::use_case::registry::hostname_proofs::{CheckedProofs, check_proofs};
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use crate::world::{HookedInfrastructure, JobCommand, World, operator, owner, platform_path};

const HOSTNAME: &str = "shop.example.org";
const PROOF: &str = "_core-verification.shop.example.org";
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;
const PROOF_TIMEOUT: Duration = Duration::from_secs(3 * DAY);

/// A platform with a worker at the provider, and a stack.
struct PlatformFixture {
    platform: String,
    stack: String,
    resource: String,
    object: String,
}

impl PlatformFixture {
    async fn of(world: &World, slug: &str) -> Self {
        let platform = world.create_platform(slug).await;
        let entity = world.tenant(&platform, "tenant").await;
        let object = format!("{slug}-api");
        let resource = world.resource(&platform, &entity, &object).await;
        let stack = world.workspace_stack(&platform, &entity, "web").await;
        let request = ObjectRequest {
            resource: ResourceRef {
                resource_type: ResourceType::Worker,
                name: object.clone(),
            },
            owner: platform.clone(),
            effect_key: "object".to_owned(),
            config: json!({}),
        };
        world.provider.create(&request).await.unwrap();
        Self {
            platform,
            stack,
            resource,
            object,
        }
    }

    async fn enter(&self, world: &World, caller: &Caller, hostname: &str) -> Answer {
        self.enter_as(world, caller, hostname, "worker").await
    }

    async fn enter_as(
        &self,
        world: &World,
        caller: &Caller,
        hostname: &str,
        target_type: &str,
    ) -> Answer {
        let path = platform_path(&self.platform, &format!("/stacks/{}/dns", self.stack));
        let body = json!({
            "hostname": hostname, "targetType": target_type, "resourceId": self.resource, "environment": "prod",
        });
        let entered = world.registry.post(caller, &path, body).await;
        world.tick(1);
        entered
    }

    /// Creates a record as the platform's owner and returns its id.
    async fn record(&self, world: &World, hostname: &str) -> String {
        let caller = owner(&self.platform);
        let entered = self.enter(world, &caller, hostname).await;
        entered.expect(201).id()
    }

    async fn get_dns_record(&self, world: &World, record: &str) -> Value {
        let path = platform_path(&self.platform, &format!("/dns/{record}"));
        world.get_record(&path).await.json
    }

    async fn status(&self, world: &World, record: &str) -> String {
        let shown = self.get_dns_record(world, record).await;
        shown["status"].as_str().unwrap().to_owned()
    }

    /// Creates the missing TXT record that proves the ownership of the record's hostname.
    async fn prove(&self, world: &World, record: &str) {
        let shown = self.get_dns_record(world, record).await;
        let missing = &shown["missingRecords"][0];
        assert_eq!(missing["type"], "TXT");
        let [name, value] = ["name", "value"].map(|field| missing[field].as_str().unwrap());
        world.dns.add_txt(name, value);
    }

    async fn delete(&self, world: &World, record: &str) {
        let path = platform_path(
            &self.platform,
            &format!("/stacks/{}/dns/{record}", self.stack),
        );
        let deleted = world.registry.delete(&operator(), &path).await;
        assert_eq!(deleted.status, 204);
    }
}

/// Returns a provider that permanently refuses one call for one hostname.
fn refusing(
    world: &World,
    call: &'static str,
    hostname: &'static str,
) -> Arc<HookedInfrastructure> {
    Arc::new(HookedInfrastructure::new(
        &world.provider,
        move |called, of| match called == call && of == hostname {
            true => Err(ProviderError::Permanent("refused".into())),
            false => Ok(()),
        },
    ))
}

fn route_target(world: &World, hostname: &str) -> Option<String> {
    world.provider.routes().get(hostname).cloned()
}

async fn check(world: &World) -> CheckedProofs {
    let cx = world.cx();
    let checked = check_proofs(&cx, world.store.as_ref(), &world.dns, PROOF_TIMEOUT);
    checked.await.unwrap()
}

#[tokio::test]
async fn a_record_of_a_tenant_is_served_from_its_proof_until_its_deletion() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    world.run_jobs().await;
    let shown = shop.get_dns_record(&world, &record).await;
    assert_eq!(shown["status"], "pending");
    assert_eq!(shown["missingRecords"][0]["name"], PROOF);
    assert_eq!(route_target(&world, HOSTNAME), None);
    world.dns.add_txt(PROOF, "core-verification=somebody-elses");
    world.advance_and_run(30).await;
    assert_eq!(route_target(&world, HOSTNAME), None);
    shop.prove(&world, &record).await;
    world.advance_and_run(HOUR).await;
    let shown = shop.get_dns_record(&world, &record).await;
    assert_eq!(shown["status"], "active");
    assert_eq!(shown["missingRecords"], json!([]));
    assert_eq!(shown["cfRouteId"], format!("route-of-{HOSTNAME}"));
    assert_eq!(route_target(&world, HOSTNAME), Some(shop.object.clone()));
    assert_eq!(world.audit("dns_record.routed").await.len(), 1);
    shop.delete(&world, &record).await;
    world.run_jobs().await;
    assert_eq!(route_target(&world, HOSTNAME), None);
}

#[tokio::test]
async fn a_record_that_is_never_proved_fails_after_seven_days() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    world.run_jobs().await;
    world.advance_and_run(7 * DAY).await;
    world.advance_and_run(HOUR).await;
    assert_eq!(shop.status(&world, &record).await, "failed");
    let job = world.jobs(&shop.platform).await[0].clone();
    assert_eq!(job["error"]["code"], "DNS_RECORDS_MISSING");
}

#[tokio::test]
async fn a_hostname_that_an_operator_adds_again_points_to_its_new_resource() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let other = PlatformFixture::of(&world, "looms").await;
    let first = shop.enter(&world, &operator(), HOSTNAME).await;
    let first = first.expect(201).id();
    world.run_jobs().await;
    assert_eq!(shop.status(&world, &first).await, "active");
    shop.delete(&world, &first).await;
    let again = other.enter(&world, &operator(), HOSTNAME).await;
    let again = again.expect(201).id();
    world.run_jobs().await;
    assert_eq!(other.status(&world, &again).await, "active");
    assert_eq!(route_target(&world, HOSTNAME), Some(other.object.clone()));
}

#[tokio::test]
async fn a_proved_hostname_is_taken_from_the_platform_that_used_it_without_a_proof() {
    let world = World::new();
    let (squatter, holder) = (
        PlatformFixture::of(&world, "looms").await,
        PlatformFixture::of(&world, "engines").await,
    );
    let squatted = squatter.enter(&world, &operator(), HOSTNAME).await;
    let squatted = squatted.expect(201).id();
    world.run_jobs().await;
    assert_eq!(
        route_target(&world, HOSTNAME),
        Some(squatter.object.clone())
    );
    let record = holder.record(&world, HOSTNAME).await;
    holder.prove(&world, &record).await;
    world.run_jobs().await;
    assert_eq!(holder.status(&world, &record).await, "active");
    assert_eq!(squatter.status(&world, &squatted).await, "failed");
    assert_eq!(route_target(&world, HOSTNAME), Some(holder.object.clone()));
}

#[tokio::test]
async fn names_in_operator_zones_are_for_operators_except_below_the_platforms_slug() {
    let world = World::new().with_limits(Limits {
        operator_zones: vec!["example.net".to_owned()],
        ..Limits::default()
    });
    let shop = PlatformFixture::of(&world, "engines").await;
    let caller = owner(&shop.platform);
    for reserved in [
        "example.net",
        "*.example.net",
        "looms.example.net",
        "shopengines.example.net",
    ] {
        let refused = shop.enter(&world, &caller, reserved).await;
        refused.expect_error(403, "HOSTNAME_RESERVED");
    }
    for own in [
        "engines.example.net",
        "*.engines.example.net",
        "a.engines.example.net",
    ] {
        let record = shop.record(&world, own).await;
        world.run_jobs().await;
        assert_eq!(shop.status(&world, &record).await, "active", "{own}");
    }
    let entered = shop.enter(&world, &operator(), "looms.example.net").await;
    let record = entered.expect(201).id();
    let path = platform_path(&shop.platform, "/domains");
    let body = json!({
        "dnsRecordId": record, "hostname": "www.example.net", "targetDns": "looms.example.net",
    });
    let asked = world.registry.post(&caller, &path, body).await;
    asked.expect_error(403, "HOSTNAME_RESERVED");
}

#[tokio::test]
async fn a_hostname_without_its_proof_is_served_for_three_more_days() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    shop.prove(&world, &record).await;
    world.run_jobs().await;
    let proved = CheckedProofs {
        proved: 1,
        ..CheckedProofs::default()
    };
    assert_eq!(check(&world).await, proved);
    let missing = CheckedProofs {
        missing: 1,
        ..CheckedProofs::default()
    };
    world.dns.clear();
    for _ in 0..3 {
        assert_eq!(check(&world).await, missing);
        world.tick(DAY - 1);
    }
    assert_eq!(shop.status(&world, &record).await, "active");
    // An unavailable DNS does not count as a missing proof.
    world.dns.set_offline(true);
    world.tick(DAY);
    assert_eq!(check(&world).await.unknown, 1);
    world.dns.set_offline(false);
    assert_eq!(check(&world).await.ended, 1);
    world.run_jobs().await;
    assert_eq!(shop.status(&world, &record).await, "failed");
    assert_eq!(route_target(&world, HOSTNAME), None);
    assert_eq!(world.audit("dns_record.failed").await.len(), 1);
}

#[tokio::test]
async fn a_restored_proof_ends_the_three_days() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    let missing = shop.get_dns_record(&world, &record).await["missingRecords"][0]["value"].clone();
    shop.prove(&world, &record).await;
    world.run_jobs().await;
    for _ in 0..3 {
        world.dns.clear();
        assert_eq!(check(&world).await.missing, 1);
        world.tick(2 * DAY);
        world.dns.add_txt(PROOF, missing.as_str().unwrap());
        assert_eq!(check(&world).await.proved, 1);
        world.tick(2 * DAY);
    }
    assert_eq!(shop.status(&world, &record).await, "active");
}

#[tokio::test]
async fn another_platforms_proof_ends_a_record_at_the_next_check() {
    let world = World::new();
    let (old, new) = (
        PlatformFixture::of(&world, "looms").await,
        PlatformFixture::of(&world, "engines").await,
    );
    let record = old.record(&world, HOSTNAME).await;
    old.prove(&world, &record).await;
    world.run_jobs().await;
    let entered = new.record(&world, HOSTNAME).await;
    new.prove(&world, &entered).await;
    assert_eq!(check(&world).await.ended, 1);
    assert_eq!(old.status(&world, &record).await, "failed");
    world.run_jobs().await;
    assert_eq!(new.status(&world, &entered).await, "active");
    assert_eq!(route_target(&world, HOSTNAME), Some(new.object.clone()));
}

#[tokio::test]
async fn a_suspended_or_deleted_platform_has_no_served_hostname_until_it_is_restored() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let entered = shop.enter(&world, &operator(), HOSTNAME).await;
    let _ = entered.expect(201);
    world.run_jobs().await;
    for how in ["suspend", "delete"] {
        if how == "suspend" {
            world
                .change_lifecycle_as_operator(&shop.platform, "suspend")
                .await;
        } else {
            world
                .delete_record(&platform_path(&shop.platform, ""))
                .await;
        }
        world.run_jobs().await;
        assert_eq!(route_target(&world, HOSTNAME), None, "{how}");
        world
            .change_lifecycle_as_operator(&shop.platform, "restore")
            .await;
        world.run_jobs().await;
        assert_eq!(
            route_target(&world, HOSTNAME),
            Some(shop.object.clone()),
            "{how}"
        );
    }
}

#[tokio::test]
async fn a_reconciliation_repairs_the_routes_of_records() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let entered = shop.enter(&world, &operator(), HOSTNAME).await;
    let _ = entered.expect(201);
    world.run_jobs().await;
    let target = ResourceRef {
        resource_type: ResourceType::Worker,
        name: shop.object.clone(),
    };
    world
        .provider
        .remove_route(HOSTNAME, &target)
        .await
        .unwrap();
    let body = json!({ "platformId": shop.platform, "repair": true });
    let path = "/api/v1/provision/platform/reconcile";
    let asked = world.provisioning.post(&operator(), path, body).await;
    let job = asked.expect(202).text("jobId").to_owned();
    world.run_jobs().await;
    let job = world.job(&job).await;
    assert_eq!(job["status"], "COMPLETED", "{job}");
    assert_eq!(route_target(&world, HOSTNAME), Some(shop.object.clone()));
}

#[tokio::test]
async fn a_record_whose_job_was_forced_to_complete_needs_no_proof() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    world.run_jobs().await;
    let job = world.jobs(&shop.platform).await[0]["jobId"].clone();
    world
        .operate(job.as_str().unwrap(), JobCommand::ForceComplete)
        .await;
    assert_eq!(shop.status(&world, &record).await, "active");
    for _ in 0..5 {
        assert_eq!(check(&world).await, CheckedProofs::default());
        world.tick(DAY);
    }
    assert_eq!(shop.status(&world, &record).await, "active");
}

#[tokio::test]
async fn a_lost_hostname_is_not_served_even_if_the_job_that_took_it_fails() {
    let world = World::new();
    let (old, new) = (
        PlatformFixture::of(&world, "looms").await,
        PlatformFixture::of(&world, "engines").await,
    );
    let lost = old.record(&world, HOSTNAME).await;
    old.prove(&world, &lost).await;
    world.run_jobs().await;
    assert_eq!(route_target(&world, HOSTNAME), Some(old.object.clone()));
    let entered = new.record(&world, HOSTNAME).await;
    new.prove(&world, &entered).await;
    let refusing = refusing(&world, "route_hostname", HOSTNAME);
    world.run_jobs_on(refusing).await;
    assert_eq!(new.status(&world, &entered).await, "failed");
    assert_eq!(old.status(&world, &lost).await, "failed");
    assert_eq!(route_target(&world, HOSTNAME), None);
    assert_eq!(
        old.get_dns_record(&world, &lost).await["cfRouteId"],
        Value::Null
    );
}

#[tokio::test]
async fn a_record_that_no_provider_can_serve_takes_no_hostname() {
    let world = World::new();
    let (holder, other) = (
        PlatformFixture::of(&world, "looms").await,
        PlatformFixture::of(&world, "engines").await,
    );
    let record = holder.record(&world, HOSTNAME).await;
    holder.prove(&world, &record).await;
    world.run_jobs().await;
    let caller = owner(&other.platform);
    let entered = other.enter_as(&world, &caller, HOSTNAME, "redirect").await;
    let redirect = entered.expect(201).id();
    other.prove(&world, &redirect).await;
    world.run_jobs().await;
    assert_eq!(other.status(&world, &redirect).await, "failed");
    assert_eq!(holder.status(&world, &record).await, "active");
    assert_eq!(route_target(&world, HOSTNAME), Some(holder.object.clone()));
}

#[tokio::test]
async fn a_failed_record_is_served_after_the_same_record_is_added_again() {
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    let record = shop.record(&world, HOSTNAME).await;
    let caller = owner(&shop.platform);
    let twice = shop.enter(&world, &caller, HOSTNAME).await;
    twice.expect_error(409, "CONFLICT");
    world.run_jobs().await;
    world.advance_and_run(8 * DAY).await;
    assert_eq!(shop.status(&world, &record).await, "failed");
    let other = shop.enter_as(&world, &caller, HOSTNAME, "cname").await;
    other.expect_error(409, "CONFLICT");
    assert_eq!(shop.record(&world, HOSTNAME).await, record);
    assert_eq!(shop.status(&world, &record).await, "pending");
    shop.prove(&world, &record).await;
    world.run_jobs().await;
    assert_eq!(shop.status(&world, &record).await, "active");
    assert_eq!(route_target(&world, HOSTNAME), Some(shop.object.clone()));
}

#[tokio::test]
async fn a_failing_hostname_does_not_block_the_suspension_and_restore_of_others() {
    const OTHERS: [&str; 2] = ["a.example.org", "z.example.org"];
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    for hostname in [OTHERS[0], HOSTNAME, OTHERS[1]] {
        let entered = shop.enter(&world, &operator(), hostname).await;
        let _ = entered.expect(201);
    }
    world.run_jobs().await;
    world
        .change_lifecycle_as_operator(&shop.platform, "suspend")
        .await;
    world
        .run_jobs_on(refusing(&world, "remove_route", HOSTNAME))
        .await;
    for hostname in OTHERS {
        assert_eq!(route_target(&world, hostname), None, "{hostname}");
    }
    assert!(route_target(&world, HOSTNAME).is_some());
    world
        .change_lifecycle_as_operator(&shop.platform, "restore")
        .await;
    world.run_jobs().await;
    for hostname in OTHERS {
        assert!(route_target(&world, hostname).is_some(), "{hostname}");
    }
}

#[tokio::test]
async fn a_suspension_and_a_restore_handle_many_hostnames_in_batches() {
    const COUNT: usize = 230;
    let world = World::new();
    let shop = PlatformFixture::of(&world, "engines").await;
    for nth in 0..COUNT {
        let hostname = format!("shop-{nth}.example.org");
        let entered = shop.enter(&world, &operator(), &hostname).await;
        let _ = entered.expect(201);
    }
    world.run_jobs().await;
    assert_eq!(world.provider.routes().len(), COUNT);
    for (step, count) in [("suspend", 0), ("restore", COUNT)] {
        world
            .change_lifecycle_as_operator(&shop.platform, step)
            .await;
        world.run_jobs().await;
        assert_eq!(world.provider.routes().len(), count, "{step}");
        let job = world.jobs(&shop.platform).await[0].clone();
        let told = [&job["kind"], &job["status"]];
        assert_eq!(told, ["platform.hostnames", "COMPLETED"]);
    }
}

#[tokio::test]
async fn a_record_that_is_deleted_while_its_route_is_restored_is_not_served() {
    let world = Arc::new(World::new());
    let shop = PlatformFixture::of(&world, "engines").await;
    let entered = shop.enter(&world, &operator(), HOSTNAME).await;
    let record = entered.expect(201).id();
    world.run_jobs().await;
    world
        .change_lifecycle_as_operator(&shop.platform, "suspend")
        .await;
    world.run_jobs().await;
    world
        .change_lifecycle_as_operator(&shop.platform, "restore")
        .await;
    let waiting: Arc<Mutex<usize>> = Arc::default();
    let seen = waiting.clone();
    let deleting = HookedInfrastructure::new(&world.provider, move |call, _| {
        *seen.lock().unwrap() += usize::from(call == "route_hostname");
        match call {
            // The first response is lost, so the record is deleted before the call is repeated.
            "route_hostname" if *seen.lock().unwrap() == 1 => {
                Err(ProviderError::Transient("lost".into()))
            }
            _ => Ok(()),
        }
    });
    let worker = world.worker_on(Arc::new(deleting));
    while *waiting.lock().unwrap() == 0 {
        let _ = worker.run_one(&NoSupervisor).await.unwrap();
    }
    shop.delete(&world, &record).await;
    world.finish_jobs().await;
    assert_eq!(route_target(&world, HOSTNAME), None);
}
