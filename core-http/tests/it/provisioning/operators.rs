//! Retry, cancel and force-complete, as requested by operators.

use serde_json::{Value, json};

use crate::world::{Answer, World, on_every_store, operator, send_concurrently};

const OPERATIONS: [&str; 3] = ["retry", "cancel", "force-complete"];

impl World {
    pub(super) async fn operate_over_http(
        &self,
        operation: &str,
        job: &str,
        body: Value,
    ) -> Answer {
        let path = format!("/api/v1/provision/jobs/{job}/{operation}");
        self.provisioning.post(&operator(), &path, body).await
    }

    /// Returns the event types in a job's history, oldest first.
    pub(super) async fn event_types(&self, job: &str) -> Vec<String> {
        let path = format!("/api/v1/provision/jobs/{job}/events?limit=100");
        let listed = self.provisioning.get(&operator(), &path).await.expect(200);
        let types = listed.each("type");
        types.into_iter().rev().map(str::to_owned).collect()
    }

    /// Creates a job with this status.
    async fn create_job_with_status(&self, status: &str) -> String {
        let platform = self.create_platform(&status.to_lowercase()).await;
        if status == "WAITING" {
            let held = self
                .create_hold(json!({ "scope": "kind", "kind": "platform" }))
                .await;
            let ada = self.sign_up("ada@example.org").await.caller();
            let start = json!({ "platformName": "Looms", "slug": "looms" });
            let started = self.registry.post(&ada, "/api/v1/onboarding/start", start);
            let job = started.await.expect(202).text("jobId").to_owned();
            self.run_jobs().await;
            let path = format!("/api/v1/provision/holds/{held}");
            let _ = self
                .provisioning
                .delete(&operator(), &path)
                .await
                .expect(204);
            return job;
        }
        let job = self.provision(&platform).await;
        match status {
            "RUNNING" => drop(self.worker().claim(1).await.unwrap()),
            "FAILED" => drop(
                self.operate_over_http("cancel", &job, json!({}))
                    .await
                    .expect(200),
            ),
            "COMPLETED" => self.run_jobs().await,
            _ => {}
        }
        job
    }
}

#[tokio::test]
async fn each_operation_is_allowed_from_its_states_and_a_refusal_lists_them() {
    for (status, allowed) in [
        ("QUEUED", [true, true, true]),
        ("WAITING", [true, true, true]),
        ("RUNNING", [false, true, true]),
        ("FAILED", [true, false, true]),
        ("COMPLETED", [false, false, false]),
    ] {
        for (operation, allowed) in OPERATIONS.into_iter().zip(allowed) {
            let world = World::new();
            let job = world.create_job_with_status(status).await;
            assert_eq!(world.job(&job).await["status"], status);
            let before = world.event_types(&job).await.len();
            let answer = world.operate_over_http(operation, &job, json!({})).await;
            let moved = world.event_types(&job).await.len() - before;
            assert_eq!(moved, usize::from(allowed), "{operation} {status}");
            if allowed {
                let shown = match operation {
                    "retry" => json!({ "jobId": job, "status": "QUEUED" }),
                    "cancel" => json!({
                        "jobId": job, "status": "FAILED", "reason": "cancelled by operator",
                    }),
                    _ => json!({ "jobId": job, "status": "COMPLETED" }),
                };
                assert_eq!(answer.expect(200).json, shown);
                continue;
            }
            let from = match operation {
                "retry" => json!(["QUEUED", "WAITING", "FAILED"]),
                "cancel" => json!(["QUEUED", "WAITING", "RUNNING"]),
                _ => json!(["QUEUED", "WAITING", "RUNNING", "FAILED"]),
            };
            let details = json!({ "status": status, "allowedFrom": from });
            let refused = answer.expect_error(409, "INVALID_STATE");
            assert_eq!(refused.json["error"]["details"], details, "{operation}");
        }
    }
    let world = World::new();
    for operation in OPERATIONS {
        let refused = world
            .operate_over_http(operation, "nothing", json!({}))
            .await;
        refused.expect_error(404, "NOT_FOUND");
    }
}

async fn a_repeated_operation_gets_the_same_response_and_happens_once(world: World) {
    for (operation, action) in [
        ("cancel", "job.cancelled"),
        ("retry", "job.retried"),
        ("force-complete", "job.force_completed"),
    ] {
        let platform = world.create_platform(operation).await;
        let job = world.provision(&platform).await;
        if operation == "retry" {
            let _ = world
                .operate_over_http("cancel", &job, json!({}))
                .await
                .expect(200);
        }
        let path = format!("/api/v1/provision/jobs/{job}/{operation}");
        let (caller, key) = (operator(), [("idempotency-key", operation)]);
        let body = json!({ "reason": "by hand" });
        let mut answers = Vec::new();
        for _ in 0..2 {
            let asked = world
                .provisioning
                .send(&caller, "POST", &path, &key, body.clone());
            answers.push(asked.await.expect(200).json);
        }
        assert_eq!(answers[0], answers[1]);
        let moves = world.event_types(&job).await;
        let made = moves.iter().filter(|name| **name == action).count();
        assert_eq!(made, 1, "{moves:?}");
        if operation == "cancel" {
            assert_eq!(answers[0]["reason"], "by hand");
            assert_eq!(world.job(&job).await["reason"], "by hand");
        }
    }
    assert_eq!(world.audit("job.cancelled").await.len(), 2);
}

async fn of_concurrent_operations_exactly_the_successful_ones_take_effect(world: World) {
    for round in 0..4 {
        let platform = world.create_platform(&format!("p-{round}")).await;
        let job = world.provision(&platform).await;
        let ask = |operation: &str| {
            let path = format!("/api/v1/provision/jobs/{job}/{operation}");
            let api = world.provisioning.clone();
            async move { api.post(&operator(), &path, json!({})).await }
        };
        let operations = ["cancel", "cancel", "force-complete", "force-complete"];
        let answers = send_concurrently(operations.map(ask)).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        let refused = answers.iter().filter(|answer| answer.status == 409);
        refused.for_each(|answer| assert_eq!(answer.code(), "INVALID_STATE"));
        let moves = world.event_types(&job).await;
        assert_eq!(moves.len(), 1 + done, "{moves:?}");
        let last = moves.last().unwrap();
        let shown = world.job(&job).await;
        let completed = shown["status"] == "COMPLETED";
        assert_eq!(completed, last == "job.force_completed", "{shown}");
        // A cancelled job can be forced to complete, but a completed job cannot be cancelled.
        assert!(completed, "{shown}");
    }
}

on_every_store! {
    a_repeated_operation_gets_the_same_response_and_happens_once,
    of_concurrent_operations_exactly_the_successful_ones_take_effect,
}
