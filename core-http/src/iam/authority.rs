//! The gateway's question, answered in process.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::iam::CookieSigner;
use core_domain::kernel::{Error, StoreError};
use core_domain::port::{Store, transact};
use core_domain::use_case::iam::session::extend;

use super::IamConfig;
use super::identify::session_of;
use crate::gateway::{Authority, AuthorityError, Resolved};

/// Answers for session tokens and access tokens out of the store, and extends the sessions that are due. API keys are refused.
#[derive(Debug)]
pub struct SessionAuthority {
    store: Arc<dyn Store>,
    signer: CookieSigner,
}

impl SessionAuthority {
    /// An authority over this store, with IAM's own settings.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, config: &IamConfig) -> Self {
        Self {
            store,
            signer: CookieSigner::new(config.secret.clone()),
        }
    }

    async fn look_up(&self, token: &str) -> Result<Option<Resolved>, Error> {
        let Some(found) = session_of(self.store.as_ref(), token).await? else {
            return Ok(None);
        };
        let mut valid_until = found.valid_until;
        if found.extension_due {
            let extended =
                transact(self.store.as_ref(), |uow, _| Box::pin(extend(uow, token))).await?;
            let ends_with_session = valid_until == found.session.expires_at;
            if let Some(extended) = extended.filter(|_| ends_with_session) {
                valid_until = extended.expires_at;
            }
        }
        Ok(Some(Resolved {
            caller: Arc::new(found.caller()),
            suspended: found.suspended,
            expires_at: Some(valid_until),
        }))
    }
}

#[async_trait]
impl Authority for SessionAuthority {
    async fn resolve(&self, credential: &Credential) -> Result<Resolved, AuthorityError> {
        let Credential::Bearer(presented) = credential else {
            return Err(AuthorityError::Refused);
        };
        let header = format!("Bearer {}", presented.expose());
        let Some(token) = self.signer.token_in_bearer(&header) else {
            return Err(AuthorityError::Refused);
        };
        match self.look_up(&token).await {
            Ok(found) => found.ok_or(AuthorityError::Refused),
            Err(Error::Store(StoreError::Corrupt { table, .. })) => Err(
                AuthorityError::Unavailable(format!("a row of {table} cannot be decoded")),
            ),
            Err(error) => Err(AuthorityError::Unavailable(format!("{error:?}"))),
        }
    }
}
