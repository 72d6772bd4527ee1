//! One call of the port: its requests, their retries and their common time limit.

use std::pin::Pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;
use crate::rate::Caller;

/// Maximum number of keys that a change uses if failures of the server are stored under them.
const MAX_GENERATIONS: u32 = 3;

/// Maximum number of pages that are read, in case a list never ends.
const MAX_PAGES: usize = 1_000;

/// Maximum number of objects on a page.
const PAGE_LIMIT: usize = 100;

/// A call of the port.
#[derive(Clone, Debug)]
pub(crate) struct Session<'a> {
    pub(crate) client: &'a Client,
    caller: Caller,
    latest: Instant,
}

/// The pending search for the effect of a change.
pub(crate) type Lookup<'f, T> =
    Pin<Box<dyn Future<Output = Result<Option<T>, CallError>> + Send + 'f>>;

/// Returns the search for a change that has no effect to look for, or whose repetition has no further effect.
pub(crate) fn no_lookup<'f, T: Send + 'f>() -> Lookup<'f, T> {
    Box::pin(std::future::ready(Ok(None)))
}

/// A page of a list.
#[derive(serde::Deserialize)]
struct Page {
    data: Vec<Value>,
    has_more: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(client: &'a Client, caller: Caller) -> Self {
        let options = client.options();
        let limit = match caller {
            Caller::Person => options.timeout,
            Caller::Job => options.job_timeout,
        };
        Self {
            client,
            caller,
            latest: Instant::now() + limit,
        }
    }

    /// Sends a call, and again with the same key if it may succeed then. Decodes the response.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, call: &Call) -> Result<T, CallError> {
        let value = self.send(call).await?;
        decode(call, value)
    }

    /// Sends a call that reads an object. Returns `None` if the object does not exist.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        call: &Call,
    ) -> Result<Option<T>, CallError> {
        match self.fetch(call).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a change. If a failure of the server is stored under its key, the change may have happened all the same, so
    /// `find` looks for its effect. Without one, the change is sent with a new key.
    pub(crate) async fn change<'f, T: DeserializeOwned>(
        &self,
        call: &Call,
        find: impl Fn() -> Lookup<'f, T> + Send,
    ) -> Result<T, CallError> {
        let mut failure = None;
        for generation in 1..=MAX_GENERATIONS {
            match self.fetch(&call.generation(generation)).await {
                Err(error @ CallError::Kept(_)) => {
                    failure = Some(error);
                    if let Some(found) = find().await? {
                        return Ok(found);
                    }
                }
                outcome => return outcome,
            }
        }
        Err(failure.unwrap_or(CallError::Conflict))
    }

    async fn send(&self, call: &Call) -> Result<Value, CallError> {
        let mut attempt = 0;
        // An earlier request without a response. It may have had its effect.
        let mut lost = None;
        loop {
            let outcome = self.client.send(call, self.caller, self.latest).await;
            let Err(error) = outcome else {
                return outcome;
            };
            let pause = self.pause(call, attempt);
            let has_time = Instant::now() + pause < self.latest;
            if !error.is_retryable() || attempt >= self.client.options().retries || !has_time {
                return Err(match lost {
                    Some(lost) if error.is_unsent() => lost,
                    _ => error,
                });
            }
            attempt += 1;
            tracing::debug!(endpoint = call.endpoint, attempt, %error, "retrying the request");
            if matches!(error, CallError::NoResponse { .. }) {
                lost = Some(error);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the pause before a retry. Different requests have different pauses, so that they do not meet again.
    fn pause(&self, call: &Call, attempt: u32) -> Duration {
        let delay = self.client.options().retry_delay * 2_u32.saturating_pow(attempt);
        let name = call.key.as_deref().unwrap_or(&call.path);
        let digest = Sha256::digest(format!("{name} {attempt}"));
        let part = u32::from(digest[0]);
        delay - delay * part / 512
    }

    /// Reads the pages of a list, newest first. Calls `each` for each element until it returns a value.
    pub(crate) async fn search<T, R>(
        &self,
        list: &Call,
        mut each: impl FnMut(T) -> Option<R>,
    ) -> Result<Option<R>, CallError>
    where
        T: DeserializeOwned,
    {
        let list = list.clone().param("limit", PAGE_LIMIT);
        let mut call = list.clone();
        for _ in 0..MAX_PAGES {
            let page: Page = self.fetch(&call).await?;
            let last = page.data.last().and_then(|own| own["id"].as_str());
            let next = last.map(|id| list.clone().param("starting_after", id));
            for element in page.data {
                if let Some(found) = each(decode(&list, element)?) {
                    return Ok(Some(found));
                }
            }
            match next {
                Some(next) if page.has_more => call = next,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Returns all elements of a list, newest first.
    pub(crate) async fn all<T: DeserializeOwned>(&self, list: &Call) -> Result<Vec<T>, CallError> {
        let mut all = Vec::new();
        let search = self.search::<T, ()>(list, |element| {
            all.push(element);
            None
        });
        search.await?;
        Ok(all)
    }
}

fn decode<T: DeserializeOwned>(call: &Call, value: Value) -> Result<T, CallError> {
    serde_json::from_value(value).map_err(|error| CallError::NoResponse {
        reads: call.is_read_only(),
        is_retryable: false,
        // The text of the error could repeat confidential values.
        cause: format!(
            "{}: the response differs: {:?}",
            call.endpoint,
            error.classify()
        )
        .into(),
    })
}
