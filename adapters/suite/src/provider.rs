//! The ports of jobs and deployments: infrastructure, uploads, archives. A port that is not set on the builder is built
//! in, or absent if its feature is not enabled.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "local")]
use core_domain::kernel::Context;
use core_domain::port::{Blobs, Infrastructure, SiteArchives, Store};
use core_http::kernel::metrics::Metrics;
#[cfg(feature = "local")]
use core_local::{FileBlobs, LocalConfig, LocalInfrastructure};

#[cfg(not(all(feature = "local", feature = "archives")))]
use crate::absent::MissingPart;
use crate::after_commit::AfterCommit;
#[cfg(feature = "local")]
use crate::blobs::UPLOADS;
use crate::blobs::shared_blobs;
#[cfg(feature = "local")]
use crate::client_address::client_address;
use crate::infrastructure::infrastructure;
use crate::metrics::MeteredBlobs;
#[cfg(feature = "local")]
use crate::suspension_cache::{StoredSuspensions, SuspensionCache};
use crate::usage::GatewayMeter;
use crate::{SuiteBuilder, SuiteError};

/// The infrastructure provider and the store for uploads.
pub(crate) struct Provider {
    pub(crate) infrastructure: Arc<dyn Infrastructure>,
    #[cfg(feature = "local")]
    pub(crate) local: Option<LocalInfrastructure>,
    pub(crate) blobs: Arc<dyn Blobs>,
}

#[cfg(feature = "local")]
impl Provider {
    pub(crate) async fn of(
        builder: &SuiteBuilder,
        folder: &Path,
        store: &Arc<dyn Store>,
        after_commit: &AfterCommit,
        traffic: &Arc<GatewayMeter>,
        metrics: &Metrics,
    ) -> Result<Self, SuiteError> {
        let blobs = match shared_blobs(builder, folder)? {
            Some(blobs) => blobs,
            None => Arc::new(FileBlobs::open(folder.join(UPLOADS)).await?),
        };
        let blobs: Arc<dyn Blobs> = Arc::new(MeteredBlobs::new(blobs, metrics));
        if let Some(infrastructure) = infrastructure(builder, Some(&blobs))? {
            return Ok(Self {
                infrastructure,
                local: None,
                blobs,
            });
        }
        tracing::info!("infrastructure is created on this machine");
        let mut config = LocalConfig::new(
            folder.join("infrastructure"),
            builder.site_port,
            builder.clock_or_system(),
        );
        config.sites = builder.settings.sites.address(builder.site_port);
        config.site_limits = builder.settings.cli.sites;
        config.site_bytes_per_owner = builder.settings.limits.site_bytes_per_platform;
        config.retention = builder.settings.retention;
        config.workerd.clone_from(&builder.workerd);
        config.logs = builder.settings.logs;
        config.client_address = Some(client_address(builder)?);
        config.workers = builder.settings.workerd;
        config.latency = builder.local_latency;
        if builder.settings.workerd.process {
            config.worker_host.clone_from(&builder.worker_host);
        }
        config.reachable.extend(plain_http(&builder.iam_url));
        let stored = StoredSuspensions {
            store: Arc::downgrade(store),
            cx: Context::system(Arc::clone(&builder.entropy)),
        };
        let suspensions = SuspensionCache::new(Arc::new(stored), builder.clock_or_system());
        let suspensions = Arc::new(suspensions);
        after_commit.set_suspensions(Arc::clone(&suspensions));
        config.suspensions = Some(suspensions);
        config.traffic = Some(Arc::clone(traffic) as _);
        let local = LocalInfrastructure::open(config).await?;
        Ok(Self {
            infrastructure: Arc::new(local.clone()),
            local: Some(local),
            blobs,
        })
    }
}

/// Returns the host and port of a plain HTTP URL. Auth workers call IAM, which may run on this machine without TLS. All
/// other targets need TLS and a public address.
#[cfg(feature = "local")]
fn plain_http(url: &str) -> Option<http::uri::Authority> {
    let url: http::Uri = url.parse().ok()?;
    let plain = url.scheme() == Some(&http::uri::Scheme::HTTP);
    url.into_parts().authority.filter(|_| plain)
}

#[cfg(not(feature = "local"))]
impl Provider {
    #[expect(clippy::unused_async, reason = "the local provider is opened with it")]
    pub(crate) async fn of(
        builder: &SuiteBuilder,
        folder: &Path,
        _: &Arc<dyn Store>,
        _: &AfterCommit,
        _: &Arc<GatewayMeter>,
        metrics: &Metrics,
    ) -> Result<Self, SuiteError> {
        let blobs = shared_blobs(builder, folder)?;
        let blobs = blobs.unwrap_or_else(|| Arc::new(MissingPart::BLOBS));
        let blobs: Arc<dyn Blobs> = Arc::new(MeteredBlobs::new(blobs, metrics));
        let infrastructure = infrastructure(builder, Some(&blobs))?;
        Ok(Self {
            infrastructure: infrastructure.unwrap_or_else(|| Arc::new(MissingPart::INFRASTRUCTURE)),
            blobs,
        })
    }
}

/// Returns the reader of uploaded archives.
pub(crate) fn archives(builder: &SuiteBuilder) -> Arc<dyn SiteArchives> {
    let given = builder.archives.clone();
    #[cfg(feature = "archives")]
    let built_in = || {
        let cli = &builder.settings.cli;
        let archives = crate::UnpackArchives::new(cli.sites).with_permits(cli.uploads.permits);
        Arc::new(archives) as _
    };
    #[cfg(not(feature = "archives"))]
    let built_in = || Arc::new(MissingPart::ARCHIVES) as _;
    given.unwrap_or_else(built_in)
}
