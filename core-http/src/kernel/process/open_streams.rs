//! The number of open event streams by caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core_domain::kernel::{Caller, Code, Error, OrganizationId, Result, UserId};
use serde_json::json;

/// The `Retry-After` of a refused stream, in seconds. It is an estimate, because a stream lasts as long as its reader
/// likes.
const RETRY_AFTER: u64 = 5;

/// The owner of event streams that count together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StreamOwner {
    /// A person, with all their sessions and API keys.
    Person(UserId),
    /// An organization, with all its API keys.
    Organization(OrganizationId),
    /// A service, by its name.
    Service(String),
    /// All callers without an identity.
    Unnamed,
}

impl StreamOwner {
    fn of(caller: &Caller) -> Self {
        if let Some(person) = caller.user_id() {
            return Self::Person(person.clone());
        }
        match (caller, caller.membership()) {
            (Caller::Service { name }, _) => Self::Service(name.clone()),
            (_, Some(membership)) => Self::Organization(membership.organization_id.clone()),
            _ => Self::Unnamed,
        }
    }
}

/// Counts the open event streams by caller. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct OpenStreams(Arc<Mutex<HashMap<StreamOwner, usize>>>);

impl OpenStreams {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamOwner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a stream of the caller until the permit is dropped.
    ///
    /// # Errors
    /// `RATE_LIMITED` if the caller has reached the limit.
    pub(crate) fn acquire(&self, caller: &Caller, limit: usize) -> Result<StreamPermit> {
        let owner = StreamOwner::of(caller);
        let mut open = self.lock();
        let count = open.get(&owner).copied().unwrap_or_default();
        if count >= limit {
            return Err(Error::Refused {
                code: Code::RateLimited,
                message: format!("You have {count} event streams open; close one of them first."),
                details: json!({ "limit": limit, "retryAfter": RETRY_AFTER }),
            });
        }
        open.insert(owner.clone(), count + 1);
        Ok(StreamPermit {
            streams: self.clone(),
            owner,
        })
    }
}

/// Counts one stream of its owner until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: OpenStreams,
    owner: StreamOwner,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        match open.get_mut(&self.owner) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&self.owner);
            }
        }
    }
}
