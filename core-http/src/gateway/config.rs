//! The configuration of a gateway. It is checked once, when the gateway is created.

use std::collections::BTreeMap;
use std::time::Duration;

use core_domain::cli::SiteLimits;
use core_domain::gateway::{
    Origins, RatePlan, TrustedProxies, check_path, is_at_or_below, strip_segment_prefix,
};
use core_domain::kernel::duration_text;
use core_domain::kernel::{Secret, SuiteService};
use http::{HeaderName, HeaderValue, Method};
use serde::{Deserialize, Serialize};

use super::resource_metadata::ResourceMetadata;
use super::timeouts::{ServiceTimeouts, Timeouts};
use crate::kernel::admission::cors::{ALLOWED_HEADERS, CorsPolicy};
use crate::kernel::{MAX_BODY_BYTES, ServiceKey};

/// Maximum time-to-live of the session cache.
const MAX_SESSION_CACHE: Duration = Duration::from_secs(5);

/// An invalid setting. The message names the setting and never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct ConfigError {
    /// The name of the setting: a field of [`GatewayConfig`], `upstream` or `routes`.
    pub setting: &'static str,
    /// The reason why the value is invalid.
    pub problem: String,
}

/// The configuration of a gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The static service key (`AUTH_API_KEY`), of at least [`ServiceKey::MIN_LENGTH`] characters. Default: none.
    ///
    /// Without a key, **every request passes** as the service `unauthenticated`. This is for development on one
    /// machine: the server must then listen on loopback addresses only. Cross-origin browser requests are still refused
    /// unless their origin is in [`Self::allowed_origins`].
    #[serde(skip)]
    pub service_key: Option<Secret>,
    /// The URL at which clients reach the gateway, for example `https://api.example.org`. Default: none.
    ///
    /// With it and [`Self::authorization_server`], the gateway serves `/.well-known/oauth-protected-resource` (RFC 9728),
    /// and responses with status 401 name that document.
    #[serde(skip)]
    pub public_url: Option<String>,
    /// The public URL of IAM, which is the issuer of its tokens. Default: none.
    #[serde(skip)]
    pub authorization_server: Option<String>,
    /// Routes that need no credential. Default: none.
    ///
    /// An entry is a method and a path, such as `POST /api/v1/iam/api/auth/sign-up`, or a path alone, which covers
    /// every method. Each entry also covers the paths below it. Callers of these routes are anonymous, whatever
    /// credential they send. A service that validates sessions itself, such as IAM, still receives the session.
    #[serde(skip)]
    pub public_routes: Vec<String>,
    /// Paths of services that are 404 at the gateway, with the paths below them, in every spelling. An entry is a path
    /// such as `/api/v1/iam/api/core/bootstrap`. Default: none. The paths below `/internal` of a service are always 404.
    pub hidden_routes: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is trusted: addresses or address ranges. Default: none.
    #[serde(skip)]
    pub trusted_proxies: Vec<String>,
    /// Origins whose pages may call the API, exactly as browsers send them. Default: none.
    #[serde(skip)]
    pub allowed_origins: Vec<String>,
    /// Request headers that a page may send in addition to `Content-Type`, `Authorization` and `X-Request-Id`. Default:
    /// none.
    pub extra_cors_headers: Vec<String>,
    /// Whether the pages of allowed origins may send cookies. Default: `false`.
    pub cors_credentials: bool,
    /// Request limits per client: for a path or strict endpoint, over all paths, and for credentials that are refused.
    /// See [`RatePlan`] for the defaults.
    pub rates: RatePlan,
    /// Whether the paths below a prefix, such as `/api/v1/platforms`, share one window per client. Otherwise each path
    /// has a window. Strict endpoints have windows of their own in both cases. Default: `false`.
    pub rate_by_prefix: bool,
    /// Whether a CORS preflight counts in the window of the request that it asks for. Default: `true`.
    pub count_preflights: bool,
    /// Maximum time for a call to the rate limiter; after it, the in-memory limiter is used. Default: 100 milliseconds.
    #[serde(with = "duration_text")]
    pub limiter_timeout: Duration,
    /// Whether the headers of the older draft are sent as well: `RateLimit-Limit`, `-Remaining` and `-Reset`. Default:
    /// `false`.
    pub older_rate_headers: bool,
    /// Time-to-live of the session cache, at most 5 seconds; zero disables the cache. Sign-out and suspension take
    /// effect at once if the cache is invalidated for them, and within this time otherwise. Default: 1 second.
    #[serde(with = "duration_text")]
    pub session_cache: Duration,
    /// Maximum time in which IAM must resolve a credential. Default: 2 seconds.
    #[serde(with = "duration_text")]
    pub authority_timeout: Duration,
    /// Maximum time from the end of the upload to the head of the upstream response. A long poll (`wait=<seconds>`)
    /// gets its wait time in addition. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub response_timeout: Duration,
    /// Maximum pause of a client during an upload. Default: 60 seconds.
    #[serde(with = "duration_text")]
    pub upload_idle_timeout: Duration,
    /// Maximum pause of an upstream during its response; after it, the connection to the client is closed. Must be
    /// longer than the heartbeat interval of event streams. Default: 60 seconds.
    #[serde(with = "duration_text")]
    pub response_idle_timeout: Duration,
    /// Timeouts of services that differ from the three above, by the name of the service. Default: none.
    pub service_timeouts: BTreeMap<SuiteService, ServiceTimeouts>,
    /// Maximum size of a request body, in bytes. Default: [`MAX_BODY_BYTES`].
    pub body_limit: u64,
    /// Maximum size of a request body for the CLI service, which receives deployments, in bytes. A suite sets it from
    /// `cli.sites.upload_bytes`.
    #[serde(skip)]
    pub upload_limit: u64,
    /// Services that also receive the session token and the cookies of the client. Default: IAM only.
    pub sessions_to: Vec<SuiteService>,
    /// The value of the response header `X-Frame-Options`. Default: `DENY`.
    pub frame_options: String,
    /// The value of the response header `Referrer-Policy`. Default: `no-referrer`.
    pub referrer_policy: String,
    /// Whether the response has a `Server-Timing` header with the time spent in the gateway and in the upstream.
    /// Default: `false`.
    pub server_timing: bool,
}

impl Default for GatewayConfig {
    /// Returns the limits and timeouts of the interface, without a service key: see [`GatewayConfig::service_key`].
    fn default() -> Self {
        Self {
            service_key: None,
            public_url: None,
            authorization_server: None,
            public_routes: Vec::new(),
            hidden_routes: Vec::new(),
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            extra_cors_headers: Vec::new(),
            cors_credentials: false,
            rates: RatePlan::default(),
            rate_by_prefix: false,
            count_preflights: true,
            limiter_timeout: Duration::from_millis(100),
            older_rate_headers: false,
            session_cache: Duration::from_secs(1),
            authority_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(30),
            upload_idle_timeout: Duration::from_secs(60),
            response_idle_timeout: Duration::from_secs(60),
            service_timeouts: BTreeMap::new(),
            body_limit: MAX_BODY_BYTES as u64,
            upload_limit: SiteLimits::default().upload_bytes,
            sessions_to: vec![SuiteService::Iam],
            frame_options: "DENY".to_owned(),
            referrer_policy: "no-referrer".to_owned(),
            server_timing: false,
        }
    }
}

impl GatewayConfig {
    /// Checks that a gateway can be created with this configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for the first setting that is invalid.
    pub fn check(&self) -> Result<(), ConfigError> {
        Settings::try_from(self.clone()).map(drop)
    }
}

/// The parsed and validated configuration.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) service_key: Option<ServiceKey>,
    /// The metadata for clients; `None` if the URLs are not configured.
    pub(crate) resource_metadata: Option<ResourceMetadata>,
    public_routes: Vec<PublicRoute>,
    hidden_routes: Vec<String>,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) cors: CorsPolicy,
    pub(crate) rates: RatePlan,
    pub(crate) rate_by_prefix: bool,
    pub(crate) count_preflights: bool,
    pub(crate) limiter_timeout: Duration,
    pub(crate) older_rate_headers: bool,
    pub(crate) session_cache: Duration,
    pub(crate) authority_timeout: Duration,
    timeouts: Timeouts,
    service_timeouts: BTreeMap<SuiteService, Timeouts>,
    body_limit: u64,
    upload_limit: u64,
    sessions_to: Vec<SuiteService>,
    pub(crate) frame_options: HeaderValue,
    pub(crate) referrer_policy: HeaderValue,
    pub(crate) server_timing: bool,
}

fn error(setting: &'static str, problem: impl ToString) -> ConfigError {
    ConfigError {
        setting,
        problem: problem.to_string(),
    }
}

fn header_value(setting: &'static str, text: &str) -> Result<HeaderValue, ConfigError> {
    HeaderValue::from_str(text).map_err(|_| error(setting, "is not a valid header value"))
}

/// A route that needs no credential.
#[derive(Debug)]
struct PublicRoute {
    /// The method; `None` for every method.
    method: Option<Method>,
    path: String,
}

impl PublicRoute {
    fn parse(text: &str) -> Option<Self> {
        let (method, path) = match text.split_once(' ') {
            Some((method, path)) => (Some(method.parse().ok()?), path),
            None => (None, text),
        };
        let fine = check_path(path).is_ok() && path.starts_with("/api/") && !path.ends_with('/');
        fine.then(|| Self {
            method,
            path: path.to_owned(),
        })
    }

    fn covers(&self, method: &Method, path: &str) -> bool {
        // A GET route also covers HEAD.
        let asked = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let method_fits = self.method.as_ref().is_none_or(|wanted| wanted == asked);
        method_fits && strip_segment_prefix(path, &self.path).is_some()
    }
}

fn public_routes(routes: &[String]) -> Result<Vec<PublicRoute>, ConfigError> {
    let read = |text: &String| {
        PublicRoute::parse(text).ok_or_else(|| {
            let problem = format!("{text:?} must have the form METHOD /api/... or /api/...");
            error("public_routes", problem)
        })
    };
    routes.iter().map(read).collect()
}

fn hidden_routes(routes: Vec<String>) -> Result<Vec<String>, ConfigError> {
    let is_path = |path: &&String| path.starts_with("/api/") && check_path(path).is_ok();
    match routes.iter().find(|path| !is_path(path)) {
        None => Ok(routes),
        Some(wrong) => {
            let problem = format!("{wrong:?} must have the form /api/...");
            Err(error("hidden_routes", problem))
        }
    }
}

/// Returns the metadata; `None` unless both URLs are configured.
fn resource_metadata(config: &GatewayConfig) -> Result<Option<ResourceMetadata>, ConfigError> {
    let (Some(url), Some(issuer)) = (&config.public_url, &config.authorization_server) else {
        return Ok(None);
    };
    ResourceMetadata::new(url, issuer)
        .map(Some)
        .map_err(|(setting, problem)| error(setting, problem))
}

fn cors(config: &GatewayConfig) -> Result<CorsPolicy, ConfigError> {
    Origins::parse(&config.allowed_origins).map_err(|problem| error("allowed_origins", problem))?;
    Ok(CorsPolicy::new(
        config.allowed_origins.clone(),
        cors_headers(&config.extra_cors_headers)?,
        config.cors_credentials,
    ))
}

fn cors_headers(extra: &[String]) -> Result<HeaderValue, ConfigError> {
    let mut names = vec![ALLOWED_HEADERS];
    for name in extra {
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            error(
                "extra_cors_headers",
                format!("{name:?} is not a header name"),
            )
        })?;
        names.push(name);
    }
    header_value("extra_cors_headers", &names.join(", "))
}

fn service_key(key: Option<Secret>) -> Result<Option<ServiceKey>, ConfigError> {
    key.map(|key| ServiceKey::new(key.expose()).map_err(|problem| error("service_key", problem)))
        .transpose()
}

fn not_zero(setting: &'static str, duration: Duration) -> Result<Duration, ConfigError> {
    if duration.is_zero() {
        Err(error(setting, "must be longer than zero"))
    } else {
        Ok(duration)
    }
}

impl Settings {
    /// Returns the maximum size of a request body for a service, in bytes.
    pub(crate) fn body_limit(&self, service: SuiteService) -> u64 {
        match service {
            SuiteService::Cli => self.upload_limit,
            _ => self.body_limit,
        }
    }

    /// Returns whether the service receives the session token and the cookies of the client.
    pub(crate) fn shows_session_to(&self, service: SuiteService) -> bool {
        self.sessions_to.contains(&service)
    }

    /// Returns the timeouts of requests to a service.
    pub(crate) fn timeouts(&self, service: SuiteService) -> &Timeouts {
        self.service_timeouts
            .get(&service)
            .unwrap_or(&self.timeouts)
    }

    /// Returns whether the path is 404 although it belongs to a service.
    pub(crate) fn is_hidden(&self, path: &str) -> bool {
        self.hidden_routes
            .iter()
            .any(|hidden| is_at_or_below(path, hidden))
    }

    /// Returns whether the route needs no credential.
    pub(crate) fn is_public(&self, method: &Method, path: &str) -> bool {
        self.public_routes
            .iter()
            .any(|route| route.covers(method, path))
    }
}

impl TryFrom<GatewayConfig> for Settings {
    type Error = ConfigError;

    fn try_from(config: GatewayConfig) -> Result<Self, Self::Error> {
        if config.session_cache > MAX_SESSION_CACHE {
            return Err(error("session_cache", "must be 5 seconds or less"));
        }
        let cors = cors(&config)?;
        let resource_metadata = resource_metadata(&config)?;
        let timeouts = Timeouts {
            response: not_zero("response_timeout", config.response_timeout)?,
            upload_idle: not_zero("upload_idle_timeout", config.upload_idle_timeout)?,
            response_idle: not_zero("response_idle_timeout", config.response_idle_timeout)?,
        };
        let of_service = |(service, replaced): (&SuiteService, &ServiceTimeouts)| {
            let timeouts = timeouts.of_service(replaced);
            let zero = || error("service_timeouts", "must be longer than zero");
            Ok((*service, timeouts.ok_or_else(zero)?))
        };
        let service_timeouts = config.service_timeouts.iter().map(of_service);
        Ok(Self {
            resource_metadata,
            service_key: service_key(config.service_key)?,
            public_routes: public_routes(&config.public_routes)?,
            hidden_routes: hidden_routes(config.hidden_routes)?,
            trusted_proxies: TrustedProxies::parse(config.trusted_proxies)
                .map_err(|problem| error("trusted_proxies", problem))?,
            cors,
            rates: config.rates,
            rate_by_prefix: config.rate_by_prefix,
            count_preflights: config.count_preflights,
            limiter_timeout: not_zero("limiter_timeout", config.limiter_timeout)?,
            older_rate_headers: config.older_rate_headers,
            session_cache: config.session_cache,
            authority_timeout: not_zero("authority_timeout", config.authority_timeout)?,
            timeouts,
            service_timeouts: service_timeouts.collect::<Result<_, ConfigError>>()?,
            body_limit: config.body_limit,
            upload_limit: config.upload_limit,
            sessions_to: config.sessions_to,
            frame_options: header_value("frame_options", &config.frame_options)?,
            referrer_policy: header_value("referrer_policy", &config.referrer_policy)?,
            server_timing: config.server_timing,
        })
    }
}
