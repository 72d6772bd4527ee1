//! Secrets of a platform.

use std::collections::BTreeMap;

use crate::client::Client;
use crate::error::Result;
use crate::operations::{DELETE_SECRET, LIST_SECRETS, SET_SECRETS};
use crate::secret::{PlainSecret, Secret};
use crate::types::secret_name::{SecretOutcome, SecretRecord, SetSecrets};

impl Client {
    /// Lists the names of the secrets, of one resource or of the platform's default.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_secrets(
        &self,
        platform: &str,
        resource_id: Option<&str>,
    ) -> Result<Vec<SecretRecord>> {
        let call = self.call(LIST_SECRETS, &[platform]);
        Ok(call.query("resourceId", resource_id).send().await?.data)
    }

    /// Sets 1 to 100 secrets, all or none. Names match `^[A-Z][A-Z0-9_]{0,127}$`; values have 1 to 5120 bytes.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn set_secrets(
        &self,
        platform: &str,
        secrets: BTreeMap<String, Secret>,
        resource_id: Option<&str>,
    ) -> Result<SecretOutcome> {
        let secrets = secrets
            .into_iter()
            .map(|(name, value)| (name, PlainSecret(value)));
        let body = SetSecrets {
            secrets: secrets.collect(),
            resource_id: resource_id.map(str::to_owned),
        };
        self.call(SET_SECRETS, &[platform]).send(&body).await
    }

    /// Deletes a secret.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 404 if there is no such secret.
    pub async fn delete_secret(
        &self,
        platform: &str,
        name: &str,
        resource_id: Option<&str>,
    ) -> Result<()> {
        let call = self.call(DELETE_SECRET, &[platform, name]);
        call.query("resourceId", resource_id).send().await.map(drop)
    }
}
