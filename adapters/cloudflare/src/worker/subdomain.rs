//! Where workers are served: below the account's subdomain of workers.dev.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::script::{MISSING, PATH};
use crate::client::Client;
use crate::error::CallError;

/// The account's subdomain, once it is known. One that is registered later is asked for again.
#[derive(Debug, Default)]
pub(crate) struct Subdomain(OnceCell<String>);

#[derive(Deserialize)]
struct OfAccount {
    subdomain: Option<String>,
}

#[derive(Deserialize)]
struct OfScript {
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
            let found = client.find::<OfAccount>(call, MISSING).await?;
            let Some(subdomain) = found.and_then(|found| found.subdomain) else {
                return Ok(None);
            };
            // Another task may have been faster, with the same.
            let _ = self.0.set(subdomain);
        }
        Ok(self.0.get().map(String::as_str))
    }

    /// The address of a worker, if it has one.
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
        let found = client.find::<OfScript>(call, MISSING).await?;
        let is_served = found.is_some_and(|found| found.enabled);
        Ok(is_served.then(|| format!("https://{name}.{subdomain}.workers.dev")))
    }

    /// Lets a worker be served there, where that is wanted.
    pub(crate) async fn enable(&self, client: &Client, name: &str) -> Result<(), CallError> {
        if !client.options().workers_dev || self.of_account(client).await?.is_none() {
            return Ok(());
        }
        let path = [&PATH[..], &[name, "subdomain"]].concat();
        let call = client.call(Method::POST, "worker.enable_subdomain", &path);
        let call = call.json(&json!({ "enabled": true }));
        // It may take a moment until the script is known everywhere.
        let passes = |error: &CallError| error.may_work_soon() || error.is_missing(MISSING);
        client
            .fetch_with_retries::<Value>(&call, passes)
            .await
            .map(drop)
    }
}
