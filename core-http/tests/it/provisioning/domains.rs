//! The jobs that make the provider serve custom domains.

use std::sync::Arc;

use core_domain::kernel::Code;
use core_domain::port::{HostnameState, Infrastructure};
use core_domain::provisioning::Job;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use crate::world::{
    HookedInfrastructure, JobCommand, World, any_target, no_answer_error, operator, owner,
    platform_path,
};

const ADD: &str = "/api/v1/provision/domain/add";
const HOSTNAME: &str = "shop.example.com";
const DAY: u64 = 24 * 60 * 60;

/// A platform with a DNS record, which requests the custom domain [`HOSTNAME`].
struct Shop {
    platform: String,
    dns_record: String,
}

impl Shop {
    async fn of(world: &World) -> Self {
        Self::with_slug(world, "engines").await
    }

    async fn with_slug(world: &World, slug: &str) -> Self {
        let (platform, dns_record) = world.platform_with_dns(slug).await;
        // The job of the DNS record runs first.
        world.run_jobs().await;
        Self {
            platform,
            dns_record,
        }
    }

    async fn ask(&self, world: &World, hostname: &str, dns_record: &str) -> Answer {
        let body = json!({
            "platformId": self.platform, "customHostname": hostname, "targetDnsRecordId": dns_record,
        });
        world.provisioning.post(&operator(), ADD, body).await
    }

    /// Requests the domain and returns the id of the job.
    async fn add(&self, world: &World) -> String {
        let asked = self.ask(world, HOSTNAME, &self.dns_record).await;
        let id = asked.expect(202).text("jobId").to_owned();
        world.tick(1);
        id
    }

    /// Returns the newest domain, including deleted ones.
    async fn domain(&self, world: &World) -> Value {
        let path = platform_path(&self.platform, "/domains?includeDeleted=true");
        world.get_record(&path).await.json["data"][0].clone()
    }

    /// Returns the domain's status, the status of its certificate, and its id at the provider.
    async fn statuses(&self, world: &World) -> [Value; 3] {
        let domain = self.domain(world).await;
        ["status", "sslStatus", "cfHostnameId"].map(|field| domain[field].clone())
    }

    async fn create_dns_records(&self, world: &World) {
        let domain = self.domain(world).await;
        let id = domain["id"].as_str().unwrap();
        world.create_records(&self.platform, id).await;
    }

    /// Returns the number of jobs that serve domains.
    async fn jobs(&self, world: &World) -> usize {
        let jobs = world.jobs(&self.platform).await.into_iter();
        jobs.filter(|job| job["kind"] == "domain.add").count()
    }

    async fn is_served(&self, world: &World) -> bool {
        let target = any_target();
        let served = world
            .provider
            .get_served_hostname(HOSTNAME, &self.platform, &target);
        served.await.unwrap().is_some()
    }

    async fn delete(&self, world: &World) {
        let domain = self.domain(world).await;
        let path = format!("/domains/{}", domain["id"].as_str().unwrap());
        let path = platform_path(&self.platform, &path);
        assert_eq!(world.registry.delete(&operator(), &path).await.status, 204);
        world.tick(1);
    }

    /// Requests the domain, runs the job until the domain is active, and returns the id of the job.
    async fn complete(&self, world: &World) -> String {
        let job = self.add(world).await;
        self.create_dns_records(world).await;
        world.run_jobs().await;
        assert_eq!(self.statuses(world).await, ACTIVE);
        job
    }
}

const ACTIVE: [&str; 3] = ["active", "active", "hostname-shop.example.com"];
const WAITING: [&str; 3] = ["verifying", "pending_issuance", "hostname-shop.example.com"];

/// Makes the provider report that the certificate is pending.
fn set_certificate_pending(world: &World) {
    let state = HostnameState::Pending("its certificate".to_owned());
    world.provider.set_hostname_state(state);
}

async fn status(world: &World, job: &str) -> String {
    world.job(job).await["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_domain_is_active_after_it_is_verified_and_its_certificate_is_in_use() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    set_certificate_pending(&world);
    let job = shop.add(&world).await;
    world.run_jobs().await;
    let stands = ["verifying", "pending_validation"].map(Value::from);
    assert_eq!(shop.statuses(&world).await[..2], stands);
    assert!(!shop.is_served(&world).await);
    let target = shop.domain(&world).await["targetDns"].clone();
    assert_eq!(target, "engines.example.net");
    shop.create_dns_records(&world).await;
    world.advance_and_run(30).await;
    assert_eq!(shop.statuses(&world).await, WAITING);
    let domain = shop.domain(&world).await;
    let told = [&domain["verifiedAt"], &domain["missingRecords"]];
    assert_eq!(told, [&Value::Null, &json!([])]);
    let waiting = world.job(&job).await;
    let told = ["status", "waitingFor", "currentStep"].map(|f| waiting[f].as_str().unwrap());
    assert_eq!(told, ["WAITING", "its certificate", "certificate"]);
    world.provider.set_hostname_state(HostnameState::Active);
    world.advance_and_run(5).await;
    assert_eq!(shop.statuses(&world).await, ACTIVE);
    assert!(shop.domain(&world).await["verifiedAt"].is_string());
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(world.audit("domain.activated").await.len(), 1);
}

#[tokio::test]
async fn a_job_polls_for_a_certificate_for_a_day_and_then_fails_with_the_hostname_kept() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    set_certificate_pending(&world);
    let job = shop.add(&world).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
        world.tick(pause - 1);
        world.run_timers().await;
        assert_eq!(status(&world, &job).await, "WAITING", "{pause}");
        world.advance_and_run(1).await;
    }
    world.advance_and_run(DAY).await;
    let failed = world.job(&job).await;
    let told = [&failed["status"], &failed["error"]["code"]];
    assert_eq!(told, ["FAILED", "CERTIFICATE_PENDING"]);
    assert_eq!(shop.statuses(&world).await, WAITING);
    assert!(shop.is_served(&world).await);
    // An operator's retry has the same time limit as a new job.
    world.operate(&job, JobCommand::Retry).await;
    world.run_jobs().await;
    assert_eq!(status(&world, &job).await, "WAITING");
    world.provider.set_hostname_state(HostnameState::Active);
    world.advance_and_run(5).await;
    assert_eq!(shop.statuses(&world).await, ACTIVE);
}

#[tokio::test]
async fn a_refusal_by_the_provider_fails_a_domain_and_a_missing_response_does_not() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    set_certificate_pending(&world);
    let job = shop.add(&world).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    let silence = HookedInfrastructure::new(&world.provider, |_, _| Err(no_answer_error()));
    let silence = Arc::new(silence);
    for _ in 0..20 {
        world.tick(300);
        world.run_timers().await;
        world.run_jobs_on(silence.clone()).await;
        let waiting = world.job(&job).await;
        assert_eq!(
            (&waiting["status"], &waiting["attempts"]),
            (&json!("WAITING"), &json!(0))
        );
    }
    assert_eq!(shop.statuses(&world).await, WAITING);
    let refused = HostnameState::Failed("the name is blocked".to_owned());
    world.provider.set_hostname_state(refused);
    world.advance_and_run(300).await;
    let failed = world.job(&job).await;
    let told = ["code", "message"].map(|field| failed["error"][field].as_str().unwrap());
    assert_eq!(told, ["HOSTNAME_FAILED", "the name is blocked"]);
    assert_eq!(
        shop.statuses(&world).await[..2],
        ["failed", "failed"].map(Value::from)
    );
    world.provider.set_hostname_state(HostnameState::Active);
    shop.complete(&world).await;
    // A job that fails because the provider does not respond leaves the domain unchanged too.
    shop.delete(&world).await;
    world.run_jobs().await;
    let job = shop.add(&world).await;
    shop.create_dns_records(&world).await;
    for _ in 0..10 {
        world.run_jobs_on(silence.clone()).await;
        world.tick(300);
        world.run_timers().await;
    }
    let failed = world.job(&job).await;
    assert_eq!(failed["failureKind"], "ATTEMPTS_EXHAUSTED");
    assert_eq!(
        shop.statuses(&world).await[..2],
        ["verifying", "pending_issuance"].map(Value::from)
    );
}

#[tokio::test]
async fn a_domain_gets_the_outcome_of_its_latest_job_and_is_activated_once() {
    for before in ["pending", "failed", "active"] {
        let world = World::new();
        let shop = Shop::of(&world).await;
        let domain = world
            .domain(&shop.platform, &shop.dns_record, HOSTNAME)
            .await;
        let path = platform_path(&shop.platform, &format!("/domains/{domain}"));
        let verifying = world.jobs(&shop.platform).await[0]["jobId"].clone();
        let _ = world
            .patch_record(&path, json!({ "status": before }))
            .await
            .expect(200);
        let jobs = [shop.add(&world).await, shop.add(&world).await];
        let asked = 3 + usize::from(before == "active");
        assert_eq!(shop.jobs(&world).await, asked, "{before}");
        world.run_jobs().await;
        world.create_records(&shop.platform, &domain).await;
        world.advance_and_run(60).await;
        assert_eq!(shop.statuses(&world).await, ACTIVE, "{before}");
        assert_eq!(shop.domain(&world).await["id"], *domain);
        for job in [verifying.as_str().unwrap(), &jobs[0], &jobs[1]] {
            assert_eq!(status(&world, job).await, "COMPLETED", "{before}");
        }
        assert_eq!(world.audit("domain.activated").await.len(), 1, "{before}");
    }
}

#[tokio::test]
async fn a_deleted_domain_is_not_served_unless_it_was_added_again() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    shop.complete(&world).await;
    shop.delete(&world).await;
    assert!(shop.is_served(&world).await);
    world.run_jobs().await;
    assert!(!shop.is_served(&world).await);
    let stands = ["deleted", "active"].map(Value::from);
    assert_eq!(shop.statuses(&world).await[..2], stands);
    assert_eq!(shop.domain(&world).await["cfHostnameId"], Value::Null);
    // A late removal does not remove a domain that was added again.
    shop.complete(&world).await;
    shop.delete(&world).await;
    let removal = world.jobs(&shop.platform).await[0].clone();
    assert_eq!(removal["kind"], "domain.remove");
    let removal = removal["jobId"].as_str().unwrap();
    world.operate(removal, JobCommand::Cancel).await;
    shop.complete(&world).await;
    world.operate(removal, JobCommand::Retry).await;
    world.run_jobs().await;
    assert_eq!(status(&world, removal).await, "COMPLETED");
    assert!(shop.is_served(&world).await);
    // A domain that is deleted while its job runs is removed by the removal job after it.
    shop.delete(&world).await;
    world.run_jobs().await;
    set_certificate_pending(&world);
    let job = shop.add(&world).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    assert!(shop.is_served(&world).await);
    let path = format!(
        "/domains/{}",
        shop.domain(&world).await["id"].as_str().unwrap()
    );
    let gone = json!({ "status": "deleted" });
    let _ = world
        .patch_record(&platform_path(&shop.platform, &path), gone)
        .await
        .expect(200);
    world.advance_and_run(300).await;
    assert!(!shop.is_served(&world).await);
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(shop.statuses(&world).await[0], "deleted");
}

#[tokio::test]
async fn a_domain_that_can_never_be_served_is_refused_without_a_job() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    let (other, foreign) = world.platform_with_dns("looms").await;
    for record in ["nothing", &foreign] {
        let asked = shop.ask(&world, HOSTNAME, record).await;
        asked.expect_error(404, "NOT_FOUND");
    }
    let stack = world
        .get_record(&platform_path(&shop.platform, "/stacks"))
        .await
        .json["data"][0]["id"]
        .clone();
    let resource = world
        .get_record(&platform_path(&shop.platform, "/resources"))
        .await;
    let (stack, resource) = (stack.as_str().unwrap(), resource.each("id")[0].to_owned());
    let record = |hostname| world.dns_record(&shop.platform, stack, &resource, hostname);
    let wildcard = record("*.wild.example.net").await;
    let second = record("second.example.net").await;
    let long = ["a".repeat(57).as_str(); 4].join(".") + ".example";
    for (hostname, record, issue) in [
        (HOSTNAME, &wildcard, "targetDnsRecordId: invalid"),
        (
            "engines.example.net",
            &shop.dns_record,
            "targetDnsRecordId: invalid",
        ),
        (&long, &shop.dns_record, "customHostname: too_long"),
    ] {
        let asked = shop.ask(&world, hostname, record).await;
        let refused = asked.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), [issue], "{hostname}");
    }
    assert_eq!(shop.jobs(&world).await, 0);
    shop.add(&world).await;
    shop.ask(&world, HOSTNAME, &second)
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(shop.jobs(&world).await, 1);
    // A platform can request a hostname that is active on another platform, and verify it.
    let domain = world.domain(&other, &foreign, "b.example.com").await;
    let path = platform_path(&other, &format!("/domains/{domain}"));
    let _ = world
        .patch_record(&path, json!({ "status": "active" }))
        .await
        .expect(200);
    let asked = shop.ask(&world, "b.example.com", &shop.dns_record).await;
    let _ = asked.expect(202);
}

#[tokio::test]
async fn after_any_store_failure_a_domain_is_activated_once_and_finally_removed() {
    for call in 1.. {
        let (world, store) = World::faulty();
        let shop = Shop::of(&world).await;
        let job = shop.add(&world).await;
        shop.create_dns_records(&world).await;
        let context = format!("call {call}");
        let mut failed = false;
        for expected in [true, false] {
            failed |= world.run_one_failing(&store, call).await;
            // The leases expire.
            world.advance_and_run(600).await;
            world.advance_and_run(600).await;
            assert_eq!(shop.is_served(&world).await, expected, "{context}");
            if expected {
                assert_eq!(shop.statuses(&world).await, ACTIVE, "{context}");
                assert_eq!(status(&world, &job).await, "COMPLETED", "{context}");
                shop.delete(&world).await;
            }
        }
        assert_eq!(shop.statuses(&world).await[2], Value::Null, "{context}");
        assert_eq!(world.audit("domain.activated").await.len(), 1, "{context}");
        if !failed {
            assert!(call > 40, "a run has only {call} calls");
            return;
        }
    }
}

#[tokio::test]
async fn a_cancelled_job_stops_serving_the_hostname_and_can_be_retried() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    set_certificate_pending(&world);
    let job = shop.add(&world).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    world.operate(&job, JobCommand::Cancel).await;
    world.finish_jobs().await;
    assert!(!shop.is_served(&world).await);
    let stands = shop.statuses(&world).await;
    assert_eq!((&stands[0], &stands[2]), (&json!("failed"), &Value::Null));
    world.provider.set_hostname_state(HostnameState::Active);
    world.operate(&job, JobCommand::Retry).await;
    assert_eq!(
        shop.statuses(&world).await[..2],
        ["verifying", "pending_issuance"].map(Value::from)
    );
    world.run_jobs().await;
    assert_eq!(shop.statuses(&world).await, ACTIVE);
    assert_eq!(status(&world, &job).await, "COMPLETED");
}

#[tokio::test]
async fn a_retry_does_not_take_a_hostname_that_another_platform_has_verified_since() {
    let world = World::new();
    let (before, since) = (
        Shop::of(&world).await,
        Shop::with_slug(&world, "looms").await,
    );
    set_certificate_pending(&world);
    let job = before.add(&world).await;
    before.create_dns_records(&world).await;
    world.run_jobs().await;
    world.operate(&job, JobCommand::Cancel).await;
    world.finish_jobs().await;
    world.provider.set_hostname_state(HostnameState::Active);
    since.add(&world).await;
    since.create_dns_records(&world).await;
    world.run_jobs().await;
    assert_eq!(since.statuses(&world).await, ACTIVE);
    let retried = world.try_to_operate(&job, JobCommand::Retry).await;
    assert_eq!(retried.unwrap_err().code(), Code::Conflict);
    world.run_jobs().await;
    assert_eq!(since.statuses(&world).await, ACTIVE);
    assert!(since.is_served(&world).await);
    assert_eq!(before.statuses(&world).await[0], "failed");
}

#[tokio::test]
async fn a_domain_that_returns_to_pending_is_not_served_until_it_is_verified_again() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    shop.complete(&world).await;
    let domain = shop.domain(&world).await["id"].clone();
    let path = platform_path(
        &shop.platform,
        &format!("/domains/{}", domain.as_str().unwrap()),
    );
    world.dns.clear();
    for status in ["failed", "pending"] {
        let caller = owner(&shop.platform);
        let body = json!({ "status": status });
        let patched = world.registry.patch(&caller, &path, body).await;
        let _ = patched.expect(200);
    }
    world.run_jobs().await;
    assert!(!shop.is_served(&world).await);
    assert_eq!(shop.statuses(&world).await[2], Value::Null);
    shop.create_dns_records(&world).await;
    world.advance_and_run(60).await;
    assert_eq!(shop.statuses(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}

#[tokio::test]
async fn a_domain_without_a_certificate_is_lost_to_a_platform_that_verifies_it() {
    let world = World::new();
    let (before, since) = (
        Shop::of(&world).await,
        Shop::with_slug(&world, "looms").await,
    );
    set_certificate_pending(&world);
    let job = before.add(&world).await;
    before.create_dns_records(&world).await;
    world.run_jobs().await;
    world.advance_and_run(DAY).await;
    assert_eq!(status(&world, &job).await, "FAILED");
    assert!(before.is_served(&world).await);
    world.provider.set_hostname_state(HostnameState::Active);
    since.add(&world).await;
    since.create_dns_records(&world).await;
    world.run_jobs().await;
    assert_eq!(since.statuses(&world).await, ACTIVE);
    assert!(since.is_served(&world).await);
    let stands = before.statuses(&world).await;
    assert_eq!((&stands[0], &stands[2]), (&json!("failed"), &Value::Null));
}

#[tokio::test]
async fn a_domain_with_a_pending_certificate_is_not_served_during_a_suspension() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    set_certificate_pending(&world);
    shop.add(&world).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    assert!(shop.is_served(&world).await);
    world
        .change_lifecycle_as_operator(&shop.platform, "suspend")
        .await;
    world.run_jobs().await;
    assert!(!shop.is_served(&world).await);
    world
        .change_lifecycle_as_operator(&shop.platform, "restore")
        .await;
    world.provider.set_hostname_state(HostnameState::Active);
    world.advance_and_run(600).await;
    assert_eq!(shop.statuses(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}

#[tokio::test]
async fn a_job_of_the_former_kind_domain_verify_still_completes_its_domain() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    let job = shop.add(&world).await;
    let earlier = |job: &mut Job| {
        job.kind = "domain.verify".to_owned();
        job.steps.truncate(1);
    };
    world.change_job(&job, earlier).await;
    shop.create_dns_records(&world).await;
    world.run_jobs().await;
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(shop.statuses(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}
