//! Provisioning: queueing, operating and reading jobs, beyond what the generated tests cover.

mod auth;
mod creating;
mod dlq;
mod domains;
mod dry_run;
mod events;
mod features;
mod holds;
mod jobs;
mod lanes;
mod large_removal;
mod onboarding;
mod operating;
mod operators;
mod reconciling;
mod removal;
mod retention;
mod stack_refusals;
mod stacks;
mod undoing;

use core_domain::kernel::Caller;
use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef};
use core_domain::provisioning::Report;
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::world::{World, operator};

const PLATFORM: &str = "/api/v1/provision/platform";
const DEPROVISION: &str = "/api/v1/provision/platform/deprovision";

/// Returns a valid body for [`PLATFORM`].
fn platform_body(platform: &str) -> Value {
    json!({ "platformId": platform, "planTier": "starter", "billingEmail": "bills@example.org" })
}

impl World {
    /// Queues a job and returns its id. Asserts that the response contains only the id and the status.
    async fn queue_job(&self, caller: &Caller, path: &str, body: Value) -> String {
        let queued = self.provisioning.post(caller, path, body).await.expect(202);
        let id = queued.text("jobId").to_owned();
        assert_eq!(queued.json, json!({ "jobId": id, "status": "QUEUED" }));
        id
    }

    /// Creates an object directly at the provider.
    async fn create_object(&self, resource_type: ResourceType, name: &str, owner: &str) {
        let request = ObjectRequest {
            resource: ResourceRef {
                resource_type,
                name: name.to_owned(),
            },
            owner: owner.to_owned(),
            effect_key: name.to_owned(),
            config: json!({}),
        };
        self.provider.create(&request).await.unwrap();
    }

    async fn deprovision(&self, platform: &str, environment: &str) -> String {
        let body = json!({ "platformId": platform, "environment": environment });
        self.queue_job(&operator(), DEPROVISION, body).await
    }

    /// Deletes a platform, either finally (`delete`) or so that it can be restored (`soft-delete`).
    async fn delete_platform(&self, platform: &str, how: &str) {
        let _ = self
            .change_lifecycle(platform, how, &operator())
            .await
            .expect(200);
    }

    /// Returns the job that would run next, without starting it; `None` if no job can run.
    async fn next_job(&self) -> Option<String> {
        let worker = self.worker();
        let claimed = worker.claim(1).await.unwrap().pop()?;
        let release = Report::Release {
            is_step_started: false,
        };
        worker.report(&claimed, release).await.unwrap();
        Some(claimed.job_id.to_string())
    }

    /// Returns a job as the caller sees it.
    async fn job_for(&self, caller: &Caller, job: &str) -> Value {
        let path = format!("/api/v1/provision/jobs/{job}");
        self.provisioning.get(caller, &path).await.expect(200).json
    }
}
