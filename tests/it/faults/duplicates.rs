//! F5: one request arrives many times at the same time.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use http::StatusCode;

use super::site::{ProvisioningJob, Site, on_both_databases, provision};
use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server};

on_both_databases! {
    repeated_requests_with_one_key_create_one_job,
    equal_requests_without_a_key_create_each_object_once,
}

/// Sends a request `times` times concurrently. Returns the ids of the jobs in the responses.
async fn deliver(server: &Server, call: &Call, times: usize) -> BTreeSet<String> {
    let answers = (0..times).map(|_| server.send("provisioning", call.clone()));
    let mut jobs = BTreeSet::new();
    for answer in join_all(answers).await {
        if answer.status == StatusCode::CONFLICT {
            let _ = answer.expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
            continue;
        }
        jobs.insert(answer.expect(202).text("jobId").to_owned());
    }
    jobs
}

async fn completes(site: &Site, server: Server, jobs: &[ProvisioningJob]) {
    site.assert_complete(&server, jobs).await;
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

async fn repeated_requests_with_one_key_create_one_job(site: Site) {
    let server = site.start(&[]).await;
    let mut all = Vec::new();
    for times in [2, 10, 50] {
        let slug = format!("engines-{times}");
        let platform = PlatformMember::operating(&server, &slug).await;
        let call = provision(&platform).header("idempotency-key", &slug);
        let jobs = deliver(&server, &call, times).await;
        let path = format!("/api/v1/provision/jobs?platformId={}", platform.platform);
        let call = Call::get(path).bearer(SERVICE_KEY);
        let listed = server.send("provisioning", call).await.expect(200);
        let jobs: Vec<String> = jobs.into_iter().collect();
        assert_eq!(listed.each("jobId"), jobs, "I16 after {times} requests");
        let job = jobs[0].clone();
        all.push(ProvisioningJob {
            slug,
            platform,
            job,
        });
    }
    completes(&site, server, &all).await;
}

async fn equal_requests_without_a_key_create_each_object_once(site: Site) {
    let server = site.start(&[]).await;
    let platform = PlatformMember::operating(&server, "engines").await;
    let jobs = deliver(&server, &provision(&platform), 10).await;
    assert_eq!(jobs.len(), 10);
    let of = |job| ProvisioningJob {
        slug: "engines".to_owned(),
        platform: platform.clone(),
        job,
    };
    let all: Vec<ProvisioningJob> = jobs.into_iter().map(of).collect();
    completes(&site, server, &all).await;
}
