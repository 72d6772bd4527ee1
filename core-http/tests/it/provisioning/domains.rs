//! Having custom domains served.

use std::sync::Arc;

use core_domain::kernel::Code;
use core_domain::port::{HostnameState, Infrastructure};
use core_domain::provisioning::Job;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use crate::world::{Disturbed, How, World, any_target, at, operator, owner, silent};

const ADD: &str = "/api/v1/provision/domain/add";
const HOSTNAME: &str = "shop.example.com";
const DAY: u64 = 24 * 60 * 60;

/// A platform with a DNS record, and the custom domain it asks for.
struct Shop {
    platform: String,
    dns_record: String,
}

impl Shop {
    async fn of(world: &World) -> Self {
        Self::called(world, "engines").await
    }

    async fn called(world: &World, slug: &str) -> Self {
        let (platform, dns_record) = world.platform_with_dns(slug).await;
        // The DNS record is served first.
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

    /// Asks for the domain; answers the job.
    async fn add(&self, world: &World) -> String {
        let asked = self.ask(world, HOSTNAME, &self.dns_record).await;
        let id = asked.expect(202).text("jobId").to_owned();
        world.tick(1);
        id
    }

    /// The newest domain, deleted ones too.
    async fn domain(&self, world: &World) -> Value {
        let path = at(&self.platform, "/domains?includeDeleted=true");
        world.shown(&path).await.json["data"][0].clone()
    }

    /// Its status, that of its certificate and its id at the provider.
    async fn stands(&self, world: &World) -> [Value; 3] {
        let domain = self.domain(world).await;
        ["status", "sslStatus", "cfHostnameId"].map(|field| domain[field].clone())
    }

    async fn prove(&self, world: &World) {
        let domain = self.domain(world).await;
        let id = domain["id"].as_str().unwrap();
        world.create_records(&self.platform, id).await;
    }

    /// How many jobs there are that have domains served.
    async fn jobs(&self, world: &World) -> usize {
        let jobs = world.jobs(&self.platform).await.into_iter();
        jobs.filter(|job| job["kind"] == "domain.add").count()
    }

    async fn is_served(&self, world: &World) -> bool {
        let target = any_target();
        let served = world
            .provider
            .served_hostname(HOSTNAME, &self.platform, &target);
        served.await.unwrap().is_some()
    }

    async fn delete(&self, world: &World) {
        let domain = self.domain(world).await;
        let path = format!("/domains/{}", domain["id"].as_str().unwrap());
        let path = at(&self.platform, &path);
        assert_eq!(world.registry.delete(&operator(), &path).await.status, 204);
        world.tick(1);
    }

    /// Has the domain served and active; answers the job.
    async fn complete(&self, world: &World) -> String {
        let job = self.add(world).await;
        self.prove(world).await;
        world.run_jobs().await;
        assert_eq!(self.stands(world).await, ACTIVE);
        job
    }
}

const ACTIVE: [&str; 3] = ["active", "active", "hostname-shop.example.com"];
const WAITING: [&str; 3] = ["verifying", "pending_issuance", "hostname-shop.example.com"];

/// The certificate is still to come.
fn pending(world: &World) {
    let state = HostnameState::Pending("its certificate".to_owned());
    world.provider.hostnames_are(state);
}

async fn status(world: &World, job: &str) -> String {
    world.job(job).await["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_domain_is_active_once_it_is_proved_and_its_certificate_is_in_use() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    pending(&world);
    let job = shop.add(&world).await;
    world.run_jobs().await;
    let stands = ["verifying", "pending_validation"].map(Value::from);
    assert_eq!(shop.stands(&world).await[..2], stands);
    assert!(!shop.is_served(&world).await);
    let target = shop.domain(&world).await["targetDns"].clone();
    assert_eq!(target, "engines.example.net");
    shop.prove(&world).await;
    world.pass(30).await;
    assert_eq!(shop.stands(&world).await, WAITING);
    let domain = shop.domain(&world).await;
    let told = [&domain["verifiedAt"], &domain["missingRecords"]];
    assert_eq!(told, [&Value::Null, &json!([])]);
    let waiting = world.job(&job).await;
    let told = ["status", "waitingFor", "currentStep"].map(|f| waiting[f].as_str().unwrap());
    assert_eq!(told, ["WAITING", "its certificate", "certificate"]);
    world.provider.hostnames_are(HostnameState::Active);
    world.pass(5).await;
    assert_eq!(shop.stands(&world).await, ACTIVE);
    assert!(shop.domain(&world).await["verifiedAt"].is_string());
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(world.audit("domain.activated").await.len(), 1);
}

#[tokio::test]
async fn a_certificate_is_waited_for_at_growing_intervals_for_a_day_and_the_hostname_stays() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    pending(&world);
    let job = shop.add(&world).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
        world.tick(pause - 1);
        world.run_timers().await;
        assert_eq!(status(&world, &job).await, "WAITING", "{pause}");
        world.pass(1).await;
    }
    world.pass(DAY).await;
    let failed = world.job(&job).await;
    let told = [&failed["status"], &failed["error"]["code"]];
    assert_eq!(told, ["FAILED", "CERTIFICATE_PENDING"]);
    assert_eq!(shop.stands(&world).await, WAITING);
    assert!(shop.is_served(&world).await);
    // An operator's retry has as much time as a new job.
    world.operate(&job, How::Retry).await;
    world.run_jobs().await;
    assert_eq!(status(&world, &job).await, "WAITING");
    world.provider.hostnames_are(HostnameState::Active);
    world.pass(5).await;
    assert_eq!(shop.stands(&world).await, ACTIVE);
}

#[tokio::test]
async fn a_provider_that_does_not_answer_fails_no_domain_and_one_that_refuses_does() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    pending(&world);
    let job = shop.add(&world).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    let silence = Disturbed::new(&world.provider, |_, _| Err(silent()));
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
    assert_eq!(shop.stands(&world).await, WAITING);
    let refused = HostnameState::Failed("the name is blocked".to_owned());
    world.provider.hostnames_are(refused);
    world.pass(300).await;
    let failed = world.job(&job).await;
    let told = ["code", "message"].map(|field| failed["error"][field].as_str().unwrap());
    assert_eq!(told, ["HOSTNAME_FAILED", "the name is blocked"]);
    assert_eq!(
        shop.stands(&world).await[..2],
        ["failed", "failed"].map(Value::from)
    );
    world.provider.hostnames_are(HostnameState::Active);
    shop.complete(&world).await;
    // What fails because nobody answers leaves the domain as it is as well.
    shop.delete(&world).await;
    world.run_jobs().await;
    let job = shop.add(&world).await;
    shop.prove(&world).await;
    for _ in 0..10 {
        world.run_jobs_on(silence.clone()).await;
        world.tick(300);
        world.run_timers().await;
    }
    let failed = world.job(&job).await;
    assert_eq!(failed["failureKind"], "ATTEMPTS_EXHAUSTED");
    assert_eq!(
        shop.stands(&world).await[..2],
        ["verifying", "pending_issuance"].map(Value::from)
    );
}

#[tokio::test]
async fn a_domain_follows_the_job_that_was_asked_for_last_and_is_activated_once() {
    for before in ["pending", "failed", "active"] {
        let world = World::new();
        let shop = Shop::of(&world).await;
        let domain = world
            .domain(&shop.platform, &shop.dns_record, HOSTNAME)
            .await;
        let path = at(&shop.platform, &format!("/domains/{domain}"));
        let verifying = world.jobs(&shop.platform).await[0]["jobId"].clone();
        let _ = world
            .patched(&path, json!({ "status": before }))
            .await
            .expect(200);
        let jobs = [shop.add(&world).await, shop.add(&world).await];
        let asked = 3 + usize::from(before == "active");
        assert_eq!(shop.jobs(&world).await, asked, "{before}");
        world.run_jobs().await;
        world.create_records(&shop.platform, &domain).await;
        world.pass(60).await;
        assert_eq!(shop.stands(&world).await, ACTIVE, "{before}");
        assert_eq!(shop.domain(&world).await["id"], *domain);
        for job in [verifying.as_str().unwrap(), &jobs[0], &jobs[1]] {
            assert_eq!(status(&world, job).await, "COMPLETED", "{before}");
        }
        assert_eq!(world.audit("domain.activated").await.len(), 1, "{before}");
    }
}

#[tokio::test]
async fn a_deleted_domain_is_served_no_more_unless_it_was_entered_again() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    shop.complete(&world).await;
    shop.delete(&world).await;
    assert!(shop.is_served(&world).await);
    world.run_jobs().await;
    assert!(!shop.is_served(&world).await);
    let stands = ["deleted", "active"].map(Value::from);
    assert_eq!(shop.stands(&world).await[..2], stands);
    assert_eq!(shop.domain(&world).await["cfHostnameId"], Value::Null);
    // A removal that is late finds what is wanted again.
    shop.complete(&world).await;
    shop.delete(&world).await;
    let removal = world.jobs(&shop.platform).await[0].clone();
    assert_eq!(removal["kind"], "domain.remove");
    let removal = removal["jobId"].as_str().unwrap();
    world.operate(removal, How::Cancel).await;
    shop.complete(&world).await;
    world.operate(removal, How::Retry).await;
    world.run_jobs().await;
    assert_eq!(status(&world, removal).await, "COMPLETED");
    assert!(shop.is_served(&world).await);
    // One that is deleted while it is being served is found by the removal behind it.
    shop.delete(&world).await;
    world.run_jobs().await;
    pending(&world);
    let job = shop.add(&world).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    assert!(shop.is_served(&world).await);
    let path = format!(
        "/domains/{}",
        shop.domain(&world).await["id"].as_str().unwrap()
    );
    let gone = json!({ "status": "deleted" });
    let _ = world
        .patched(&at(&shop.platform, &path), gone)
        .await
        .expect(200);
    world.pass(300).await;
    assert!(!shop.is_served(&world).await);
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(shop.stands(&world).await[0], "deleted");
}

#[tokio::test]
async fn what_can_never_be_served_is_refused_and_leaves_nothing() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    let (other, foreign) = world.platform_with_dns("looms").await;
    for record in ["nothing", &foreign] {
        let asked = shop.ask(&world, HOSTNAME, record).await;
        asked.refused(404, "NOT_FOUND");
    }
    let stack = world.shown(&at(&shop.platform, "/stacks")).await.json["data"][0]["id"].clone();
    let resource = world.shown(&at(&shop.platform, "/resources")).await;
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
        let refused = asked.refused(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), [issue], "{hostname}");
    }
    assert_eq!(shop.jobs(&world).await, 0);
    shop.add(&world).await;
    shop.ask(&world, HOSTNAME, &second)
        .await
        .refused(409, "CONFLICT");
    assert_eq!(shop.jobs(&world).await, 1);
    // What is active elsewhere may be proved by this platform as well.
    let domain = world.domain(&other, &foreign, "b.example.com").await;
    let path = at(&other, &format!("/domains/{domain}"));
    let _ = world
        .patched(&path, json!({ "status": "active" }))
        .await
        .expect(200);
    let asked = shop.ask(&world, "b.example.com", &shop.dns_record).await;
    let _ = asked.expect(202);
}

#[tokio::test]
async fn whichever_call_of_the_store_fails_a_domain_is_active_once_and_served_no_more_in_the_end() {
    for call in 1.. {
        let (world, store) = World::faulty();
        let shop = Shop::of(&world).await;
        let job = shop.add(&world).await;
        shop.prove(&world).await;
        let context = format!("call {call}");
        let mut failed = false;
        for expected in [true, false] {
            failed |= world.run_one_failing(&store, call).await;
            // Leases end.
            world.pass(600).await;
            world.pass(600).await;
            assert_eq!(shop.is_served(&world).await, expected, "{context}");
            if expected {
                assert_eq!(shop.stands(&world).await, ACTIVE, "{context}");
                assert_eq!(status(&world, &job).await, "COMPLETED", "{context}");
                shop.delete(&world).await;
            }
        }
        assert_eq!(shop.stands(&world).await[2], Value::Null, "{context}");
        assert_eq!(world.audit("domain.activated").await.len(), 1, "{context}");
        if !failed {
            assert!(call > 40, "a run has only {call} calls");
            return;
        }
    }
}

#[tokio::test]
async fn a_cancelled_job_has_the_hostname_served_no_more_and_can_be_let_go_on() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    pending(&world);
    let job = shop.add(&world).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    world.operate(&job, How::Cancel).await;
    world.settle_jobs().await;
    assert!(!shop.is_served(&world).await);
    let stands = shop.stands(&world).await;
    assert_eq!((&stands[0], &stands[2]), (&json!("failed"), &Value::Null));
    world.provider.hostnames_are(HostnameState::Active);
    world.operate(&job, How::Retry).await;
    assert_eq!(
        shop.stands(&world).await[..2],
        ["verifying", "pending_issuance"].map(Value::from)
    );
    world.run_jobs().await;
    assert_eq!(shop.stands(&world).await, ACTIVE);
    assert_eq!(status(&world, &job).await, "COMPLETED");
}

#[tokio::test]
async fn a_retry_takes_no_hostname_that_another_platform_has_proved_since() {
    let world = World::new();
    let (before, since) = (Shop::of(&world).await, Shop::called(&world, "looms").await);
    pending(&world);
    let job = before.add(&world).await;
    before.prove(&world).await;
    world.run_jobs().await;
    world.operate(&job, How::Cancel).await;
    world.settle_jobs().await;
    world.provider.hostnames_are(HostnameState::Active);
    since.add(&world).await;
    since.prove(&world).await;
    world.run_jobs().await;
    assert_eq!(since.stands(&world).await, ACTIVE);
    let retried = world.try_to_operate(&job, How::Retry).await;
    assert_eq!(retried.unwrap_err().code(), Code::Conflict);
    world.run_jobs().await;
    assert_eq!(since.stands(&world).await, ACTIVE);
    assert!(since.is_served(&world).await);
    assert_eq!(before.stands(&world).await[0], "failed");
}

#[tokio::test]
async fn a_domain_that_goes_back_to_pending_is_not_served_until_it_is_proved_again() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    shop.complete(&world).await;
    let domain = shop.domain(&world).await["id"].clone();
    let path = at(
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
    assert_eq!(shop.stands(&world).await[2], Value::Null);
    shop.prove(&world).await;
    world.pass(60).await;
    assert_eq!(shop.stands(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}

#[tokio::test]
async fn a_domain_that_waits_in_vain_for_its_certificate_is_lost_to_who_proves_it() {
    let world = World::new();
    let (before, since) = (Shop::of(&world).await, Shop::called(&world, "looms").await);
    pending(&world);
    let job = before.add(&world).await;
    before.prove(&world).await;
    world.run_jobs().await;
    world.pass(DAY).await;
    assert_eq!(status(&world, &job).await, "FAILED");
    assert!(before.is_served(&world).await);
    world.provider.hostnames_are(HostnameState::Active);
    since.add(&world).await;
    since.prove(&world).await;
    world.run_jobs().await;
    assert_eq!(since.stands(&world).await, ACTIVE);
    assert!(since.is_served(&world).await);
    let stands = before.stands(&world).await;
    assert_eq!((&stands[0], &stands[2]), (&json!("failed"), &Value::Null));
}

#[tokio::test]
async fn a_domain_that_waits_for_its_certificate_is_not_served_while_its_platform_is_suspended() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    pending(&world);
    shop.add(&world).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    assert!(shop.is_served(&world).await);
    world.move_on(&shop.platform, "suspend").await;
    world.run_jobs().await;
    assert!(!shop.is_served(&world).await);
    world.move_on(&shop.platform, "restore").await;
    world.provider.hostnames_are(HostnameState::Active);
    world.pass(600).await;
    assert_eq!(shop.stands(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}

#[tokio::test]
async fn a_job_of_the_kind_that_earlier_versions_had_hands_its_domain_on() {
    let world = World::new();
    let shop = Shop::of(&world).await;
    let job = shop.add(&world).await;
    let earlier = |job: &mut Job| {
        job.kind = "domain.verify".to_owned();
        job.steps.truncate(1);
    };
    world.change_job(&job, earlier).await;
    shop.prove(&world).await;
    world.run_jobs().await;
    assert_eq!(status(&world, &job).await, "COMPLETED");
    assert_eq!(shop.stands(&world).await, ACTIVE);
    assert!(shop.is_served(&world).await);
}
