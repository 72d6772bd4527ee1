//! DNS records of workspace stacks.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::world::{Answer, World, on_every_store, operator, owner, platform_path};

/// A platform with an entity, a resource and a stack.
struct DnsFixture {
    platform: String,
    entity: String,
    resource: String,
    stack: String,
}

impl DnsFixture {
    async fn of(world: &World, slug: &str) -> Self {
        let platform = world.create_platform(slug).await;
        let entity = world.tenant(&platform, "tenant").await;
        let name = format!("{slug}-db");
        let resource = world.resource(&platform, &entity, &name).await;
        let stack = world.workspace_stack(&platform, &entity, "web").await;
        Self {
            platform,
            entity,
            resource,
            stack,
        }
    }

    async fn ask(&self, world: &World, hostname: &str) -> Answer {
        let asked = world.request_dns_record(&self.platform, &self.stack, &self.resource, hostname);
        asked.await
    }

    fn of_stack(&self, rest: &str) -> String {
        platform_path(&self.platform, &format!("/stacks/{}/dns{rest}", self.stack))
    }

    fn resource(&self) -> String {
        platform_path(&self.platform, &format!("/resources/{}", self.resource))
    }
}

async fn delete(world: &World, path: &str) -> Answer {
    world.registry.delete(&operator(), path).await
}

#[tokio::test]
async fn a_record_exists_at_both_paths_until_its_deletion_frees_the_hostname() {
    let world = World::new();
    let place = DnsFixture::of(&world, "engines").await;
    let created = place.ask(&world, "Bücher.Example.ORG.").await.expect(201);
    let now = "2027-01-15T08:00:04.000Z";
    let wanted = json!({
        "id": created.id(), "platformId": place.platform, "stackId": place.stack,
        "hostname": "xn--bcher-kva.example.org", "targetType": "worker", "resourceId": place.resource,
        "environment": "prod", "cfRouteId": null, "status": "pending", "missingRecords": [],
        "createdAt": now, "updatedAt": now,
    });
    assert_eq!(created.json, wanted);
    let below_stack = place.of_stack(&format!("/{}", created.id()));
    let below_platform = platform_path(&place.platform, &format!("/dns/{}", created.id()));
    for path in [&below_stack, &below_platform] {
        let shown = world.registry.get(&owner(&place.platform), path).await;
        assert_eq!((&shown.json, shown.header("etag")), (&wanted, "\"1\""));
    }
    let deleted = delete(&world, &below_stack).await;
    assert_eq!(
        (deleted.status.as_u16(), &deleted.json),
        (204, &Value::Null)
    );
    for path in [&below_stack, &below_platform] {
        world.assert_missing(path).await;
    }
    delete(&world, &below_stack)
        .await
        .expect_error(404, "NOT_FOUND");
    let again = place.ask(&world, "xn--bcher-kva.example.org").await;
    let again = again.expect(201).id();
    let listed = world.get_record(&place.of_stack("")).await;
    assert_eq!(listed.each("id"), [&again]);
    let all = world
        .get_record(&place.of_stack("?includeDeleted=true"))
        .await;
    assert_eq!(all.each("status"), ["pending", "deleted"]);
    assert_eq!(world.audit("dns_record.deleted").await.len(), 1);
}

#[tokio::test]
async fn a_hostname_is_unique_within_a_platform_and_not_across_platforms() {
    let world = World::new();
    let (own, foreign) = (
        DnsFixture::of(&world, "a").await,
        DnsFixture::of(&world, "b").await,
    );
    let _ = own.ask(&world, "shop.example.org").await.expect(201);
    let again = own.ask(&world, "SHOP.example.org").await;
    again.expect_error(409, "CONFLICT");
    for hostname in ["shop.example.org", "*.shop.example.org"] {
        let _ = foreign.ask(&world, hostname).await.expect(201);
    }
    for bad in [
        "127.0.0.1",
        "a_b.example.org",
        "localhost",
        "a.*.example.org",
    ] {
        let refused = own
            .ask(&world, bad)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), ["hostname: invalid_format"], "{bad}");
    }
}

#[tokio::test]
async fn stack_and_resource_must_belong_to_the_platform_and_the_record_to_the_stack() {
    let world = World::new();
    let (own, foreign) = (
        DnsFixture::of(&world, "a").await,
        DnsFixture::of(&world, "b").await,
    );
    let second = world
        .workspace_stack(&own.platform, &own.entity, "second")
        .await;
    let gone = world.resource(&own.platform, &own.entity, "gone-db").await;
    world
        .delete_record(&platform_path(&own.platform, &format!("/resources/{gone}")))
        .await;
    let platform = &own.platform;
    for (stack, resource) in [
        (&foreign.stack, &own.resource),
        (&own.stack, &foreign.resource),
        (&own.stack, &gone),
        (&"nothing".to_owned(), &own.resource),
    ] {
        let asked = world.request_dns_record(platform, stack, resource, "a.example.org");
        asked.await.expect_error(404, "NOT_FOUND");
    }
    let record = own.ask(&world, "a.example.org").await.expect(201).id();
    for stack in [&second, &foreign.stack] {
        let path = platform_path(platform, &format!("/stacks/{stack}/dns/{record}"));
        world.assert_missing(&path).await;
        delete(&world, &path).await.expect_error(404, "NOT_FOUND");
    }
    let path = platform_path(platform, &format!("/stacks/{}/dns", foreign.stack));
    world.assert_missing(&path).await;
}

#[tokio::test]
async fn a_record_must_be_deleted_before_its_target_and_after_its_domains() {
    let world = World::new();
    let place = DnsFixture::of(&world, "engines").await;
    let record = place.ask(&world, "a.example.org").await.expect(201).id();
    let domain = world
        .domain(&place.platform, &record, "shop.example.com")
        .await;
    let entity = platform_path(&place.platform, &format!("/entities/{}", place.entity));
    for path in [
        place.resource(),
        place.resource() + "?dryRun=true",
        entity.clone(),
        format!("{entity}?cascade=true"),
        format!("{entity}?cascade=true&dryRun=true"),
        place.of_stack(&format!("/{record}")),
    ] {
        let refused = delete(&world, &path).await.expect_error(409, "CONFLICT");
        assert!(refused.json["error"]["details"].is_object(), "{path}");
    }
    let status = json!({ "status": "deleted" });
    let changed = world.patch_record(&place.resource(), status.clone()).await;
    changed.expect_error(409, "CONFLICT");
    for path in [
        platform_path(&place.platform, &format!("/domains/{domain}")),
        place.of_stack(&format!("/{record}")),
    ] {
        assert_eq!(delete(&world, &path).await.status, 204, "{path}");
    }
    let _ = world
        .patch_record(&place.resource(), status)
        .await
        .expect(200);
}

#[tokio::test]
async fn deprovisioning_deletes_records_and_domains_with_the_resources() {
    let world = World::new();
    let place = DnsFixture::of(&world, "engines").await;
    let record = place.ask(&world, "a.example.org").await.expect(201).id();
    let domain = world
        .domain(&place.platform, &record, "shop.example.com")
        .await;
    let body = json!({ "platformId": place.platform });
    let path = "/api/v1/provision/platform/deprovision";
    let queued = world.provisioning.post(&operator(), path, body).await;
    let queued = queued.expect(202);
    world.finish_jobs().await;
    let job = world.job(queued.text("jobId")).await;
    assert_eq!(job["status"], "COMPLETED", "{job}");
    world.assert_missing(&place.resource()).await;
    world
        .assert_missing(&platform_path(&place.platform, &format!("/dns/{record}")))
        .await;
    let domain = world.find_listed_domain(&place.platform, &domain).await;
    assert_eq!(domain["status"], "deleted");
}

#[tokio::test]
async fn the_plan_of_a_removal_counts_the_records_and_domains_that_are_not_deleted_yet() {
    let world = World::new();
    let place = DnsFixture::of(&world, "engines").await;
    let mut records = Vec::new();
    for hostname in ["a.example.org", "b.example.org", "c.example.org"] {
        records.push(place.ask(&world, hostname).await.expect(201).id());
    }
    let mut domains = Vec::new();
    for hostname in ["shop.example.com", "old.example.com"] {
        let domain = world.domain(&place.platform, &records[0], hostname).await;
        domains.push(platform_path(
            &place.platform,
            &format!("/domains/{domain}"),
        ));
    }
    for path in [&domains[1], &place.of_stack(&format!("/{}", records[1]))] {
        assert_eq!(delete(&world, path).await.status, 204, "{path}");
    }
    for (method, path, counts) in [
        ("POST", "/delete?dryRun=true", [2, 1]),
        ("DELETE", "?dryRun=true", [0, 0]),
    ] {
        let path = platform_path(&place.platform, path);
        let planned = world
            .registry
            .send(&operator(), method, &path, &[], Value::Null)
            .await;
        let plan = &planned.expect(200).json["plan"];
        assert_eq!([&plan["dnsRecords"], &plan["domains"]], counts, "{path}");
    }
}

/// Returns how many of the concurrent requests succeed, and asserts that the others get 409.
async fn winners(asked: Vec<impl Future<Output = Answer>>) -> usize {
    let answers = join_all(asked).await;
    let mut statuses = answers.iter().map(|answer| answer.status.as_u16());
    assert!(statuses.all(|status| [201, 409].contains(&status)));
    answers.iter().filter(|answer| answer.is_success()).count()
}

async fn concurrent_claims_give_a_hostname_once_to_each_platform(world: World) {
    let (a, b) = (
        DnsFixture::of(&world, "a").await,
        DnsFixture::of(&world, "b").await,
    );
    let claims = [&a, &b, &a, &b].map(|place| place.ask(&world, "shop.example.org"));
    assert_eq!(winners(claims.into()).await, 2);
    let mut records = Vec::new();
    for (place, hostname) in [(&a, "a.example.org"), (&b, "b.example.org")] {
        let record = place.ask(&world, hostname).await.expect(201).id();
        records.push((&place.platform, record));
    }
    for hostname in ["shop.example.org", "www.example.org"] {
        let claim = |place: usize| {
            let (platform, record) = &records[place];
            world.request_domain(platform, record, hostname)
        };
        assert_eq!(winners([0, 1, 0, 1].map(claim).into()).await, 2);
    }
    // Refused requests have queued no job.
    let jobs = [world.jobs(&a.platform).await, world.jobs(&b.platform).await];
    assert_eq!(jobs.concat().len(), 8);
}

async fn concurrent_activations_of_a_hostname_succeed_for_one_platform(world: World) {
    let (a, b) = (
        DnsFixture::of(&world, "a").await,
        DnsFixture::of(&world, "b").await,
    );
    let mut records = Vec::new();
    for (place, hostname) in [(&a, "a.example.net"), (&b, "b.example.net")] {
        records.push(place.ask(&world, hostname).await.expect(201).id());
    }
    for round in 0..6 {
        let hostname = format!("shop-{round}.example.org");
        let mut domains = Vec::new();
        for (place, record) in [&a, &b].into_iter().zip(&records) {
            let domain = world.domain(&place.platform, record, &hostname).await;
            domains.push(platform_path(
                &place.platform,
                &format!("/domains/{domain}"),
            ));
        }
        let given =
            |domain: usize| world.patch_record(&domains[domain], json!({ "status": "active" }));
        let (first, second) = join(given(0), given(1)).await;
        let answers = [&first, &second].map(|answer| answer.status.as_u16());
        let told = |answer: &Answer| answer.is_success() || answer.status == 409;
        assert!(told(&first) && told(&second), "{answers:?}");
        assert_ne!(first.is_success(), second.is_success(), "{answers:?}");
    }
}

on_every_store! {
    concurrent_claims_give_a_hostname_once_to_each_platform,
    concurrent_activations_of_a_hostname_succeed_for_one_platform,
}
