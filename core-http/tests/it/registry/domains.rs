//! Custom domains, and the job that verifies them.

use std::net::IpAddr;

use core_domain::port::Infrastructure;
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};

use crate::world::{JobCommand, TARGET, World, any_target, operator, owner, platform_path};

const HOSTNAME: &str = "shop.example.com";
const PROOF: &str = "_core-verification.shop.example.com";
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// A platform with a custom domain.
struct DomainFixture {
    platform: String,
    dns_record: String,
    domain: String,
}

impl DomainFixture {
    async fn of(world: &World) -> Self {
        Self::with(world, HOSTNAME).await
    }

    async fn with(world: &World, hostname: &str) -> Self {
        let (platform, dns_record) = world.platform_with_dns("engines").await;
        let domain = world.domain(&platform, &dns_record, hostname).await;
        Self {
            platform,
            dns_record,
            domain,
        }
    }

    fn path(&self) -> String {
        platform_path(&self.platform, &format!("/domains/{}", self.domain))
    }

    async fn get_domain(&self, world: &World) -> Value {
        world.find_listed_domain(&self.platform, &self.domain).await
    }

    async fn status(&self, world: &World) -> String {
        self.get_domain(world).await["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Returns the types of the missing DNS records.
    async fn missing(&self, world: &World) -> Vec<String> {
        let shown = self.get_domain(world).await;
        let missing = shown["missingRecords"].as_array().unwrap().iter();
        missing
            .map(|record| record["type"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn change(&self, world: &World, status: &str) {
        let body = json!({ "status": status });
        let changed = world.patch_record(&self.path(), body).await;
        assert_eq!(changed.expect(200).text("status"), status);
    }

    /// Returns the newest job that verifies the domain.
    async fn job(&self, world: &World) -> Value {
        let jobs = world.jobs(&self.platform).await.into_iter();
        let mut jobs = jobs.filter(|job| job["kind"] == "domain.add");
        jobs.next().unwrap()
    }

    async fn job_id(&self, world: &World) -> String {
        self.job(world).await["jobId"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_domain_lists_its_missing_records_and_is_active_when_none_is_missing() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let created = place.get_domain(&world).await;
    let now = "2027-01-15T08:00:05.000Z";
    let proof = created["missingRecords"][1]["value"].as_str().unwrap();
    let random = proof.strip_prefix("core-verification=").unwrap();
    assert!(random.len() == 43 && random.chars().all(char::is_alphanumeric));
    let wanted = json!({
        "id": place.domain, "platformId": place.platform, "dnsRecordId": place.dns_record,
        "hostname": HOSTNAME, "targetDns": TARGET, "cfHostnameId": null, "sslStatus": "pending_validation",
        "status": "pending", "verifiedAt": null, "createdAt": now, "updatedAt": now,
        "missingRecords": [
            { "type": "CNAME", "name": HOSTNAME, "value": TARGET },
            { "type": "TXT", "name": PROOF, "value": proof },
        ],
    });
    assert_eq!(created, wanted);
    world.run_jobs().await;
    assert_eq!(place.status(&world).await, "verifying");
    assert_eq!(place.missing(&world).await, ["CNAME", "TXT"]);
    world.dns.set_cname(HOSTNAME, TARGET);
    world.dns.add_txt(PROOF, "v=spf1 -all");
    world.dns.add_txt(PROOF, "core-verification=somebody-elses");
    world.advance_and_run(30).await;
    assert_eq!(place.missing(&world).await, ["TXT"]);
    let waiting = place.job(&world).await;
    let seen = ["status", "waitingFor"].map(|field| waiting[field].as_str().unwrap());
    assert_eq!(seen, ["WAITING", "the DNS records of shop.example.com"]);
    world.dns.add_txt(PROOF, proof);
    world.advance_and_run(60).await;
    let active = place.get_domain(&world).await;
    let seen = ["status", "sslStatus", "verifiedAt"].map(|field| active[field].as_str().unwrap());
    assert_eq!(seen, ["active", "active", "2027-01-15T08:01:36.000Z"]);
    assert_eq!(active["missingRecords"], json!([]));
    assert_eq!(place.job(&world).await["status"], "COMPLETED");
    for action in ["created", "checked", "activated"] {
        let action = format!("domain.{action}");
        assert_eq!(world.audit(&action).await.len(), 1, "{action}");
    }
}

#[tokio::test]
async fn the_interval_of_lookups_grows_and_lookups_do_not_block_other_jobs() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    world.run_jobs().await;
    for pause in [30, 60, 120, 240, 480, 960, 1920, HOUR, HOUR] {
        let before = world.dns.lookups();
        world.advance_and_run(pause - 1).await;
        assert_eq!(world.dns.lookups(), before, "{pause}");
        world.advance_and_run(1).await;
        assert!(world.dns.lookups() > before, "{pause}");
    }
    // The lookups found no change, so nothing was written.
    assert_eq!(world.audit("domain.updated").await.len(), 0);
    let other = world.provision(&place.platform).await;
    world.run_jobs().await;
    assert_eq!(world.job(&other).await["status"], "COMPLETED");
    assert_eq!(place.job(&world).await["status"], "WAITING");
}

#[tokio::test]
async fn an_apex_domain_is_verified_by_having_the_same_addresses_as_its_target() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let [one, two] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    world.dns.set_addresses(TARGET, [one, two]);
    for (addresses, missing) in [
        (vec![one], vec!["CNAME", "TXT"]),
        (vec![two, one], vec!["TXT"]),
    ] {
        world.dns.set_addresses(HOSTNAME, addresses);
        world.advance_and_run(HOUR).await;
        assert_eq!(place.missing(&world).await, missing);
    }
}

#[tokio::test]
async fn a_wildcard_is_verified_by_a_record_below_its_parent_name() {
    let world = World::new();
    let place = DomainFixture::with(&world, "*.shop.example.com").await;
    let missing = &place.get_domain(&world).await["missingRecords"];
    let names = [0, 1].map(|at: usize| missing[at]["name"].as_str().unwrap());
    assert_eq!(names, ["*.shop.example.com", PROOF]);
    world.create_records(&place.platform, &place.domain).await;
    world.run_jobs().await;
    assert_eq!(place.status(&world).await, "active");
}

#[tokio::test]
async fn a_domain_without_records_for_seven_days_fails_and_can_be_verified_again() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    world.run_jobs().await;
    world.advance_and_run(7 * DAY - 1).await;
    assert_eq!(place.status(&world).await, "verifying");
    world.advance_and_run(HOUR).await;
    let failed = place.get_domain(&world).await;
    assert_eq!(failed["status"], "failed");
    let first = place.job(&world).await;
    let seen = [&first["status"], &first["error"]["code"]];
    assert_eq!(seen, ["FAILED", "DNS_RECORDS_MISSING"]);
    place.change(&world, "pending").await;
    assert_ne!(place.job_id(&world).await, first["jobId"]);
    world.run_jobs().await;
    assert_eq!(place.missing(&world).await, ["CNAME", "TXT"]);
    world.create_records(&place.platform, &place.domain).await;
    world.advance_and_run(30).await;
    assert_eq!(place.status(&world).await, "active");
}

#[tokio::test]
async fn an_unavailable_dns_or_a_suspension_does_not_fail_a_domain() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    world.dns.set_offline(true);
    for _ in 0..20 {
        world.advance_and_run(DAY).await;
    }
    assert_eq!(place.status(&world).await, "pending");
    let job = place.job(&world).await;
    assert_eq!(
        (&job["status"], &job["attempts"]),
        (&json!("WAITING"), &json!(0))
    );
    world.dns.set_offline(false);
    world.advance_and_run(HOUR).await;
    assert_eq!(place.status(&world).await, "verifying");
    world
        .change_lifecycle_as_operator(&place.platform, "suspend")
        .await;
    world.create_records(&place.platform, &place.domain).await;
    world.advance_and_run(30 * DAY).await;
    assert_eq!(place.status(&world).await, "verifying");
    world
        .change_lifecycle_as_operator(&place.platform, "restore")
        .await;
    world.run_jobs().await;
    assert_eq!(place.status(&world).await, "active");
}

#[tokio::test]
async fn after_any_store_failure_a_domain_becomes_active_once() {
    for call in 1.. {
        let (world, store) = World::faulty();
        let (platform, dns_record) = world.platform_with_dns("engines").await;
        world.run_jobs().await;
        let domain = world.domain(&platform, &dns_record, HOSTNAME).await;
        let place = DomainFixture {
            platform,
            dns_record,
            domain,
        };
        store.fail_call(call);
        // The failure interrupts the job. The assertions below check the state that it leaves.
        let _ = world.worker().run_one(&NoSupervisor).await;
        if !store.has_failed() {
            assert!(call > 20, "a run has only {call} calls");
            return;
        }
        world.create_records(&place.platform, &place.domain).await;
        // Leases and waits expire.
        world.advance_and_run(HOUR).await;
        world.advance_and_run(HOUR).await;
        assert_eq!(place.status(&world).await, "active", "{call}");
        assert_eq!(place.job(&world).await["status"], "COMPLETED", "{call}");
        assert_eq!(world.audit("domain.activated").await.len(), 1, "{call}");
    }
}

#[tokio::test]
async fn operations_on_the_job_are_applied_to_the_domain() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let job = place.job_id(&world).await;
    world.run_jobs().await;
    for (how, job_status, status) in [
        (JobCommand::Cancel, "FAILED", "failed"),
        (JobCommand::Retry, "QUEUED", "pending"),
        (JobCommand::Cancel, "FAILED", "failed"),
        (JobCommand::ForceComplete, "COMPLETED", "active"),
    ] {
        world.operate(&job, how).await;
        assert_eq!(world.job(&job).await["status"], job_status);
        assert_eq!(place.status(&world).await, status, "{how:?}");
    }
    let active = place.get_domain(&world).await;
    assert!(active["verifiedAt"].is_string());
    assert_eq!(active["missingRecords"], json!([]));
}

#[tokio::test]
async fn a_retried_job_has_the_same_time_limit_as_a_new_one() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let job = place.job_id(&world).await;
    world.operate(&job, JobCommand::Cancel).await;
    world.operate(&job, JobCommand::Retry).await;
    world.run_jobs().await;
    for _ in 0..6 {
        world.advance_and_run(DAY).await;
    }
    assert_eq!(place.status(&world).await, "verifying");
    assert_eq!(world.job(&job).await["status"], "WAITING");
}

#[tokio::test]
async fn a_job_that_no_longer_controls_its_domain_ends_and_changes_nothing() {
    for (step, status) in [
        ("domain deleted", "deleted"),
        ("set active", "active"),
        ("failed and set pending", "pending"),
        ("platform deleted", "failed"),
    ] {
        let world = &World::new();
        let place = DomainFixture::of(world).await;
        world.run_jobs().await;
        let job = place.job_id(world).await;
        match step {
            "domain deleted" => {
                let deleted = world.registry.delete(&operator(), &place.path()).await;
                assert_eq!(deleted.status, 204);
            }
            "set active" => place.change(world, "active").await,
            "platform deleted" => {
                world
                    .delete_record(&platform_path(&place.platform, ""))
                    .await
            }
            _ => {
                place.change(world, "failed").await;
                place.change(world, "pending").await;
                world.dns.set_offline(true);
            }
        }
        world.advance_and_run(HOUR).await;
        assert_eq!(world.job(&job).await["status"], "COMPLETED", "{step}");
        assert_eq!(place.status(world).await, status, "{step}");
    }
}

#[tokio::test]
async fn a_status_moves_by_the_table_and_only_an_active_domain_has_a_verification_time() {
    const ALL: [&str; 5] = ["pending", "verifying", "active", "failed", "deleted"];
    let world = World::new();
    let (platform, record) = world.platform_with_dns("engines").await;
    for (from, allowed) in [
        ("pending", "verifying active failed deleted"),
        ("verifying", "active failed deleted"),
        ("active", "failed deleted"),
        ("failed", "pending deleted"),
    ] {
        for to in ALL {
            let hostname = format!("{from}-{to}.example.com");
            let domain = world.domain(&platform, &record, &hostname).await;
            let path = platform_path(&platform, &format!("/domains/{domain}"));
            let change = async |status: &str| {
                world
                    .patch_record(&path, json!({ "status": status, "sslStatus": "expired" }))
                    .await
            };
            let _ = change(from).await.expect(200);
            let answer = change(to).await;
            if from == to || allowed.split(' ').any(|status| status == to) {
                let changed = answer.expect(200).json;
                assert_eq!(changed["status"], to);
                assert_eq!(
                    changed["verifiedAt"].is_string(),
                    to == "active",
                    "{hostname}"
                );
            } else {
                answer.expect_error(409, "INVALID_STATE");
                assert_eq!(
                    world.find_listed_domain(&platform, &domain).await["status"],
                    from
                );
            }
        }
    }
    assert_eq!(world.audit("domain.deleted").await.len(), 4);
}

#[tokio::test]
async fn a_verification_time_can_only_be_set_on_an_active_domain() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let at_first = json!({ "verifiedAt": 1_700_000_000 });
    let early = world.patch_record(&place.path(), at_first.clone()).await;
    early.expect_error(409, "INVALID_STATE");
    // An owner must prove the ownership of a domain and cannot claim it.
    for said in [json!({ "status": "active" }), at_first] {
        let owner = owner(&place.platform);
        let refused = world.registry.patch(&owner, &place.path(), said).await;
        assert!(
            [403, 409].contains(&refused.status.as_u16()),
            "{}",
            refused.json
        );
    }
    let both = json!({
        "verifiedAt": 1_700_000_000, "status": "active", "sslStatus": "active", "cfHostnameId": "ch1",
    });
    let active = world.patch_record(&place.path(), both).await.expect(200);
    let fields = ["verifiedAt", "sslStatus", "cfHostnameId"].map(|field| active.text(field));
    assert_eq!(fields, ["2023-11-14T22:13:20.000Z", "active", "ch1"]);
    let cleared = json!({ "cfHostnameId": null, "status": "failed" });
    let failed = world
        .patch_record(&place.path(), cleared)
        .await
        .expect(200)
        .json;
    let unset = (&failed["verifiedAt"], &failed["cfHostnameId"]);
    assert_eq!(unset, (&Value::Null, &Value::Null));
    for bad in [
        json!({ "status": "moon" }),
        json!({ "sslStatus": "moon" }),
        json!({ "cfHostnameId": "" }),
        json!({ "verifiedAt": "2027-01-15T08:00:00Z" }),
        json!({ "verifiedAt": 253_402_300_800_i64 }),
    ] {
        let refused = world.patch_record(&place.path(), bad).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn a_tenant_cannot_set_a_certificate_status_that_requires_verification() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let (path, owner) = (place.path(), owner(&place.platform));
    let say = async |status: &str| {
        let body = json!({ "sslStatus": status });
        world.registry.patch(&owner, &path, body).await
    };
    for claim in [
        "pending_issuance",
        "pending_deployment",
        "active",
        "expired",
    ] {
        say(claim).await.expect_error(403, "FORBIDDEN");
    }
    for status in ["failed", "pending_validation"] {
        let said = say(status).await.expect(200);
        assert_eq!(said.text("sslStatus"), status);
    }
    let issued = world
        .patch_record(&path, json!({ "sslStatus": "active" }))
        .await;
    let _ = issued.expect(200);
    // Repeating the current status is accepted.
    let _ = say("active").await.expect(200);
}

#[tokio::test]
async fn a_domain_that_is_taken_or_can_never_be_verified_is_refused() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let (_, foreign_record) = world.platform_with_dns("looms").await;
    let again = world.request_domain(&place.platform, &place.dns_record, "SHOP.example.com");
    let refused = again.await.expect_error(409, "CONFLICT");
    let message = &refused.json["error"]["message"];
    assert_eq!(message, "This hostname is a custom domain already.");
    for record in [foreign_record.as_str(), "nothing"] {
        let asked = world.request_domain(&place.platform, record, "other.example.com");
        asked.await.expect_error(404, "NOT_FOUND");
    }
    let label = "a".repeat(57);
    let long = format!("{label}.{label}.{label}.{label}.example");
    for (hostname, target, issue) in [
        ("other.example.com", "*.example.net", "targetDns: invalid"),
        (TARGET, TARGET, "targetDns: invalid"),
        (
            "other.example.com",
            "192.0.2.1",
            "targetDns: invalid_format",
        ),
        (long.as_str(), TARGET, "hostname: too_long"),
    ] {
        let body =
            json!({ "dnsRecordId": place.dns_record, "hostname": hostname, "targetDns": target });
        let path = platform_path(&place.platform, "/domains");
        let asked = world.registry.post(&operator(), &path, body).await;
        let refused = asked.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), [issue], "{hostname}");
    }
}

#[tokio::test]
async fn a_hostname_belongs_to_the_platform_that_verified_it_last() {
    let world = World::new();
    let first = DomainFixture::of(&world).await;
    world.create_records(&first.platform, &first.domain).await;
    world.run_jobs().await;
    assert_eq!(first.status(&world).await, "active");
    let (platform, dns_record) = world.platform_with_dns("looms").await;
    let domain = world.domain(&platform, &dns_record, HOSTNAME).await;
    let second = DomainFixture {
        platform,
        dns_record,
        domain,
    };
    world.run_jobs().await;
    // An unverified domain takes nothing, and its status cannot be set to active.
    let said = json!({ "status": "active" });
    let said = world.patch_record(&second.path(), said).await;
    said.expect_error(409, "CONFLICT");
    assert_eq!(first.status(&world).await, "active");
    assert_eq!(second.missing(&world).await, ["TXT"]);
    world.create_records(&second.platform, &second.domain).await;
    world.advance_and_run(HOUR).await;
    assert_eq!(second.status(&world).await, "active");
    assert_eq!(first.status(&world).await, "failed");
    assert_eq!(world.audit("domain.failed").await.len(), 1);
    let target = &any_target();
    let served = world
        .provider
        .get_served_hostname(HOSTNAME, &second.platform, target);
    assert!(served.await.unwrap().is_some());
    // The old TXT record still exists, but it is no longer valid.
    first.change(&world, "pending").await;
    world.run_jobs().await;
    assert_eq!(first.missing(&world).await, ["TXT"]);
    world.create_records(&first.platform, &first.domain).await;
    world.advance_and_run(HOUR).await;
    assert_eq!(first.status(&world).await, "active");
    assert_eq!(second.status(&world).await, "failed");
}

#[tokio::test]
async fn an_unverified_claim_does_not_block_the_holder_of_a_hostname() {
    let world = World::new();
    let (stranger, strangers_record) = world.platform_with_dns("looms").await;
    let stacks = world
        .get_record(&platform_path(&stranger, "/stacks"))
        .await
        .json["data"][0]["id"]
        .clone();
    let resources = world
        .get_record(&platform_path(&stranger, "/resources"))
        .await;
    let (stack, resource) = (stacks.as_str().unwrap(), resources.each("id")[0].to_owned());
    let squatted = world.request_dns_record(&stranger, stack, &resource, HOSTNAME);
    let _ = squatted.await.expect(201);
    world.domain(&stranger, &strangers_record, HOSTNAME).await;
    let holder = DomainFixture::of(&world).await;
    world.create_records(&holder.platform, &holder.domain).await;
    world.run_jobs().await;
    assert_eq!(holder.status(&world).await, "active");
}

#[tokio::test]
async fn operators_see_the_pending_domains_of_all_platforms_oldest_first() {
    let world = World::new();
    let place = DomainFixture::of(&world).await;
    let (other, record) = world.platform_with_dns("looms").await;
    let mut ids = vec![place.domain.clone()];
    for hostname in ["a.example.com", "b.example.com", "c.example.com"] {
        ids.push(world.domain(&other, &record, hostname).await);
    }
    for (id, status) in [(&ids[1], "verifying"), (&ids[2], "active")] {
        let path = platform_path(&other, &format!("/domains/{id}"));
        let changed = world.patch_record(&path, json!({ "status": status, "cfHostnameId": "ch" }));
        let _ = changed.await.expect(200);
    }
    let path = "/api/v1/domains/pending";
    let pending = world.get_record(path).await.json;
    let entry = |id: &str, platform: &str, cf: Value, hostname: &str| json!({ "id": id, "platformId": platform, "cfHostnameId": cf, "hostname": hostname });
    let wanted = [
        entry(&ids[0], &place.platform, Value::Null, HOSTNAME),
        entry(&ids[1], &other, json!("ch"), "a.example.com"),
        entry(&ids[3], &other, Value::Null, "c.example.com"),
    ];
    assert_eq!(pending, json!({ "data": wanted }));
    let refused = world.registry.get(&owner(&other), path).await;
    refused.expect_error(403, "FORBIDDEN");
}
