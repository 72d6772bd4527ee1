//! Errors of the object store.

use std::error::Error as StdError;

use core_domain::port::{BlobError, Cause};
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

/// The reason why an operation failed. The text contains no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum S3Error {
    /// No object has the key.
    #[error("the object does not exist")]
    NoObject,
    /// The bucket does not exist.
    #[error("the bucket does not exist")]
    NoBucket,
    /// The server does not know the access key, or the signature is wrong.
    #[error("the object store does not accept the credentials ({0})")]
    Credentials(String),
    /// The credentials do not permit the operation.
    #[error("the object store denies access ({0})")]
    Denied(String),
    /// The bucket is in another region.
    #[error("the bucket is in another region ({0})")]
    Region(String),
    /// The clock of this machine differs from that of the server.
    #[error("the clock differs from that of the object store")]
    Clock,
    /// The server cannot be reached, or does not respond in time.
    #[error("the object store cannot be reached")]
    Unreachable(#[source] Cause),
    /// The server failed.
    #[error("the object store failed")]
    Failed(#[source] Cause),
    /// A local file cannot be created, written or read.
    #[error("the local file of a blob failed")]
    File(#[source] Cause),
    /// The text is not the key of a blob.
    #[error("{0:?} is not a blob key")]
    Key(String),
}

impl S3Error {
    /// Returns what an operator can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoBucket => "create the bucket, or correct its name in the URL",
            Self::Credentials(_) => "check the id and the secret of the access key",
            Self::Denied(_) => {
                "permit s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and \
                 s3:AbortMultipartUpload on its objects"
            }
            Self::Region(_) => "set the parameter region of the URL",
            Self::Clock => "run NTP",
            Self::Unreachable(_) => "check the endpoint in the URL, the network and the firewall",
            Self::File(_) => "check the free space and the permissions of the folder",
            Self::NoObject | Self::Failed(_) | Self::Key(_) => {
                "look at the log of the object store"
            }
        }
    }
}

impl From<std::io::Error> for S3Error {
    fn from(error: std::io::Error) -> Self {
        Self::File(Cause::new(error))
    }
}

impl From<S3Error> for BlobError {
    fn from(error: S3Error) -> Self {
        match error {
            S3Error::NoObject => Self::Missing,
            error => Self::Failed(Cause::new(error)),
        }
    }
}

impl From<Error> for S3Error {
    fn from(error: Error) -> Self {
        let text = Cause::new(error.to_string()).to_string();
        let is_missing = matches!(error, Error::NotFound { .. });
        let is_denied = matches!(
            error,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. }
        );
        match error_code(&text) {
            Some("NoSuchBucket") => Self::NoBucket,
            Some("NoSuchKey") => Self::NoObject,
            Some(
                code @ ("InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "InvalidClientTokenId"
                | "ExpiredToken"
                | "InvalidToken"
                | "InvalidSecurity"),
            ) => Self::Credentials(code.to_owned()),
            Some("RequestTimeTooSkewed") => Self::Clock,
            Some(
                code @ ("AuthorizationHeaderMalformed"
                | "PermanentRedirect"
                | "IllegalLocationConstraintException"),
            ) => Self::Region(code.to_owned()),
            Some(code) if is_denied => Self::Denied(code.to_owned()),
            Some(code) => Self::Failed(code.to_owned().into()),
            None if text.contains("Received redirect") => Self::Region("redirect".to_owned()),
            None if is_denied => Self::Denied("no reason given".to_owned()),
            None if is_missing => Self::NoObject,
            None => without_code(error),
        }
    }
}

/// Returns the error code in the XML of a response.
fn error_code(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<Code>")?;
    let (code, _) = after.split_once("</Code>")?;
    let is_code = |code: &str| code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    is_code(code).then_some(code)
}

/// Classifies an error without an error code: the request has no response, or the response is not one of S3.
fn without_code(error: Error) -> S3Error {
    let mut next: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(inner) = next {
        if let Some(http) = inner.downcast_ref::<HttpError>() {
            let cause = innermost(http);
            return match http.kind() {
                HttpErrorKind::Connect | HttpErrorKind::Timeout => S3Error::Unreachable(cause),
                _ => S3Error::Failed(cause),
            };
        }
        next = inner.source();
    }
    S3Error::Failed(Cause::new(error))
}

/// Returns the text of the last error of a chain. The outer ones repeat it, and the URL.
fn innermost(error: &(dyn StdError + 'static)) -> Cause {
    let mut last = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    last.to_string().into()
}
