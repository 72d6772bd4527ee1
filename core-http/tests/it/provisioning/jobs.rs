//! Reading jobs: single jobs, lists, and long polls.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Caller, PermissionSet};
use core_domain::port::{ProviderError, ProviderObject};
use core_domain::provisioning::effect_key;
use core_domain::registry::ResourceType;
use core_domain::testing::MockInfrastructure;
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{JobCommand, World, operator, owner, plain_member, user_without_organization};

const JOBS: &str = "/api/v1/provision/jobs";

fn step(name: &str) -> Value {
    json!({
        "name": name, "status": "PENDING", "attempts": 0, "startedAt": null, "finishedAt": null,
        "error": null, "output": null, "effectKey": null,
    })
}

#[tokio::test]
async fn a_failed_job_shows_its_error_and_step_and_only_operators_see_its_lease() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let id = world.provision(&platform).await;
    let now = "2027-01-15T08:00:01.000Z";
    let claimed = world.worker().claim(1).await.unwrap();
    assert_eq!(claimed[0].job_id.as_str(), id);
    let running = world.job(&id).await;
    assert!(running["leaseOwner"].is_string());
    assert_eq!(running["leaseUntil"], "2027-01-15T08:00:31.000Z");
    assert_eq!(
        [&running["status"], &running["startedAt"]],
        ["RUNNING", now]
    );
    world.operate(&id, JobCommand::Cancel).await;
    let mut shown = world.job(&id).await;
    let mut steps = ["d1", "kv", "r2", "queue", "worker", "pages"].map(step);
    // A claim starts the first step, so the object of that step may exist.
    let cancelled =
        json!({ "code": "CANCELLED", "message": "cancelled by operator", "details": {} });
    steps[0] = json!({
        "name": "d1", "status": "ABANDONED", "attempts": 0, "startedAt": now, "finishedAt": now,
        "error": cancelled, "output": null, "effectKey": effect_key(&claimed[0].job_id, "d1"),
    });
    let expected = json!({
        "jobId": id, "kind": "platform", "platformId": platform, "entityId": shown["entityId"],
        "environment": "prod", "status": "FAILED", "reason": "cancelled by operator",
        "failureKind": "CANCELLED", "output": null, "steps": steps, "currentStep": "d1",
        "error": cancelled,
        "input": {
            "platformId": platform, "slug": "engines", "entityId": shown["entityId"], "environment": "prod",
            "planTier": "starter", "billingEmail": "ada@example.org",
        },
        "progress": { "completedSteps": 0, "totalSteps": 6, "percent": 0, "message": "stopped at d1" },
        "attempts": 0, "maxAttempts": 8, "lostLeases": 0, "runAt": now,
        "deadlineAt": "2027-01-16T08:00:01.000Z", "waitingFor": null, "holdReason": null, "priority": 0,
        "forced": false, "replayCount": 0, "dlqEntryId": null, "parentJobId": null, "idempotencyKey": null,
        "requestId": shown["requestId"], "traceId": null, "createdBy": { "type": "service", "id": "service-key" },
        "definitionVersion": 1, "createdAt": now, "startedAt": now, "finishedAt": now, "updatedAt": now,
        "leaseOwner": null, "leaseUntil": null, "fence": 2,
    });
    assert_eq!(shown, expected);
    for operators in ["leaseOwner", "leaseUntil", "fence"] {
        shown.as_object_mut().unwrap().remove(operators);
    }
    assert_eq!(world.job_for(&plain_member(&platform), &id).await, shown);
}

#[tokio::test]
async fn the_progress_of_a_job_has_a_readable_message() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let id = world.provision(&platform).await;
    let told = async |completed: u64, percent: u64, message: &str| {
        let progress = world.job(&id).await["progress"].clone();
        let wanted = json!({
            "completedSteps": completed, "totalSteps": 6, "percent": percent, "message": message,
        });
        assert_eq!(progress, wanted);
    };
    told(0, 0, "waiting for its turn").await;
    let mut provider = MockInfrastructure::new();
    let owner = platform.clone();
    provider
        .expect_observe()
        .returning(move |resource| match resource.resource_type {
            ResourceType::Kv => Err(ProviderError::Transient("busy".into())),
            _ => Ok(Some(ProviderObject {
                id: "1".to_owned(),
                url: None,
                owner: Some(owner.clone()),
            })),
        });
    let worker = world.worker_on(Arc::new(provider));
    worker.run_one(&NoSupervisor).await.unwrap();
    told(1, 16, "kv: trying again (2 of 8)").await;
    world.tick(2);
    let claimed = world.worker().claim(1).await.unwrap();
    assert_eq!(claimed.len(), 1);
    told(1, 16, "kv").await;
    world.operate(&id, JobCommand::ForceComplete).await;
    // It is unknown whether the step in progress has taken effect.
    told(5, 100, "declared done by an operator").await;
}

async fn list_job_ids(world: &World, caller: &Caller, query: &str) -> Vec<String> {
    let path = format!("{JOBS}{query}");
    let listed = world.provisioning.get(caller, &path).await.expect(200);
    let ids = listed.each("jobId");
    assert_eq!(listed.json["pagination"]["count"], ids.len());
    ids.into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_list_has_the_matching_jobs_that_the_caller_can_see_newest_first() {
    let world = World::new();
    let (first, second) = (
        world.create_platform("one").await,
        world.create_platform("two").await,
    );
    let mut jobs = Vec::new();
    for platform in [&first, &first, &second] {
        jobs.push(world.provision(platform).await);
        world.tick(1);
    }
    world.operate(&jobs[0], JobCommand::Cancel).await;
    let of_second = format!("?platformId={second}");
    let queued_of_first = format!("?platformId={first}&status=QUEUED");
    let (operator, owner) = (operator(), owner(&first));
    for (caller, query, wanted) in [
        (&operator, "", vec![2, 1, 0]),
        (&operator, "?status=FAILED", vec![0]),
        (&operator, "?status=COMPLETED", vec![]),
        (&operator, of_second.as_str(), vec![2]),
        (&operator, queued_of_first.as_str(), vec![1]),
        (&owner, "", vec![1, 0]),
        (&owner, "?status=QUEUED", vec![1]),
        (&user_without_organization(), "", vec![]),
    ] {
        let wanted: Vec<String> = wanted
            .into_iter()
            .map(|at: usize| jobs[at].clone())
            .collect();
        assert_eq!(list_job_ids(&world, caller, query).await, wanted, "{query}");
    }
    let path = format!("{JOBS}{of_second}");
    let foreign = world.provisioning.get(&owner, &path).await;
    foreign.expect_error(404, "NOT_FOUND");
    let path = format!("{JOBS}?limit=1");
    let page = world.provisioning.get(&operator, &path).await.expect(200);
    let page = &page.json["pagination"];
    let next = page["nextCursor"].as_str().unwrap();
    let other = format!("{JOBS}?limit=1&status=QUEUED&cursor={next}");
    let refused = world.provisioning.get(&operator, &other).await;
    refused.expect_error(400, "INVALID_CURSOR");
    let wanted = json!({ "count": 1, "limit": 1, "cursor": null, "nextCursor": next });
    assert_eq!(*page, wanted);
}

#[tokio::test]
async fn callers_without_the_permission_to_read_jobs_get_403() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let id = world.provision(&platform).await;
    let mut caller = plain_member(&platform);
    if let Caller::User {
        membership: Some(own),
        ..
    } = &mut caller
    {
        own.permissions = PermissionSet::new(["platform:read"]);
    }
    for rest in [
        format!("/{id}"),
        String::new(),
        format!("?platformId={platform}"),
    ] {
        let path = format!("{JOBS}{rest}");
        let refused = world.provisioning.get(&caller, &path).await;
        refused.expect_error(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn the_store_calls_for_a_page_of_jobs_depend_only_on_its_number_of_slices() {
    let (world, faults) = World::faulty();
    let mut costs = Vec::new();
    for round in 0..3 {
        for job in 0..1 + 4 * round {
            let platform = world.create_platform(&format!("p-{round}-{job}")).await;
            world.provision(&platform).await;
            world.provision(&platform).await;
        }
        world.worker().claim(1 + 2 * round).await.unwrap();
        let mut calls = 0;
        loop {
            calls += 1;
            faults.fail_call(calls);
            let listed = world.provisioning.get(&operator(), JOBS).await;
            if !faults.has_failed() {
                faults.fail_call(u32::MAX);
                costs.push((
                    calls,
                    listed.expect(200).json["pagination"]["count"].clone(),
                ));
                break;
            }
        }
    }
    let [(first, few), (second, more), (third, many)] = costs.try_into().unwrap();
    assert_eq!([few, more, many], [json!(2), json!(12), json!(30)]);
    // Rows that may be large are read in slices: 16 rows first, then as many as fit into the byte budget.
    assert_eq!((second, third), (first, first + 1));
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_of_a_job_returns_when_the_job_ends_or_the_wait_expires() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let id = world.provision(&platform).await;
    let caller = plain_member(&platform);
    let began = Instant::now();
    let path = format!("{JOBS}/{id}?wait=3");
    let waited = world.provisioning.get(&caller, &path).await;
    assert_eq!(waited.expect(200).text("status"), "QUEUED");
    assert_eq!(began.elapsed().as_secs(), 3);
    let path = format!("{JOBS}/{id}?wait=20");
    let began = Instant::now();
    let ends = async {
        sleep(Duration::from_secs(4)).await;
        world.operate(&id, JobCommand::Cancel).await;
    };
    let (answer, ()) = tokio::join!(world.provisioning.get(&caller, &path), ends);
    assert_eq!(answer.expect(200).text("status"), "FAILED");
    let took = began.elapsed().as_millis();
    assert!((4_000..=5_000).contains(&took), "{took} ms");
    // Ended jobs and refusals are returned immediately.
    let again = Instant::now();
    let ended = world.provisioning.get(&caller, &path).await;
    assert_eq!(ended.expect(200).text("status"), "FAILED");
    let hidden = world.provisioning.get(&owner("other"), &path).await;
    hidden.expect_error(404, "NOT_FOUND");
    assert_eq!(again.elapsed(), Duration::ZERO);
}
