//! Limits on concurrent uploads: neither one tenant nor slow clients block the others.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use core_http::cli::UploadLimits;
use core_http::kernel::{Body, bytes_body};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::harness::{MAX_UPLOAD_BYTES, UploadHarness, pieces, slow};
use crate::world::{Answer, SITE, operator, platform_path};

impl UploadHarness {
    async fn deploy_to(&self, platform: &str) -> Answer {
        let path = platform_path(platform, "/deploy");
        let began = Instant::now();
        let body = bytes_body(SITE);
        let deployed = self.world.upload(&path, &operator(), &[], body).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        deployed.expect(202)
    }

    /// Asserts that an upload gets 503 with `Retry-After`; `read` says whether its body is read before the refusal.
    async fn refused_on(&self, platform: &str, read: bool) {
        let (body, was_read) = pieces(1, SITE);
        let path = platform_path(platform, "/deploy");
        let refused = self.world.upload(&path, &operator(), &[], body).await;
        assert_eq!(refused.header("retry-after"), "5");
        refused.expect_error(503, "SERVICE_UNAVAILABLE");
        assert_eq!(was_read.load(Ordering::Relaxed), read);
    }
}

/// Uploads whose clients pause until [`PausedUploads::finish`].
struct PausedUploads {
    end: Arc<Semaphore>,
    running: Vec<JoinHandle<Answer>>,
}

impl PausedUploads {
    /// Starts `count` uploads to the platform and waits until all of them are being read.
    async fn begin(harness: &Arc<UploadHarness>, platform: &str, count: u32) -> Self {
        let (reading, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let begin = |n| {
            let (harness, path) = (Arc::clone(harness), platform_path(platform, "/deploy"));
            let body = slow(&reading, &end);
            tokio::spawn(async move {
                let branch = format!("slow-{n}");
                let headers = [("x-core-deploy-branch", branch.as_str())];
                harness
                    .world
                    .upload(&path, &operator(), &headers, body)
                    .await
            })
        };
        let running = (0..count).map(begin).collect();
        reading.acquire_many(count).await.unwrap().forget();
        Self { end, running }
    }

    /// Finishes the uploads and returns the sorted response statuses.
    async fn finish(self) -> Vec<u16> {
        self.end.add_permits(self.running.len());
        let mut statuses = Vec::new();
        for answer in self.running {
            statuses.push(answer.await.unwrap().status.as_u16());
        }
        statuses.sort_unstable();
        statuses
    }
}

#[tokio::test(start_paused = true)]
async fn a_platform_is_limited_to_four_uploads_and_does_not_block_other_platforms() {
    let harness = Arc::new(UploadHarness::new().await);
    let other = harness.world.create_platform("other").await;
    let slow = PausedUploads::begin(&harness, &harness.platform, 4).await;
    harness.deploy_to(&other).await;
    harness.refused_on(&harness.platform, false).await;
    assert_eq!(slow.finish().await, [202; 4]);
    harness.deploy_to(&harness.platform).await;
}

#[tokio::test(start_paused = true)]
async fn a_platform_without_uploads_takes_over_a_slot_of_a_platform_with_several() {
    let few = UploadLimits {
        spools: 4,
        ..UploadLimits::default()
    };
    let harness = Arc::new(UploadHarness::with(few).await);
    let other = harness.world.create_platform("other").await;
    let slow = PausedUploads::begin(&harness, &harness.platform, 3).await;
    // The platform's latest upload is already being stored, so it cannot be cancelled.
    harness.blobs.close();
    let client = Arc::clone(&harness);
    let stored = tokio::spawn(async move { client.deploy(&[], SITE).await });
    harness.blobs.wait_for_arrival().await;
    let client = Arc::clone(&harness);
    let taking = tokio::spawn(async move { client.deploy_to(&other).await });
    harness.blobs.wait_for_arrival().await;
    harness.blobs.gate.add_permits(1_000);
    taking.await.unwrap();
    assert_eq!(stored.await.unwrap().status, 202);
    assert_eq!(harness.blobs.count().0, 2);
    assert_eq!(slow.finish().await, [202, 202, 503]);
}

#[tokio::test(start_paused = true)]
async fn the_total_bytes_of_concurrent_uploads_are_limited() {
    let harness = Arc::new(
        UploadHarness::with(UploadLimits {
            // The bytes that two uploads without a `Content-Length` reserve.
            spool_bytes: 2 * MAX_UPLOAD_BYTES as u64,
            ..UploadLimits::default()
        })
        .await,
    );
    let mut running = Vec::new();
    for slug in ["other", "third"] {
        let platform = harness.world.create_platform(slug).await;
        running.push(PausedUploads::begin(&harness, &platform, 1).await);
    }
    harness.refused_on(&harness.platform, false).await;
    for slow in running {
        assert_eq!(slow.finish().await, [202]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_is_received_before_it_waits_for_a_permit() {
    let one = UploadLimits {
        permits: 1,
        ..UploadLimits::default()
    };
    let harness = Arc::new(UploadHarness::with(one).await);
    let other = harness.world.create_platform("other").await;
    harness.blobs.close();
    let client = Arc::clone(&harness);
    let holder = tokio::spawn(async move { client.deploy(&[], SITE).await });
    harness.blobs.wait_for_arrival().await;
    harness.refused_on(&other, true).await;
    harness.blobs.gate.add_permits(1_000);
    assert_eq!(holder.await.unwrap().status, 202);
    assert_eq!(harness.blobs.count(), (0, 1));
    harness.deploy_to(&other).await;
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_pauses_too_long_is_cancelled_and_frees_its_slot() {
    let harness = UploadHarness::new().await;
    let never = Arc::new(Semaphore::new(0));
    for _ in 0..6 {
        let began = Instant::now();
        let late = harness.send(&[], slow(&never, &Arc::new(Semaphore::new(0))));
        late.await.expect_error(400, "BAD_REQUEST");
        assert_eq!(began.elapsed(), UploadLimits::default().idle_timeout);
    }
    harness.deploy_to(&harness.platform).await;
}

#[tokio::test(start_paused = true)]
async fn an_upload_without_long_pauses_still_ends_at_the_upload_timeout() {
    let harness = UploadHarness::new().await;
    let frames = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        Some((Ok(Frame::data(bytes::Bytes::from_static(b"x"))), ()))
    });
    let body = Body::new(StreamBody::new(Box::pin(frames)));
    let began = Instant::now();
    let late = harness.send(&[], body).await;
    late.expect_error(400, "BAD_REQUEST");
    assert_eq!(began.elapsed(), UploadLimits::default().upload_timeout);
    assert_eq!(harness.blobs.count(), (0, 0));
}
