//! The check of the bucket for uploads.

#[cfg(feature = "s3")]
use std::time::{Duration, Instant};

#[cfg(feature = "s3")]
use core_domain::port::Cause;
#[cfg(feature = "s3")]
use tokio::time::timeout;

#[cfg(feature = "s3")]
use super::CHECK_TIMEOUT;
use super::Finding;
use crate::SuiteBuilder;
#[cfg(feature = "s3")]
use crate::blobs::s3_config;

/// Maximum time for all requests to a bucket, with repetitions. Each request has [`CHECK_TIMEOUT`].
#[cfg(feature = "s3")]
const BUCKET_TIMEOUT: Duration = Duration::from_secs(20);

impl SuiteBuilder {
    /// Writes, reads, lists and removes an object in the bucket for uploads.
    #[cfg(feature = "s3")]
    pub(super) async fn upload_finding(&self) -> Option<Finding> {
        let subject = "uploads";
        let mut config = s3_config(self).filter(|_| self.blobs.is_none())?;
        let options = &mut config.options;
        options.connect_timeout = options.connect_timeout.min(CHECK_TIMEOUT);
        options.request_timeout = options.request_timeout.min(CHECK_TIMEOUT);
        let folder = std::env::temp_dir();
        let blobs = match core_s3::S3Blobs::open(&config, folder, self.clock_or_system()) {
            Ok(blobs) => blobs,
            Err(error) => return Some(Finding::failure(subject, error.to_string())),
        };
        let key = doctor_key(self.entropy.as_ref());
        let began = Instant::now();
        Some(match timeout(BUCKET_TIMEOUT, blobs.check(&key)).await {
            Ok(Ok(())) if config.is_plain() => {
                let text = format!(
                    "{} works, but connections to it are not encrypted; use an https endpoint",
                    config.url
                );
                Finding::warning(subject, text)
            }
            Ok(Ok(())) => {
                let took = began.elapsed();
                let text = format!("{} can be written and read ({took:.0?})", config.url);
                Finding::fine(subject, text)
            }
            Ok(Err(error)) => {
                let advice = error.advice();
                let text = format!("{}: {}; {advice}", config.url, Cause::new(error));
                Finding::failure(subject, text)
            }
            Err(_) => {
                let text = format!("{} does not respond; check the network", config.url);
                Finding::failure(subject, text)
            }
        })
    }

    #[cfg(not(feature = "s3"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn upload_finding(&self) -> Option<Finding> {
        None
    }
}

/// Returns the key of a test object that nothing else uses.
#[cfg(feature = "s3")]
fn doctor_key(entropy: &dyn core_domain::kernel::Entropy) -> String {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    format!("doctor-{}", core_domain::kernel::hex(&random))
}
