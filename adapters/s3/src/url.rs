//! The URL of a bucket: `s3://bucket/prefix?region=eu-central-1&endpoint=https://s3.example.org&style=path`.

use serde::Deserialize;

/// Maximum length of the prefix, in bytes. An object key has at most 1,024 bytes, a blob key 128.
const MAX_PREFIX_BYTES: usize = 512;

/// The region of servers that have none.
const DEFAULT_REGION: &str = "us-east-1";

/// The bucket and the prefix that a URL names, and the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketUrl {
    pub(crate) bucket: String,
    /// The prefix of all keys, without slashes at its ends. Empty if keys have none.
    pub(crate) prefix: String,
    pub(crate) region: String,
    /// The URL of the bucket's server; `None` means AWS.
    pub(crate) endpoint: Option<Endpoint>,
    /// Whether the name of the bucket is a part of the host name, and not of the path.
    pub(crate) is_virtual_hosted: bool,
}

/// The URL of a server, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    scheme: String,
    authority: String,
}

impl Endpoint {
    /// Returns whether connections are not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.scheme == "http"
    }

    fn parse(url: &str) -> Option<Self> {
        let uri: http::Uri = url.trim_end_matches('/').parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?.as_str());
        let fits = matches!(scheme, "http" | "https")
            && uri.path() == "/"
            && uri.query().is_none()
            && !authority.contains('@');
        fits.then(|| Self {
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
        })
    }
}

/// The parameters of the URL.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    region: Option<String>,
    endpoint: Option<String>,
    style: Option<Style>,
}

/// The place of the bucket's name in the URLs of requests.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Style {
    Path,
    Virtual,
}

impl BucketUrl {
    /// Parses a URL. `default_region` is the region if the URL names none.
    ///
    /// # Errors
    /// The problem, for an operator.
    pub(crate) fn parse(url: &str, default_region: Option<&str>) -> Result<Self, &'static str> {
        const FORM: &str = "must have the form s3://bucket/prefix?region=..&endpoint=https://..";
        let uri: http::Uri = url.parse().map_err(|_| FORM)?;
        if uri.scheme_str() != Some("s3") || url.contains('#') {
            return Err(FORM);
        }
        let bucket = uri.authority().ok_or(FORM)?.as_str();
        if bucket.contains('@') {
            return Err("must not contain credentials; set the access key with its own options");
        }
        if !is_bucket(bucket) {
            return Err(
                "names no bucket: 3 to 63 lower-case letters, digits, dots and hyphens are allowed",
            );
        }
        let prefix = uri.path().trim_matches('/');
        if !is_prefix(prefix) {
            return Err(
                "has an invalid prefix: use letters, digits, `.`, `_` and `-`, separated by slashes",
            );
        }
        let parameters: Parameters = serde_urlencoded::from_str(uri.query().unwrap_or_default())
            .map_err(|_| "has an unknown parameter; the parameters are region, endpoint and style (path or virtual)")?;
        let endpoint = parameters.endpoint.as_deref();
        let endpoint = endpoint.map(|url| {
            Endpoint::parse(url)
                .ok_or("has an invalid endpoint: it must have the form https://host:port")
        });
        let endpoint = endpoint.transpose()?;
        let region = parameters.region.as_deref().or(default_region);
        let region = match (region, &endpoint) {
            (Some(region), _) if is_region(region) => region,
            (Some(_), _) => return Err("has an invalid region"),
            (None, Some(_)) => DEFAULT_REGION,
            (None, None) => return Err("needs a region, such as ?region=eu-central-1"),
        };
        // The certificates of AWS do not cover dots in the name of a bucket.
        let usual = if endpoint.is_some() || bucket.contains('.') {
            Style::Path
        } else {
            Style::Virtual
        };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            region: region.to_owned(),
            endpoint,
            is_virtual_hosted: parameters.style.unwrap_or(usual) == Style::Virtual,
        })
    }

    /// Returns the URL of the server for `object_store`, which expects the name of a virtual-hosted bucket in it.
    pub(crate) fn server(&self) -> Option<String> {
        let Endpoint { scheme, authority } = self.endpoint.as_ref()?;
        Some(if self.is_virtual_hosted {
            format!("{scheme}://{}.{authority}", self.bucket)
        } else {
            format!("{scheme}://{authority}")
        })
    }

    /// Returns whether connections are not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.endpoint.as_ref().is_some_and(Endpoint::is_plain)
    }
}

fn is_bucket(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-';
    let is_end = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    (3..=63).contains(&name.len())
        && name.bytes().all(is_inner)
        && is_end(name.bytes().next())
        && is_end(name.bytes().next_back())
}

fn is_prefix(prefix: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let is_segment = |segment: &str| {
        !segment.is_empty() && !matches!(segment, "." | "..") && segment.bytes().all(is_inner)
    };
    prefix.is_empty() || prefix.len() <= MAX_PREFIX_BYTES && prefix.split('/').all(is_segment)
}

fn is_region(region: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=64).contains(&region.len()) && region.bytes().all(is_inner)
}
