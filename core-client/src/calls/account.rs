//! Device login (RFC 8628), refresh of tokens (RFC 6749), and the signed-in person.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::operations::{
    EXCHANGE_DEVICE_CODE, GET_AUTHORIZATION_SERVER, REFRESH_TOKENS, REQUEST_DEVICE_CODE, SIGN_OUT,
    WHOAMI,
};
use crate::secret::{PlainSecret, Secret};
use crate::types::account::{
    AuthorizationServer, CLIENT_ID, DEVICE_GRANT, DeviceCodeRequest, DeviceCodes,
    DeviceTokenRequest, REFRESH_GRANT, RefreshRequest, TokenPair, Whoami,
};

/// The time by which `slow_down` lengthens the interval between two polls (RFC 8628, section 3.5).
const SLOW_DOWN: Duration = Duration::from_secs(5);

/// The longest pause after a lost connection.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

impl Client {
    /// Returns the metadata of the authorization server.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn get_authorization_server(&self) -> Result<AuthorizationServer> {
        self.call(GET_AUTHORIZATION_SERVER, &[]).send().await
    }

    /// Starts a device login. Display the codes to the person, then call [`Client::wait_for_approval`].
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn request_device_code(&self) -> Result<DeviceCodes> {
        let client_id = CLIENT_ID;
        let body = DeviceCodeRequest { client_id };
        self.call(REQUEST_DEVICE_CODE, &[]).send(&body).await
    }

    /// Waits until the person has approved the device, and returns the tokens. Polls at the interval that the server
    /// asks for, and more slowly when it asks for that.
    ///
    /// # Errors
    /// [`Error::Api`] with the code `access_denied` if the person denied the device, `expired_token` if the codes
    /// expired, or another refusal.
    pub async fn wait_for_approval(&self, codes: &DeviceCodes) -> Result<TokenPair> {
        let end = Instant::now() + Duration::from_secs(codes.expires_in);
        let mut interval = PollInterval::new(Duration::from_secs(codes.interval));
        loop {
            sleep(interval.pause()).await;
            let error = match self.exchange_device_code(&codes.device_code).await {
                Ok(tokens) => return Ok(tokens),
                Err(error) => error,
            };
            // The server reports expired codes itself. Without a connection to it, this limit holds.
            if !interval.continues_after(&error) || Instant::now() >= end {
                return Err(error);
            }
        }
    }

    /// Exchanges a device code for tokens.
    ///
    /// # Errors
    /// [`Error::Api`] with the code `authorization_pending` or `slow_down` while the person has not decided.
    pub async fn exchange_device_code(&self, device_code: &Secret) -> Result<TokenPair> {
        let body = DeviceTokenRequest {
            grant_type: DEVICE_GRANT,
            device_code: PlainSecret(device_code.clone()),
            client_id: CLIENT_ID,
        };
        self.call(EXCHANGE_DEVICE_CODE, &[]).send(&body).await
    }

    /// Exchanges a refresh token for the next tokens. Each refresh token can be used once.
    ///
    /// # Errors
    /// [`Error::Api`] with the code `invalid_grant` if the session has ended; sign in again.
    pub async fn refresh_tokens(&self, refresh_token: &Secret) -> Result<TokenPair> {
        let body = RefreshRequest {
            grant_type: REFRESH_GRANT,
            refresh_token: PlainSecret(refresh_token.clone()),
            client_id: CLIENT_ID,
        };
        self.call(REFRESH_TOKENS, &[]).send(&body).await
    }

    /// Ends the session of the credential. Its access and refresh tokens are refused from then on.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn sign_out(&self) -> Result<()> {
        self.call(SIGN_OUT, &[]).send().await.map(drop)
    }

    /// Returns the person, platform and role of the credential.
    ///
    /// # Errors
    /// [`Error::Api`] with the status 401 or 403 if the credential is an API key or not valid.
    pub async fn whoami(&self) -> Result<Whoami> {
        self.call(WHOAMI, &[]).send().await
    }
}

/// The interval between two polls of a device login.
#[derive(Clone, Copy, Debug)]
struct PollInterval {
    interval: Duration,
    /// The pause before the next poll, longer than the interval after lost connections.
    pause: Duration,
}

impl PollInterval {
    fn new(interval: Duration) -> Self {
        let pause = interval;
        Self { interval, pause }
    }

    fn pause(&self) -> Duration {
        self.pause
    }

    /// Adapts the interval to the outcome of a poll. Returns whether to poll again.
    fn continues_after(&mut self, error: &Error) -> bool {
        match error {
            Error::Api(error) if error.code == "authorization_pending" => {}
            Error::Api(error) if error.code == "slow_down" => self.interval += SLOW_DOWN,
            // RFC 8628 asks for an exponential pause after a lost connection.
            Error::Transport(_) => {
                self.pause = (self.pause * 2).clamp(Duration::from_secs(1), MAX_INTERVAL);
                return true;
            }
            _ => return false,
        }
        self.pause = self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ApiError, TransportError, TransportStage};

    fn refusal(code: &str) -> Error {
        let body = format!(r#"{{"error":"{code}"}}"#);
        Error::Api(Box::new(ApiError::parse(400, body.as_bytes(), None)))
    }

    #[test]
    fn slow_down_lengthens_every_later_pause_by_five_seconds() {
        let mut interval = PollInterval::new(Duration::from_secs(5));
        assert!(interval.continues_after(&refusal("slow_down")));
        assert_eq!(interval.pause(), Duration::from_secs(10));
        assert!(interval.continues_after(&refusal("authorization_pending")));
        assert_eq!(interval.pause(), Duration::from_secs(10));
        assert!(interval.continues_after(&refusal("slow_down")));
        assert_eq!(interval.pause(), Duration::from_secs(15));
    }

    #[test]
    fn decisions_end_the_polling() {
        let mut interval = PollInterval::new(Duration::from_secs(5));
        for code in ["access_denied", "expired_token", "invalid_grant"] {
            assert!(!interval.continues_after(&refusal(code)), "{code}");
        }
    }

    #[test]
    fn lost_connections_double_the_pause_until_the_server_responds() {
        let mut interval = PollInterval::new(Duration::from_secs(5));
        let lost =
            || TransportError::new(TransportStage::Timeout, "http://localhost", "late").into();
        assert!(interval.continues_after(&lost()));
        assert!(interval.continues_after(&lost()));
        assert_eq!(interval.pause(), Duration::from_secs(20));
        assert!(interval.continues_after(&refusal("authorization_pending")));
        assert_eq!(interval.pause(), Duration::from_secs(5));
    }
}
