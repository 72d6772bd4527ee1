//! The metadata of the gateway as an OAuth protected resource (RFC 9728). Clients find IAM by it.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, Uri};
use serde::Serialize;

use super::exchange::Outcome;
use super::refusal::Refusal;
use crate::kernel::{Body, bytes_body, own_value};

/// The path of the document.
const PATH: &str = "/.well-known/oauth-protected-resource";

/// The setting with the public URL of the gateway.
const PUBLIC_URL: &str = "public_url";

/// The name of the API for people.
const NAME: &str = "Platform Control API";

/// The document (RFC 9728, section 2).
#[derive(Serialize)]
struct Document<'a> {
    /// The public URL of the gateway.
    resource: &'a str,
    /// The public URL of IAM.
    authorization_servers: [&'a str; 1],
    bearer_methods_supported: [&'static str; 1],
    resource_name: &'static str,
}

/// The metadata of a gateway whose public URL and IAM are configured.
#[derive(Debug)]
pub(crate) struct ResourceMetadata {
    document: Bytes,
    /// The value of `WWW-Authenticate` in responses with status 401.
    pub(crate) challenge: HeaderValue,
}

impl ResourceMetadata {
    /// Creates the metadata from the public URLs of the gateway and of IAM.
    ///
    /// # Errors
    /// The name of the setting that is invalid, and the reason.
    pub(crate) fn new(public_url: &str, issuer: &str) -> Result<Self, (&'static str, String)> {
        let resource = check_url(PUBLIC_URL, public_url)?;
        let issuer = check_url("authorization_server", issuer)?;
        let document = Document {
            resource,
            authorization_servers: [issuer],
            bearer_methods_supported: ["header"],
            resource_name: NAME,
        };
        let document =
            serde_json::to_vec(&document).map_err(|error| (PUBLIC_URL, error.to_string()))?;
        Ok(Self {
            document: document.into(),
            challenge: own_value(format!("Bearer resource_metadata=\"{resource}{PATH}\"")),
        })
    }

    /// Returns the document. Caches may use it for five minutes.
    fn response(&self) -> Response<Body> {
        let mut response = Response::new(bytes_body(self.document.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        );
        response
    }
}

/// Returns the response to a request for the document. Only `GET` and `HEAD` are supported.
pub(super) fn answer(metadata: Option<&ResourceMetadata>, method: &Method) -> Outcome {
    let metadata = metadata.ok_or_else(Refusal::not_found)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::method_not_allowed("GET, HEAD"));
    }
    Ok(metadata.response())
}

/// Returns a URL without the slash at its end. It must be `http` or `https` with a host. IAM may have a path, because an
/// embedding program can mount it below one; the gateway cannot.
fn check_url<'u>(setting: &'static str, url: &'u str) -> Result<&'u str, (&'static str, String)> {
    let fits = url.parse::<Uri>().is_ok_and(|uri| {
        let authority = uri.authority().map(http::uri::Authority::as_str);
        matches!(uri.scheme_str(), Some("http" | "https"))
            && authority.is_some_and(|authority| !authority.contains('@'))
            && (setting != PUBLIC_URL || uri.path() == "/")
            && uri.query().is_none()
            && !url.contains('#')
    });
    if fits {
        Ok(url.trim_end_matches('/'))
    } else {
        let problem = format!("{url:?} must have the form https://host or https://host:port");
        Err((setting, problem))
    }
}
