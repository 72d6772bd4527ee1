//! The credentials of requests.

use std::fmt;

use core_domain::kernel::Secret;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

/// The variables with which AWS tells a program how to get the credentials of its role.
const ROLE_VARIABLES: [&str; 7] = [
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
];

/// The credentials with which requests are signed.
#[derive(Clone)]
#[non_exhaustive]
pub enum S3Credentials {
    /// An access key.
    Key {
        /// The id of the key.
        id: String,
        /// The secret of the key.
        secret: Secret,
        /// The token of temporary keys. `None` for permanent keys.
        session_token: Option<Secret>,
    },
    /// The role that AWS gives to this machine, container or pod. Its credentials are fetched, and renewed before they
    /// expire.
    Role {
        /// Variables of the environment, of which those that describe the role are used. Without any of them the metadata
        /// service of EC2 is asked.
        environment: Vec<(String, String)>,
    },
}

impl S3Credentials {
    /// Returns the credentials of a role, which the variables of the environment describe.
    pub fn role(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let named = |(name, _): &(String, String)| ROLE_VARIABLES.contains(&name.as_str());
        Self::Role {
            environment: environment.into_iter().filter(named).collect(),
        }
    }

    /// Returns the problem with the credentials, or `None` if their form is valid.
    pub(crate) fn problem(&self) -> Option<(&'static str, &'static str)> {
        let Self::Key { id, secret, .. } = self else {
            return None;
        };
        let is_text = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        let problem = "must consist of visible ASCII characters";
        if !is_text(id) {
            return Some(("s3.access_key_id", problem));
        }
        (!is_text(secret.expose())).then_some(("s3.secret_access_key", problem))
    }

    /// Gives the credentials to the client.
    pub(crate) fn apply(&self, builder: AmazonS3Builder) -> AmazonS3Builder {
        match self {
            Self::Key {
                id,
                secret,
                session_token,
            } => {
                let builder = builder
                    .with_access_key_id(id)
                    .with_secret_access_key(secret.expose());
                match session_token {
                    Some(token) => builder.with_token(token.expose()),
                    None => builder,
                }
            }
            Self::Role { environment } => environment.iter().fold(builder, with_variable),
        }
    }
}

fn with_variable(builder: AmazonS3Builder, (name, value): &(String, String)) -> AmazonS3Builder {
    match name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
        Ok(key) => builder.with_config(key, value),
        // The variable describes no role.
        Err(_) => builder,
    }
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { id, .. } => {
                let mut shown = f.debug_struct("Key");
                shown.field("id", id).finish_non_exhaustive()
            }
            Self::Role { .. } => f.write_str("Role"),
        }
    }
}
