//! The client and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};

use crate::credential::{Anonymous, Credential, TokenSource};
use crate::error::{Error, Result};
use crate::net::connector::connector;
use crate::net::retry::RetryPolicy;
use crate::net::transport::{Transport, connections};
use crate::operation::Service;

/// The text that identifies the client in the server's logs.
const DEFAULT_USER_AGENT: &str = concat!("core-client/", env!("CARGO_PKG_VERSION"));

/// The path below which a gateway serves IAM.
const IAM_AT_GATEWAY: &str = "/api/v1/iam";

/// An async client of the Platform Control API. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) transport: Transport,
    api: String,
    iam: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("api", &self.0.api)
            .field("iam", &self.0.iam)
            .field("source", &self.0.transport.source)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Creates the settings of a client for the gateway at this address, for example `https://api.example.org`.
    pub fn builder(api_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            api: api_url.into(),
            iam: None,
            source: Arc::new(Anonymous),
            policy: RetryPolicy::default(),
            user_agent: DEFAULT_USER_AGENT.to_owned(),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(60),
        }
    }

    /// Returns the address of the gateway, without a slash at the end.
    #[must_use]
    pub fn api_url(&self) -> &str {
        &self.0.api
    }

    /// Returns the address of IAM, without a slash at the end.
    #[must_use]
    pub fn iam_url(&self) -> &str {
        &self.0.iam
    }

    /// Returns the address of a service's path.
    pub(crate) fn url(&self, service: Service, path: &str) -> String {
        let base = if service == Service::Iam {
            &self.0.iam
        } else {
            &self.0.api
        };
        format!("{base}{}", service.gateway_path(path))
    }
}

/// The settings of a client.
#[must_use]
#[derive(Debug)]
pub struct ClientBuilder {
    api: String,
    iam: Option<String>,
    source: Arc<dyn TokenSource>,
    policy: RetryPolicy,
    user_agent: String,
    connect_timeout: Duration,
    response_timeout: Duration,
}

impl ClientBuilder {
    /// Sets the credential to a text: an API key if it begins with `core_`, and a bearer token otherwise. Default: none.
    pub fn token(self, token: &str) -> Self {
        self.token_source(Credential::from_text(token))
    }

    /// Sets the source of credentials. Default: none.
    pub fn token_source(mut self, source: impl TokenSource + 'static) -> Self {
        self.source = Arc::new(source);
        self
    }

    /// Sets the address of IAM. Default: the gateway's prefix for IAM, which does not allow a device login unless the
    /// gateway opens these routes. [`ClientBuilder::discover_iam`] looks the address up.
    pub fn iam_url(mut self, url: impl Into<String>) -> Self {
        self.iam = Some(url.into());
        self
    }

    /// Returns the settings of a client that sends no credential.
    pub(crate) fn without_credential(&self) -> Self {
        Self {
            api: self.api.clone(),
            iam: self.iam.clone(),
            source: Arc::new(Anonymous),
            policy: self.policy,
            user_agent: self.user_agent.clone(),
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
        }
    }

    /// Sets how failed requests are repeated. Default: [`RetryPolicy::default`].
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the value of `User-Agent`. Default: `core-client/` with the version.
    pub fn user_agent(mut self, text: impl Into<String>) -> Self {
        self.user_agent = text.into();
        self
    }

    /// Sets the maximum time to open a connection. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the maximum time until a response starts, and then until it is complete. An upload that makes progress is
    /// not interrupted. Default: 60 s. Requests that wait for a job take up to 25 s.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Creates the client. It opens connections when it sends requests.
    ///
    /// # Errors
    /// [`Error::Setup`] if an address is invalid or the system's certificates cannot be read.
    pub fn build(self) -> Result<Client> {
        let api = base_url(&self.api)?;
        let iam = match &self.iam {
            Some(url) => base_url(url)?,
            None => format!("{api}{IAM_AT_GATEWAY}"),
        };
        let tls = [&api, &iam].iter().any(|url| url.starts_with("https:"));
        let invalid =
            |_| Error::Setup("the user agent has characters that headers cannot have".to_owned());
        let transport = Transport {
            connections: connections(connector(tls, self.connect_timeout)?),
            source: self.source,
            policy: self.policy,
            user_agent: HeaderValue::from_str(&self.user_agent).map_err(invalid)?,
            response_timeout: self.response_timeout,
        };
        Ok(Client(Arc::new(Inner {
            transport,
            api,
            iam,
        })))
    }
}

fn base_url(url: &str) -> Result<String> {
    parse_base_url(url).map_err(|problem| {
        // An address with an @ may contain a password.
        let what = match url.contains('@') {
            true => "an address is not valid".to_owned(),
            false => format!("{url:?} is not a valid address"),
        };
        Error::Setup(format!("{what}: {problem}"))
    })
}

/// Checks the address of a gateway or IAM, and returns it without the slash at its end.
///
/// # Errors
/// The reason why the address is invalid. It does not quote the address, which may contain a password.
pub fn parse_base_url(url: &str) -> std::result::Result<String, &'static str> {
    let Ok(uri) = url.parse::<Uri>() else {
        return Err("it cannot be parsed");
    };
    let Some(authority) = uri.authority() else {
        return Err("it must begin with https:// or http://");
    };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("it must begin with https:// or http://");
    }
    if authority.as_str().contains('@') {
        return Err("it must not contain a user name or password");
    }
    let has_port = authority.as_str().len() > authority.host().len();
    if authority.host().is_empty()
        || (has_port && authority.port_u16().is_none_or(|port| port == 0))
    {
        return Err("its host or port is invalid");
    }
    if uri.query().is_some() || url.contains('#') {
        return Err("it must not have a query string or fragment");
    }
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_address_at_the_gateway() {
        let client = Client::builder("https://api.example.org/")
            .iam_url("https://id.example.org")
            .build()
            .unwrap();
        for (service, path, url) in [
            (
                Service::Iam,
                "/oauth/token",
                "https://id.example.org/oauth/token",
            ),
            (
                Service::Registry,
                "/api/v1/platforms/p",
                "https://api.example.org/api/v1/platforms/p",
            ),
            (
                Service::Provisioning,
                "/api/v1/provision/jobs",
                "https://api.example.org/api/v1/provisioning/jobs",
            ),
            (
                Service::Stacks,
                "/api/v1/stacks/web",
                "https://api.example.org/api/v1/stacks/web",
            ),
            (
                Service::Cli,
                "/api/v1/platforms/p/deploy",
                "https://api.example.org/api/v1/cli/platforms/p/deploy",
            ),
        ] {
            assert_eq!(client.url(service, path), url);
        }
    }

    #[test]
    fn without_an_address_of_its_own_iam_is_behind_the_gateway() {
        let client = Client::builder("http://localhost:8080").build().unwrap();
        assert_eq!(client.iam_url(), "http://localhost:8080/api/v1/iam");
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for url in [
            "",
            "api.example.org",
            "ftp://example.org",
            "https://a/?x=1",
            "https://me@example.org",
            "http://",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:99999",
            "http://a b",
            "http://a/#x",
        ] {
            assert!(Client::builder(url).build().is_err(), "{url}");
        }
    }

    #[test]
    fn the_error_of_an_address_does_not_repeat_its_password() {
        let url = "https://ada:hunter2@example.org";
        let error = Client::builder(url).build().unwrap_err().to_string();
        assert!(
            error.contains("password") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn debug_output_does_not_contain_the_token() {
        let client = Client::builder("http://localhost")
            .token("core_abc")
            .build()
            .unwrap();
        assert!(!format!("{client:?}").contains("abc"));
    }
}
