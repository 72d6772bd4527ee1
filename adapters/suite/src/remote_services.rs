//! The services that run in other processes, as the gateway of this process calls them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::billing::usage::{IngestUsage, NewUsageEvent};
use core_domain::kernel::{Clock, Error, PlatformId, Result, SuiteService, Timestamp};
use core_http::gateway::{
    ConfigError, ExhaustedRequests, HttpAuthority, HttpUpstream, InProcess, ServiceTokens,
    UpstreamError,
};
use core_http::kernel::metrics::Metrics;
use core_http::kernel::{App, Service, bytes_body};
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};

use crate::SuiteBuilder;
use crate::after_commit::AfterCommit;
use crate::usage::UsageSink;

/// The path at which the billing service accepts usage.
const USAGE_EVENTS: &str = "/internal/usage/events";

/// Checks the addresses of remote services.
///
/// # Errors
/// [`ConfigError`] if an address is invalid or belongs to the gateway, or if there is no service key.
pub(crate) fn check(builder: &SuiteBuilder) -> std::result::Result<(), ConfigError> {
    let problem = |problem: String| ConfigError {
        setting: "remote_service",
        problem,
    };
    for (service, url) in &builder.remote_services {
        if *service == SuiteService::Gateway {
            return Err(problem("the gateway has no remote address".to_owned()));
        }
        HttpUpstream::new(url).map_err(|error| problem(format!("{service}: {}", error.problem)))?;
    }
    if !builder.remote_services.is_empty() && builder.service_key.is_none() {
        let required = "needs a service key, with which the gateway authenticates itself to IAM";
        return Err(problem(required.to_owned()));
    }
    Ok(())
}

/// The addresses of the remote services, and the tokens for calling them.
#[derive(Debug)]
pub(crate) struct RemoteServices {
    addresses: BTreeMap<SuiteService, String>,
    tokens: Arc<ServiceTokens>,
    metrics: Metrics,
    after_commit: Arc<AfterCommit>,
}

impl RemoteServices {
    /// Returns the remote services of a builder; `None` if there are none. Service tokens come from the remote IAM, or
    /// from `iam` in this process.
    pub(crate) fn of(
        builder: &SuiteBuilder,
        app: &App,
        iam: &Service,
        after_commit: &Arc<AfterCommit>,
    ) -> std::result::Result<Option<Self>, ConfigError> {
        let addresses = builder.remote_services.clone();
        let Some(key) = builder
            .service_key
            .as_ref()
            .filter(|_| !addresses.is_empty())
        else {
            return Ok(None);
        };
        let clock = Arc::clone(&app.clock);
        let tokens = match addresses.get(&SuiteService::Iam) {
            Some(url) => {
                let iam = HttpUpstream::new(url)?;
                let iam = iam.with_metrics(&app.metrics, SuiteService::Iam, "tokens");
                ServiceTokens::new(iam, key, clock)?
            }
            None => ServiceTokens::new(InProcess::service(iam.clone()), key, clock)?,
        };
        Ok(Some(Self {
            addresses,
            tokens: Arc::new(tokens),
            metrics: app.metrics.clone(),
            after_commit: Arc::clone(after_commit),
        }))
    }

    fn connect(
        &self,
        service: SuiteService,
        client: &'static str,
    ) -> Option<std::result::Result<HttpUpstream, ConfigError>> {
        let url = self.addresses.get(&service)?;
        let tokens = Arc::clone(&self.tokens);
        let after_commit = Arc::clone(&self.after_commit);
        let upstream = HttpUpstream::new(url).map(|upstream| {
            upstream
                .with_service_tokens(tokens, service)
                .with_notices(move |notice| after_commit.on_notice(notice))
                .with_metrics(&self.metrics, service, client)
        });
        Some(upstream)
    }

    /// Returns the upstream of a service, with the routes that the service has in this process; `None` if the service is
    /// not remote.
    pub(crate) fn upstream(
        &self,
        name: SuiteService,
        service: &Service,
    ) -> Option<std::result::Result<HttpUpstream, ConfigError>> {
        let upstream = self.connect(name, "proxy")?;
        Some(upstream.map(|upstream| upstream.with_routes(Arc::new(service.clone()))))
    }

    /// Returns the authority that resolves credentials at the remote IAM; `None` if IAM is not remote. It has connections
    /// of its own.
    pub(crate) fn authority(&self) -> Option<std::result::Result<HttpAuthority, ConfigError>> {
        let url = self.addresses.get(&SuiteService::Iam)?;
        let tokens = Arc::clone(&self.tokens);
        let authority = HttpUpstream::new(url).map(|iam| {
            let iam = iam.with_metrics(&self.metrics, SuiteService::Iam, "authentication");
            HttpAuthority::new(iam, tokens)
        });
        Some(authority)
    }

    /// Returns the remote billing service as the receiver of usage; `None` if billing is not remote.
    pub(crate) fn usage(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Option<std::result::Result<RemoteUsage, ConfigError>> {
        let billing = self.connect(SuiteService::Billing, "usage")?;
        Some(billing.map(|billing| RemoteUsage {
            billing,
            clock: Arc::clone(clock),
        }))
    }
}

/// Reports usage to a billing service in another process.
#[derive(Debug)]
pub(crate) struct RemoteUsage {
    billing: HttpUpstream,
    clock: Arc<dyn Clock>,
}

fn unavailable(error: &UpstreamError) -> Error {
    Error::Unavailable(error.to_string())
}

#[async_trait]
impl UsageSink for RemoteUsage {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()> {
        let body = serde_json::to_vec(&IngestUsage { events });
        let body = body.map_err(|error| Error::Internal(error.to_string()))?;
        let request = Request::post(USAGE_EVENTS)
            .header(CONTENT_TYPE, "application/json")
            .body(bytes_body(body))
            .map_err(|error| Error::Internal(error.to_string()))?;
        let response = self.billing.send_as_gateway(request).await;
        match response.map_err(|error| unavailable(&error))?.status() {
            StatusCode::OK => Ok(()),
            // A repetition would be refused as well. The body of the response is not needed.
            StatusCode::BAD_REQUEST => Err(Error::Invalid(Vec::new())),
            status => Err(Error::Unavailable(format!(
                "billing responded with {status}"
            ))),
        }
    }

    /// Returns `None`, because only a gateway with the store of billing enforces quotas.
    async fn find_exhausted(&self, _: &PlatformId) -> Result<Option<ExhaustedRequests>> {
        Ok(None)
    }
}
