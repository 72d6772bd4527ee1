//! The parts that the nodes of an installation share besides the store: the rate limiter, and the channel of notices.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Notice, ProcessName};
use core_domain::port::{Notices, RateLimiter};
use core_http::gateway::ConfigError;
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{MemoryRateLimiter, SharedLimiter};

use crate::after_commit::AfterCommit;
use crate::background_task::BackgroundTask;
use crate::open::OpenOptions;
#[cfg(feature = "redis")]
use crate::settings::refused_by_redis;
use crate::{SuiteBuilder, SuiteError};

/// The parts that the nodes share.
pub(crate) struct Nodes {
    pub(crate) limiter: Arc<dyn RateLimiter>,
    /// The channel to the other processes; `None` if no other process can use the store, or no channel is known.
    pub(crate) notices: Option<Arc<dyn Notices>>,
}

impl Nodes {
    /// Uses the parts set on the builder, then Redis, then Postgres for notices and the memory of this process for
    /// limits.
    pub(crate) async fn of(
        builder: &SuiteBuilder,
        options: OpenOptions,
        metrics: &Metrics,
    ) -> Result<Self, SuiteError> {
        let redis = redis(builder).await?;
        let limiter = builder.rate_limiter.clone().or(redis.limiter);
        let mut notices = builder.notices.clone().or(redis.notices);
        if notices.is_none() {
            let process = || process_name(builder);
            notices = builder.store.notices(options, process)?;
        }
        Ok(Self {
            limiter: match limiter {
                Some(limiter) => Arc::new(SharedLimiter::new(
                    limiter,
                    response_timeout(builder),
                    builder.clock_or_system(),
                    metrics,
                )),
                None => Arc::new(MemoryRateLimiter::new()),
            },
            notices,
        })
    }
}

/// Maximum time for a response of a shared limiter. It is shorter than the limit of the gateway and the services, so
/// that all of them count in the same memory while the limiter does not respond.
fn response_timeout(builder: &SuiteBuilder) -> Duration {
    builder.settings.gateway.limiter_timeout * 3 / 4
}

fn process_name(builder: &SuiteBuilder) -> ProcessName {
    ProcessName::generate(builder.entropy.as_ref())
}

/// The parts of a Redis server; both are `None` without one.
#[derive(Default)]
struct RedisParts {
    limiter: Option<Arc<dyn RateLimiter>>,
    notices: Option<Arc<dyn Notices>>,
}

/// Connects to the Redis server. Without a connection in time the suite starts without it, and uses it later.
#[cfg(feature = "redis")]
async fn redis(builder: &SuiteBuilder) -> Result<RedisParts, SuiteError> {
    let Some(config) = redis_config(builder) else {
        return Ok(RedisParts::default());
    };
    let connect_timeout = config.connect_timeout;
    let redis = core_redis::Redis::open(config).map_err(refused_by_redis)?;
    if !redis.wait_until_connected(connect_timeout).await {
        tracing::warn!("Redis is not connected yet; requests are counted in memory");
    }
    let mut parts = RedisParts {
        limiter: Some(Arc::new(redis.rate_limiter())),
        notices: None,
    };
    let is_alone = builder.store.is_exclusive() && builder.remote_services.is_empty();
    if !is_alone && builder.notices.is_none() {
        parts.notices = Some(Arc::new(redis.notices(process_name(builder))));
    }
    Ok(parts)
}

#[cfg(not(feature = "redis"))]
#[expect(
    clippy::unused_async,
    reason = "with the feature it waits for a connection"
)]
async fn redis(_: &SuiteBuilder) -> Result<RedisParts, SuiteError> {
    Ok(RedisParts::default())
}

#[cfg(feature = "redis")]
fn redis_config(builder: &SuiteBuilder) -> Option<core_redis::RedisConfig> {
    let url = builder.redis.as_ref()?;
    let mut config = core_redis::RedisConfig::new(url.expose());
    config.response_timeout = response_timeout(builder);
    config.options.clone_from(&builder.settings.redis);
    Some(config)
}

/// Checks the URL and the options of the Redis server, without a connection.
#[cfg(feature = "redis")]
pub(crate) fn check_redis(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = redis_config(builder).map(|config| config.check());
    checked.transpose().map(drop).map_err(refused_by_redis)
}

/// Does nothing: without the feature `redis` there is no server.
#[cfg(not(feature = "redis"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_redis(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}

/// Starts the task that passes the notices of other processes on. After a panic of the task, everything is treated as
/// changed, because a notice may have been lost.
pub(crate) fn start_receiver(
    notices: Arc<dyn Notices>,
    after_commit: Arc<AfterCommit>,
    metrics: &Metrics,
) -> BackgroundTask {
    let mut may_have_missed = false;
    BackgroundTask::start("notices", metrics, move |mut stopped| {
        let (notices, after_commit) = (Arc::clone(&notices), Arc::clone(&after_commit));
        let has_missed = std::mem::replace(&mut may_have_missed, true);
        async move {
            if has_missed {
                after_commit.on_notice(&Notice::Missed);
            }
            loop {
                tokio::select! {
                    notice = notices.receive() => after_commit.on_notice(&notice),
                    _ = stopped.wait_for(|stopped| *stopped) => return,
                }
            }
        }
    })
}
