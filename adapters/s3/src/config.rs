//! The configuration of the adapter.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::credentials::S3Credentials;
use crate::http_client::Connector;
use crate::options::{OptionError, S3Options, option_error};
use crate::url::BucketUrl;

/// Maximum number of times that a request is repeated.
const MAX_RETRIES: usize = 4;

/// Time after the first attempt from which a request is not repeated any more.
const RETRY_TIME: Duration = Duration::from_secs(15);

/// The bucket, and how it is used.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The URL of the bucket: `s3://bucket/prefix?region=eu-central-1`.
    ///
    /// | parameter | meaning |
    /// |---|---|
    /// | `region` | the region. Default: [`S3Options::region`] |
    /// | `endpoint` | the URL of the server, `https://host:port`. Default: AWS |
    /// | `style` | `path` or `virtual`: the name of the bucket is in the path, or in the host name. Default: `path` with `endpoint`, otherwise `virtual` |
    pub url: String,
    /// The credentials of requests.
    pub credentials: S3Credentials,
    /// The other options.
    pub options: S3Options,
}

impl S3Config {
    /// Creates the default configuration for a bucket.
    #[must_use]
    pub fn new(url: impl Into<String>, credentials: S3Credentials) -> Self {
        Self {
            url: url.into(),
            credentials,
            options: S3Options::default(),
        }
    }

    /// Checks the configuration without any requests, and reads the root certificates if TLS is used.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn check(&self) -> Result<(), OptionError> {
        self.target().map(drop)
    }

    /// Returns whether connections to the server are not encrypted. Returns `false` for an invalid URL.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.bucket_url().is_ok_and(|bucket| bucket.is_plain())
    }

    fn bucket_url(&self) -> Result<BucketUrl, OptionError> {
        let parsed = BucketUrl::parse(&self.url, self.options.region.as_deref());
        parsed.map_err(|problem| option_error("s3.url", problem))
    }

    /// Returns the client for the bucket that the valid configuration describes.
    pub(crate) fn target(&self) -> Result<Target, OptionError> {
        self.options.check()?;
        let bucket = self.bucket_url()?;
        if let Some((setting, problem)) = self.credentials.problem() {
            return Err(option_error(setting, problem));
        }
        let connector = Connector::new(&self.options)
            .map_err(|problem| option_error("s3.root_certificates", problem))?;
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&bucket.bucket)
            .with_region(&bucket.region)
            .with_virtual_hosted_style_request(bucket.is_virtual_hosted)
            .with_client_options(ClientOptions::new().with_allow_http(bucket.is_plain()))
            .with_retry(retries())
            // Some servers do not have the request that deletes several objects.
            .with_disable_bulk_delete(true)
            .with_http_connector(connector);
        if let Some(server) = bucket.server() {
            builder = builder.with_endpoint(server);
        }
        let built = self.credentials.apply(builder).build();
        Ok(Target {
            store: built.map_err(|error| option_error("s3.url", error.to_string()))?,
            bucket,
        })
    }
}

/// The client of a bucket.
pub(crate) struct Target {
    pub(crate) store: AmazonS3,
    pub(crate) bucket: BucketUrl,
}

/// Returns how requests are repeated. The pauses are 0.1 to 2 seconds, so callers learn about a lost server in seconds.
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIME,
    }
}
