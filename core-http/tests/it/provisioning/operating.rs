//! Operations on jobs of specific kinds, and the errors that tenants see.

use std::sync::Arc;

use core_domain::port::ProviderError;
use core_domain::provisioning::HoldScope;
use core_domain::testing::MockInfrastructure;
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};

use crate::world::{JobCommand, SERVER_PATH, World, on_every_store, owner, platform_path};

async fn a_failed_deployment_completes_when_its_job_is_retried_or_replayed(world: World) {
    for is_replayed in [false, true] {
        let slug = if is_replayed { "replayed" } else { "retried" };
        let platform = world.create_platform(slug).await;
        world.provider.set_failing(true);
        let deployment = world.deployment(&platform, &owner(&platform)).await;
        world.run_jobs().await;
        world.provider.set_failing(false);
        let [failed] = <[Value; 1]>::try_from(world.jobs(&platform).await).unwrap();
        let id = failed["jobId"].as_str().unwrap();
        assert!(failed["dlqEntryId"].is_string(), "{failed}");
        world.tick(1);
        if is_replayed {
            world.replay_job(id).await.unwrap();
        } else {
            world.operate(id, JobCommand::Retry).await;
        }
        world.run_jobs().await;
        let done = world.job(id).await;
        assert_eq!(done["status"], "COMPLETED", "{done}");
        assert_eq!(done["replayCount"], u64::from(is_replayed));
        assert!(done["error"].is_null() && done["failureKind"].is_null());
        // The failed deployment stays unchanged.
        let path = platform_path(&platform, &format!("/deployments/{deployment}"));
        let shown = world.cli.get(&owner(&platform), &path).await.expect(200);
        assert_eq!(shown.text("status"), "failure");
        let refused = world.try_to_operate(id, JobCommand::Retry).await;
        assert_eq!(refused.unwrap_err().code().as_str(), "INVALID_STATE");
        let refused = world.replay_job(id).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "DLQ_ENTRY_NOT_REPLAYABLE");
    }
    for action in ["job.retried", "job.replayed"] {
        assert_eq!(world.audit(action).await.len(), 1, "{action}");
    }
}

async fn a_signal_resumes_a_waiting_job_and_is_audited(world: World) {
    let ada = world.sign_up("ada@example.org").await;
    let held = HoldScope::Kind("platform".to_owned());
    world.hold(&held, true).await;
    let start = json!({ "platformName": "Engines", "slug": "engines" });
    let path = "/api/v1/onboarding/start";
    let started = world.registry.post(&ada.caller(), path, start).await;
    let started = started.expect(202);
    let job = started.text("jobId");
    let signal = async || world.try_to_operate(job, JobCommand::Signal).await;
    let early = signal().await.unwrap_err();
    assert_eq!(early.code().as_str(), "INVALID_STATE");
    world.run_jobs().await;
    assert_eq!(world.job(job).await["status"], "WAITING");
    assert_eq!(signal().await.unwrap().status.as_str(), "QUEUED");
    assert_eq!(world.next_job().await.as_deref(), Some(job));
    let entries = world.audit("job.signalled").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].entity_id, job);
}

on_every_store! {
    a_failed_deployment_completes_when_its_job_is_retried_or_replayed,
    a_signal_resumes_a_waiting_job_and_is_audited,
}

#[tokio::test]
async fn the_error_of_a_job_reveals_nothing_about_the_server() {
    let world = World::new();
    let refusal = "no such zone".to_owned();
    for (failure, code) in [
        (
            ProviderError::Transient(SERVER_PATH.into()),
            "PROVIDER_UNAVAILABLE",
        ),
        (
            ProviderError::OutcomeUnknown(SERVER_PATH.into()),
            "PROVIDER_TIMEOUT",
        ),
        (
            ProviderError::Damaged(SERVER_PATH.into()),
            "PROVIDER_DAMAGED",
        ),
        (ProviderError::Permanent(refusal), "PROVIDER_REFUSED"),
    ] {
        let slug = code.to_lowercase().replace('_', "-");
        let platform = world.create_platform(&slug).await;
        let job = world.provision(&platform).await;
        let mut provider = MockInfrastructure::new();
        let seen = failure.clone();
        provider
            .expect_observe()
            .returning(move |_| Err(seen.clone()));
        let worker = world.worker_on(Arc::new(provider));
        worker.run_one(&NoSupervisor).await.unwrap();
        let shown = world.job_for(&owner(&platform), &job).await;
        assert_eq!(shown["error"]["code"], code);
        assert_eq!(shown["error"]["message"], failure.to_string());
        assert!(!shown.to_string().contains("/srv"), "{shown}");
        world.operate(&job, JobCommand::ForceComplete).await;
    }
}
