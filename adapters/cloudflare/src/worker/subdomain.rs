//! The addresses of workers below the account's workers.dev subdomain.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::script::{MISSING, PATH};
use crate::client::Client;
use crate::error::CallError;

/// The cached subdomain of the account. If the account has none, it is requested again the next time.
#[derive(Debug, Default)]
pub(crate) struct Subdomain(OnceCell<String>);

#[derive(Deserialize)]
struct AccountSubdomain {
    subdomain: Option<String>,
}

#[derive(Deserialize)]
struct ScriptSubdomain {
    enabled: bool,
}

impl Subdomain {
    async fn of_account(&self, client: &Client) -> Result<Option<&str>, CallError> {
        if self.0.get().is_none() {
            let call = client.call(
                Method::GET,
                "worker.account_subdomain",
                &["workers", "subdomain"],
            );
            let found = client.find::<AccountSubdomain>(call, MISSING).await?;
            let Some(subdomain) = found.and_then(|found| found.subdomain) else {
                return Ok(None);
            };
            // Another task may have stored the same value already.
            let _ = self.0.set(subdomain);
        }
        Ok(self.0.get().map(String::as_str))
    }

    /// Returns the workers.dev URL of a worker; `None` if it has none.
    pub(crate) async fn url(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<Option<String>, CallError> {
        if !client.options().workers_dev {
            return Ok(None);
        }
        let Some(subdomain) = self.of_account(client).await? else {
            return Ok(None);
        };
        let path = [&PATH[..], &[name, "subdomain"]].concat();
        let call = client.call(Method::GET, "worker.subdomain", &path);
        let found = client.find::<ScriptSubdomain>(call, MISSING).await?;
        let is_served = found.is_some_and(|found| found.enabled);
        Ok(is_served.then(|| format!("https://{name}.{subdomain}.workers.dev")))
    }

    /// Enables the workers.dev address of a worker, if the options and the account allow it.
    pub(crate) async fn enable(&self, client: &Client, name: &str) -> Result<(), CallError> {
        if !client.options().workers_dev || self.of_account(client).await?.is_none() {
            return Ok(());
        }
        let path = [&PATH[..], &[name, "subdomain"]].concat();
        let call = client.call(Method::POST, "worker.enable_subdomain", &path);
        let call = call.json(&json!({ "enabled": true }));
        // A new script can be unknown for a moment.
        let passes = |error: &CallError| error.is_retryable() || error.is_missing(MISSING);
        client
            .fetch_with_retries::<Value>(&call, passes)
            .await
            .map(drop)
    }
}
