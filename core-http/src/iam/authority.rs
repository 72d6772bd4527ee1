//! Resolves the credentials of gateway requests within the process.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::iam::CookieSigner;
use core_domain::kernel::{Error, StoreError};
use core_domain::port::{Store, transact};
use core_domain::use_case::iam::session::extend;

use super::IamConfig;
use super::api_key::find_key;
use super::identify::session_of;
use crate::gateway::{Authority, AuthorityError, ResolvedCredential};

/// Resolves session tokens, access tokens and API keys from the store. It also extends sessions that are due for
/// extension and records the use of API keys.
#[derive(Debug)]
pub struct SessionAuthority {
    store: Arc<dyn Store>,
    signer: CookieSigner,
}

impl SessionAuthority {
    /// Creates an authority for this store, with the settings of IAM.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, config: &IamConfig) -> Self {
        Self {
            store,
            signer: CookieSigner::new(config.secret.clone()),
        }
    }

    async fn session(&self, token: &str) -> Result<Option<ResolvedCredential>, Error> {
        let Some(found) = session_of(self.store.as_ref(), token).await? else {
            return Ok(None);
        };
        let mut valid_until = found.valid_until;
        if found.is_extension_due {
            let extended =
                transact(self.store.as_ref(), |uow, _| Box::pin(extend(uow, token))).await?;
            let ends_with_session = valid_until == found.session.expires_at;
            if let Some(extended) = extended.filter(|_| ends_with_session) {
                valid_until = extended.expires_at;
            }
        }
        Ok(Some(ResolvedCredential {
            caller: Arc::new(found.caller()),
            suspended: found.suspended,
            expires_at: Some(valid_until),
            requests_per_minute: None,
        }))
    }

    async fn api_key(&self, presented: &str) -> Result<Option<ResolvedCredential>, Error> {
        let found = find_key(self.store.as_ref(), presented).await?;
        Ok(found.ok().map(|found| ResolvedCredential {
            caller: Arc::new(found.caller()),
            suspended: found.is_suspended,
            expires_at: found.valid_until,
            requests_per_minute: Some(found.key.requests_per_minute),
        }))
    }

    async fn look_up(&self, credential: &Credential) -> Result<Option<ResolvedCredential>, Error> {
        match credential {
            Credential::Bearer(presented) => {
                let header = format!("Bearer {}", presented.expose());
                match self.signer.token_in_bearer(&header) {
                    Some(token) => self.session(&token).await,
                    None => Ok(None),
                }
            }
            Credential::ApiKey(presented) => self.api_key(presented.expose()).await,
        }
    }
}

#[async_trait]
impl Authority for SessionAuthority {
    async fn resolve(&self, credential: &Credential) -> Result<ResolvedCredential, AuthorityError> {
        match self.look_up(credential).await {
            Ok(found) => found.ok_or(AuthorityError::Refused),
            Err(Error::Store(StoreError::Corrupt { table, .. })) => Err(
                AuthorityError::Unavailable(format!("a row of {table} cannot be decoded")),
            ),
            Err(error) => Err(AuthorityError::Unavailable(format!("{error:?}"))),
        }
    }
}
