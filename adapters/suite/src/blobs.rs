//! Chooses the store for blobs: the one set on the builder, a bucket, or the folder of this machine.

use std::path::Path;
use std::sync::Arc;

use core_domain::port::Blobs;
use core_http::gateway::ConfigError;

use crate::SuiteBuilder;
#[cfg(feature = "s3")]
use crate::settings::refused_by_s3;

/// The folder below the data folder in which blobs are stored if no other store is chosen.
#[cfg(any(feature = "local", feature = "sqlite"))]
pub(crate) const UPLOADS: &str = "uploads";

/// Returns the store that was chosen, or `None` for the folder in the data folder. `folder` is for temporary files.
pub(crate) fn shared_blobs(
    builder: &SuiteBuilder,
    folder: &Path,
) -> Result<Option<Arc<dyn Blobs>>, ConfigError> {
    match &builder.blobs {
        Some(given) => Ok(Some(Arc::clone(given))),
        None => bucket(builder, folder),
    }
}

/// Returns whether the blobs are not in the folder of this machine.
pub(crate) const fn has_shared_blobs(builder: &SuiteBuilder) -> bool {
    #[cfg(feature = "s3")]
    if builder.s3.is_some() {
        return true;
    }
    builder.blobs.is_some()
}

#[cfg(feature = "s3")]
fn bucket(builder: &SuiteBuilder, folder: &Path) -> Result<Option<Arc<dyn Blobs>>, ConfigError> {
    let Some(config) = s3_config(builder) else {
        return Ok(None);
    };
    tracing::info!(url = config.url, "uploads are stored in a bucket");
    let blobs = core_s3::S3Blobs::open(&config, folder, builder.clock_or_system());
    Ok(Some(Arc::new(blobs.map_err(refused_by_s3)?)))
}

#[cfg(not(feature = "s3"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn bucket(_: &SuiteBuilder, _: &Path) -> Result<Option<Arc<dyn Blobs>>, ConfigError> {
    Ok(None)
}

/// Returns the configuration of the bucket, without a bucket `None`.
#[cfg(feature = "s3")]
pub(crate) fn s3_config(builder: &SuiteBuilder) -> Option<core_s3::S3Config> {
    let (url, credentials) = builder.s3.clone()?;
    let mut config = core_s3::S3Config::new(url, credentials);
    config.options.clone_from(&builder.settings.s3);
    Some(config)
}

/// Checks the URL, the credentials and the options of the bucket, without a request.
#[cfg(feature = "s3")]
pub(crate) fn check_s3(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = s3_config(builder).map(|config| config.check());
    checked.transpose().map(drop).map_err(refused_by_s3)
}

/// Does nothing: without the feature `s3` there is no bucket.
#[cfg(not(feature = "s3"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_s3(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}
