//! Finds IAM by the metadata of the gateway (RFC 9728) and of IAM itself (RFC 8414).

use std::net::IpAddr;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Deserialize;

use crate::client::{Client, ClientBuilder, parse_base_url};
use crate::error::{Error, Result};
use crate::net::transport::{Content, OutgoingRequest};
use crate::operation::Service;
use crate::operations::{REFRESH_TOKENS, REQUEST_DEVICE_CODE};
use crate::types::account::AuthorizationServer;

/// The path of the gateway's metadata. The path of the gateway, if it has one, follows it.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of a protected resource (RFC 9728, section 2).
#[derive(Debug, Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
}

impl ClientBuilder {
    /// Looks up the address of IAM at the gateway, and sets it as [`ClientBuilder::iam_url`] does. The requests have no
    /// credential, and redirects are not followed.
    ///
    /// # Errors
    /// - [`Error::Discovery`] if the gateway does not name its IAM, if a document belongs to another address than the one
    ///   it was fetched from, or if an address is not encrypted and not on this machine.
    /// - Another [`Error`] of the requests, for example if the gateway cannot be reached.
    pub async fn discover_iam(self) -> Result<Self> {
        let gateway = self.without_credential().build()?;
        let issuer = find_issuer(&gateway).await?;
        let iam = self.without_credential().iam_url(&issuer).build()?;
        check_iam(&iam).await?;
        Ok(self.iam_url(issuer))
    }
}

/// Returns the issuer that the gateway names.
async fn find_issuer(gateway: &Client) -> Result<String> {
    let api_url = gateway.api_url();
    if !is_protected(api_url) {
        return refuse(format!(
            "{api_url} is not encrypted, so others on the network could name another identity service"
        ));
    }
    let document = fetch(gateway).await?;
    if !is_same_url(&document.resource, api_url) {
        return refuse(format!(
            "the metadata at {api_url} belongs to {:?}, which must be the address of the gateway",
            document.resource
        ));
    }
    let Some(issuer) = document.authorization_servers.first() else {
        return refuse(format!("{api_url} names no identity service"));
    };
    let issuer = match parse_base_url(issuer) {
        Ok(issuer) => issuer,
        Err(problem) => {
            return refuse(format!(
                "{api_url} names no identity service: {issuer:?} is not a valid address: {problem}"
            ));
        }
    };
    // Another machine has no reason to name a server on this one.
    if !is_protected(&issuer) || (is_loopback(&issuer) && !is_loopback(api_url)) {
        return refuse(format!(
            "{api_url} names the identity service {issuer}, which must be an https address"
        ));
    }
    Ok(issuer)
}

/// Fetches the metadata of the gateway.
async fn fetch(gateway: &Client) -> Result<ProtectedResource> {
    let api_url = gateway.api_url();
    let request = OutgoingRequest {
        method: Method::GET,
        url: metadata_url(api_url),
        headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
        content: Content::None,
        is_idempotent: true,
    };
    let transport = &gateway.0.transport;
    let response = match transport.send(&request).await {
        Ok(response) => response,
        Err(error) => return Err(explain(error, "the gateway", api_url)),
    };
    let body = transport.read(response, &request.url).await?;
    serde_json::from_slice(&body).map_err(|_| {
        Error::Discovery(format!(
            "the gateway {api_url} does not name its identity service: its metadata is not the expected JSON"
        ))
    })
}

/// Checks that the server at the address of IAM is the issuer with this address, and that its endpoints are those that
/// this client calls.
async fn check_iam(iam: &Client) -> Result<()> {
    let issuer = iam.iam_url();
    let document = match iam.get_authorization_server().await {
        Ok(document) => document,
        Err(Error::Decode { problem, .. }) => {
            return refuse(format!("the metadata of {issuer} is invalid: {problem}"));
        }
        Err(error) => return Err(explain(error, "the identity service", issuer)),
    };
    if document.issuer.trim_end_matches('/') != issuer {
        return refuse(format!(
            "the metadata at {issuer} belongs to the issuer {:?}",
            document.issuer
        ));
    }
    let AuthorizationServer {
        token_endpoint,
        device_authorization_endpoint,
        ..
    } = document;
    let expected = [REFRESH_TOKENS.path, REQUEST_DEVICE_CODE.path];
    let expected = expected.map(|path| iam.url(Service::Iam, path));
    if [token_endpoint, device_authorization_endpoint] != expected {
        return refuse(format!(
            "the identity service {issuer} has other endpoints than this client supports"
        ));
    }
    Ok(())
}

/// Returns a refusal of the server as the reason why discovery failed. Failures that may pass stay as they are.
fn explain(error: Error, what: &str, url: &str) -> Error {
    match error.status() {
        Some(status @ (300..=399)) => Error::Discovery(format!(
            "{what} {url} redirects to another address (status {status}), which is not followed"
        )),
        Some(status @ (400..=428 | 430..=499)) => Error::Discovery(format!(
            "{what} {url} has no metadata for clients (status {status})"
        )),
        _ => error,
    }
}

fn refuse<T>(problem: String) -> Result<T> {
    Err(Error::Discovery(problem))
}

/// Returns the address of a gateway's metadata (RFC 9728, section 3).
fn metadata_url(api_url: &str) -> String {
    let host = api_url
        .find("://")
        .map_or(0, |separator| separator + "://".len());
    let path = api_url[host..].find('/').map(|slash| host + slash);
    let (origin, path) = api_url.split_at(path.unwrap_or(api_url.len()));
    format!("{origin}{WELL_KNOWN}{path}")
}

/// Returns whether the traffic with an address is safe from other machines: it is encrypted, or stays on this machine.
#[must_use]
pub fn is_protected(url: &str) -> bool {
    has_scheme(url, "https") || is_loopback(url)
}

fn has_scheme(url: &str, scheme: &str) -> bool {
    let uri = url.parse::<Uri>().ok();
    uri.is_some_and(|uri| uri.scheme_str() == Some(scheme))
}

/// Returns whether an address is on this machine.
fn is_loopback(url: &str) -> bool {
    let Some(host) = url
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_ascii_lowercase))
    else {
        return false;
    };
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

/// Returns whether two addresses have the same scheme, host, port and path. The case of the host, a default port and a
/// slash at the end make no difference.
fn is_same_url(a: &str, b: &str) -> bool {
    let parts = |url: &str| {
        let uri = url
            .parse::<Uri>()
            .ok()
            .filter(|uri| uri.query().is_none())?;
        let scheme = uri.scheme_str()?.to_owned();
        let default_port = if scheme == "https" { 443 } else { 80 };
        Some((
            scheme,
            uri.host()?.to_ascii_lowercase(),
            uri.port_u16().unwrap_or(default_port),
            uri.path().trim_end_matches('/').to_owned(),
        ))
    };
    parts(a).is_some_and(|a| Some(a) == parts(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_path_stands_before_the_path_of_the_gateway() {
        for (api_url, expected) in [
            (
                "https://a.example.org",
                "https://a.example.org/.well-known/oauth-protected-resource",
            ),
            (
                "https://a.example.org/x/y",
                "https://a.example.org/.well-known/oauth-protected-resource/x/y",
            ),
        ] {
            assert_eq!(metadata_url(api_url), expected);
        }
    }

    #[test]
    fn only_https_and_this_machine_are_protected() {
        for url in [
            "https://api.example.org",
            "http://127.0.0.1:8080",
            "http://127.9.9.9",
            "http://[::1]:8080",
            "http://localhost:8080",
            "http://iam.localhost",
        ] {
            assert!(is_protected(url), "{url}");
        }
        for url in [
            "http://api.example.org",
            "http://10.0.0.1",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "http://[::2]",
        ] {
            assert!(!is_protected(url), "{url}");
        }
    }

    #[test]
    fn addresses_are_compared_by_their_parts() {
        let url = "https://api.example.org";
        for same in ["https://API.example.org/", "https://api.example.org:443"] {
            assert!(is_same_url(same, url), "{same}");
        }
        for other in [
            "http://api.example.org",
            "https://api.example.org:444",
            "https://api.example.org/x",
            "https://api.example.org?x",
            "https://api.example.org.evil.net",
            "",
        ] {
            assert!(!is_same_url(other, url), "{other}");
        }
    }
}
