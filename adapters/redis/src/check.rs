//! The check of a server: one connection, a login and a `PING`.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, RedisError};
use tokio::time::timeout;

use crate::config::OptionError;
use crate::stream::Target;

/// The codes of errors that ask for another login. A server that needs a password and receives none accepts the
/// connection and refuses each command with the first one.
const LOGIN_CODES: [&str; 2] = ["NOAUTH", "WRONGPASS"];

/// The reason why a server cannot be used. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// There is no connection, or the server does not speak the protocol of Redis.
    #[error("Redis cannot be reached: {0}")]
    Unreachable(String),
    /// The server took longer than the time-out for connections.
    #[error("Redis did not respond in time")]
    TimedOut,
    /// The server refused the user or the password, or requires a password.
    #[error("Redis refused the login: {0}")]
    Login(String),
    /// The server refused a command.
    #[error("Redis refused a command: {0}")]
    Refused(String),
}

impl CheckError {
    /// Returns what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Option(_) => "correct the option",
            Self::Unreachable(_) | Self::TimedOut => {
                "check that it runs, the host, the port and the firewall, and with rediss:// the certificate"
            }
            Self::Login(_) => "check the user and the password in the URL",
            Self::Refused(_) => {
                "check the number of the database in the URL, the permissions of the user, and the log of Redis"
            }
        }
    }
}

impl From<RedisError> for CheckError {
    /// Drops the text of a server's error, because some servers repeat the command in it, and with it the password.
    fn from(error: RedisError) -> Self {
        let text = error.code().unwrap_or(error.category()).to_owned();
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::Login(text),
            ErrorKind::Server(_) | ErrorKind::Extension => {
                match LOGIN_CODES.contains(&text.as_str()) {
                    true => Self::Login(text),
                    false => Self::Refused(text),
                }
            }
            _ => Self::Unreachable(text),
        }
    }
}

/// Connects to the server, signs in and sends `PING`.
pub(crate) async fn check(target: &Target) -> Result<(), CheckError> {
    let checked = timeout(target.connect_timeout, ping(target)).await;
    checked.unwrap_or(Err(CheckError::TimedOut))
}

async fn ping(target: &Target) -> Result<(), CheckError> {
    let stream = target.open_stream().await;
    let stream = stream.map_err(|error| CheckError::Unreachable(error.to_string()))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let opened = MultiplexedConnection::new_with_config(target.login(), stream, config).await?;
    let (mut connection, driver) = opened;
    let ping = redis::cmd("PING");
    tokio::select! {
        biased;
        response = ping.query_async::<()>(&mut connection) => Ok(response?),
        // The driver ends when the connection is lost.
        () = driver => Err(CheckError::Unreachable("the connection was closed".to_owned())),
    }
}
