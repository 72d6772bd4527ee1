//! The bucket of the configuration.

use core_suite::{S3Config, S3Credentials, Secret};

use super::error::{ConfigError, option_error};
use super::options::Options;

/// The bucket that stores uploads.
#[derive(Clone)]
pub(crate) struct Bucket {
    /// The URL of the bucket.
    pub(crate) url: String,
    /// The credentials of requests.
    pub(crate) credentials: S3Credentials,
}

/// Returns the variables of the environment that AWS defines. An empty variable counts as not set.
pub(super) fn aws_variables(environment: &[(String, String)]) -> Vec<(String, String)> {
    let is_set = |(name, value): &&(String, String)| name.starts_with("AWS_") && !value.is_empty();
    environment.iter().filter(is_set).cloned().collect()
}

/// Returns the bucket that stores uploads; `None` means the data folder. Takes what the options do not say from the
/// variables that AWS defines: the region, and the access key or the role.
///
/// # Errors
/// [`ConfigError`] names the option that is invalid, or that another option requires.
pub(super) fn bucket(
    options: &mut Options,
    aws: &[(String, String)],
) -> Result<Option<Bucket>, ConfigError> {
    let id = options.s3_access_key_id.clone();
    let secret = options.s3_secret_access_key.clone();
    let Some(url) = options.blobs_url.clone() else {
        if id.is_some() || secret.is_some() {
            return Err(option_error("blobs_url", "is required with an access key"));
        }
        return Ok(None);
    };
    let credentials = match (id, secret) {
        (Some(id), Some(secret)) => S3Credentials::Key {
            id,
            secret: Secret::new(secret),
            session_token: None,
        },
        (Some(_), None) => {
            let problem = "is required with the id of an access key";
            return Err(option_error("s3_secret_access_key", problem));
        }
        (None, Some(_)) => {
            let problem = "is required with the secret of an access key";
            return Err(option_error("s3_access_key_id", problem));
        }
        (None, None) => aws_credentials(aws)?,
    };
    let settings = &mut options.settings.s3;
    if settings.region.is_none() {
        let region = variable(aws, "AWS_REGION").or_else(|| variable(aws, "AWS_DEFAULT_REGION"));
        settings.region = region.map(str::to_owned);
    }
    let config = S3Config {
        url,
        credentials,
        options: settings.clone(),
    };
    match config.check() {
        Ok(()) => Ok(Some(Bucket {
            url: config.url,
            credentials: config.credentials,
        })),
        Err(error) => Err(option_error(option(error.setting), error.problem)),
    }
}

/// Returns the access key in the variables of AWS, or else the role that they describe.
fn aws_credentials(aws: &[(String, String)]) -> Result<S3Credentials, ConfigError> {
    let id = variable(aws, "AWS_ACCESS_KEY_ID");
    let secret = variable(aws, "AWS_SECRET_ACCESS_KEY");
    match (id, secret) {
        (Some(id), Some(secret)) => Ok(S3Credentials::Key {
            id: id.to_owned(),
            secret: Secret::new(secret),
            session_token: variable(aws, "AWS_SESSION_TOKEN").map(Secret::new),
        }),
        (None, None) => Ok(S3Credentials::role(aws.iter().cloned())),
        _ => Err(option_error(
            "blobs_url",
            "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, but only one of them is set",
        )),
    }
}

fn variable<'a>(aws: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = aws.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// Returns the option that sets a setting of the bucket.
fn option(setting: &'static str) -> &'static str {
    match setting {
        "s3.url" => "blobs_url",
        "s3.access_key_id" => "s3_access_key_id",
        "s3.secret_access_key" => "s3_secret_access_key",
        other => other,
    }
}
