//! Looks up the API key that a request presents.

use core_domain::iam::{ApiKeyRefusal, ApiKeySecret};
use core_domain::kernel::{ApiKeyId, Caller, Result};
use core_domain::port::{Mode, Store, transact_in};
use core_domain::use_case::iam::api_key::{self, ApiKeyDetails};

use crate::kernel::App;
use crate::kernel::admission::rate_limit::{ApiKeyUsage, RateLimits};

/// Rate limits for API keys on requests that do not come through a gateway.
#[derive(Debug)]
pub(crate) struct KeyLimits(RateLimits);

impl KeyLimits {
    pub(crate) fn of(app: &App) -> Self {
        Self(RateLimits::of(app, "iam"))
    }

    /// Counts one use of a key.
    pub(super) async fn count(&self, found: &ApiKeyDetails) -> ApiKeyUsage {
        let limit = found.key.requests_per_minute;
        self.0.use_api_key(&found.key.id, limit).await
    }

    /// Returns the caller that a key identifies; `None` if the key is not accepted.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` if the key was used more often than its limit allows.
    pub(crate) async fn caller_of(
        &self,
        store: &dyn Store,
        presented: &str,
    ) -> Result<Option<Caller>> {
        let Ok(found) = find_key(store, presented).await? else {
            return Ok(None);
        };
        match self.count(&found).await.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok(Some(found.caller())),
        }
    }
}

/// Returns the key with the presented secret, or the reason for which it is not accepted. A text that cannot be a
/// secret is not looked up. The use of the key is recorded at most once a minute.
pub(crate) async fn find_key(
    store: &dyn Store,
    presented: &str,
) -> Result<Result<ApiKeyDetails, ApiKeyRefusal>> {
    let Some(secret) = ApiKeySecret::parse(presented) else {
        return Ok(Err(ApiKeyRefusal::NotFound));
    };
    let mut uow = store.begin(Mode::Auto).await?;
    let found = api_key::details_by_secret(uow.as_mut(), &secret).await;
    uow.rollback().await;
    let found = found?;
    if let Ok(found) = &found
        && found.use_is_due
    {
        record_use(store, &found.key.id).await;
    }
    Ok(found)
}

/// Records the use of a key. A failure is only logged, so that it does not fail the request.
async fn record_use(store: &dyn Store, id: &ApiKeyId) {
    let noted = transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(api_key::record_use(uow, id))
    });
    if let Err(error) = noted.await {
        tracing::warn!(
            key = id.as_str(),
            ?error,
            "failed to record the use of an API key"
        );
    }
}
