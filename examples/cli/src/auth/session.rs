//! The credential of a signed-in person, which is refreshed before it expires.

use std::sync::Arc;

use async_trait::async_trait;
use core_client::{Client, Clock, Credential, Error, Result, TokenSource};
use tokio::task::spawn_blocking;

use super::token_store::{StoredTokens, TokenLock, TokenStore};
use crate::failure::{Failure, FailureKind};

/// The source of a profile's credential.
#[derive(Debug)]
pub(crate) struct SessionSource {
    store: TokenStore,
    clock: Arc<dyn Clock>,
    api_url: String,
}

impl SessionSource {
    pub(crate) fn new(store: TokenStore, clock: Arc<dyn Clock>, api_url: String) -> Self {
        Self {
            store,
            clock,
            api_url,
        }
    }

    /// Returns the tokens for the installation.
    fn read(&self) -> Result<StoredTokens> {
        let tokens = self.store.read().map_err(refuse)?;
        let fitting = tokens.filter(|tokens| tokens.api_url == self.api_url);
        fitting.ok_or_else(|| refuse(Failure::signed_out(&self.api_url)))
    }

    /// Refreshes the tokens, unless another process has done so since they were read.
    async fn refresh(&self, old: &StoredTokens) -> Result<StoredTokens> {
        let _lock = self.lock().await?;
        let stored = self.read()?;
        if stored.access_token != old.access_token {
            return Ok(stored);
        }
        let client = Client::builder(&stored.api_url)
            .iam_url(&stored.iam_url)
            .build()?;
        match client.refresh_tokens(&stored.refresh_token).await {
            Ok(pair) => {
                let new =
                    StoredTokens::new(&stored.api_url, &stored.iam_url, &pair, self.clock.now());
                self.store.write(&new).map_err(refuse)?;
                Ok(new)
            }
            Err(error) if error.is_code("invalid_grant") => {
                self.store.delete().map_err(refuse)?;
                Err(refuse(
                    Failure::new(FailureKind::Auth, "Your session has ended.")
                        .hint("Run `core-cli login` to sign in again."),
                ))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the lock on a thread of its own.
    async fn lock(&self) -> Result<TokenLock> {
        let store = self.store.clone();
        let lock = spawn_blocking(move || store.lock()).await;
        let lock = lock.map_err(|error| Failure::other(error.to_string()));
        lock.and_then(|lock| lock).map_err(refuse)
    }
}

fn refuse(failure: Failure) -> Error {
    Error::Credential(Box::new(failure))
}

#[async_trait]
impl TokenSource for SessionSource {
    async fn credential(&self) -> Result<Option<Credential>> {
        let mut tokens = self.read()?;
        if !tokens.is_fresh(self.clock.now()) {
            tokens = self.refresh(&tokens).await?;
        }
        Ok(Some(Credential::Bearer(tokens.access_token)))
    }

    async fn replace(&self, refused: &Credential) -> Result<Option<Credential>> {
        let mut tokens = self.read()?;
        if Credential::Bearer(tokens.access_token.clone()) == *refused {
            tokens = self.refresh(&tokens).await?;
        }
        Ok(Some(Credential::Bearer(tokens.access_token)))
    }
}
