//! Lookup of the zone of a hostname.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use tokio::time::Instant;

use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;
use crate::options::is_id;

/// Time for which the zone of a name, or its absence, is cached.
const CACHE_TTL: Duration = Duration::from_mins(1);

/// Maximum number of cached names.
const CACHE_CAPACITY: usize = 10_000;

/// The cache of the account's zones.
#[derive(Debug, Default)]
pub(crate) struct Zones(Mutex<HashMap<String, CacheEntry>>);

#[derive(Debug)]
struct CacheEntry {
    id: Option<String>,
    until: Instant,
}

#[derive(Deserialize)]
struct Zone {
    id: String,
    name: String,
    status: Option<String>,
}

impl Zones {
    fn cache(&self) -> MutexGuard<'_, HashMap<String, CacheEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the zone of a hostname: the zone with the longest matching name.
    pub(crate) async fn of_hostname(
        &self,
        client: &Client,
        hostname: &str,
    ) -> Result<Option<String>, CallError> {
        let mut name = hostname.trim_start_matches("*.");
        while name.contains('.') {
            if let Some(zone) = self.by_name_or_id(client, name).await? {
                return Ok(Some(zone));
            }
            name = name.split_once('.').map_or("", |(_, rest)| rest);
        }
        Ok(None)
    }

    /// Returns the id of the zone with this name or id.
    pub(crate) async fn by_name_or_id(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<Option<String>, CallError> {
        if is_id(name) {
            return Ok(Some(name.to_owned()));
        }
        let now = Instant::now();
        if let Some(known) = self.cache().get(name)
            && known.until > now
        {
            return Ok(known.id.clone());
        }
        let id = fetch_zone(client, name).await?;
        let mut cache = self.cache();
        if cache.len() >= CACHE_CAPACITY {
            cache.clear();
        }
        let until = now + CACHE_TTL;
        let known = CacheEntry {
            id: id.clone(),
            until,
        };
        cache.insert(name.to_owned(), known);
        Ok(id)
    }
}

/// Fetches the id of a zone by name. Returns `None` unless the zone is active, because other zones do not serve their
/// names.
async fn fetch_zone(client: &Client, name: &str) -> Result<Option<String>, CallError> {
    let call = Call::new(Method::GET, "zone.find", &["zones"]);
    let call = call
        .query("name", name)
        .query("account.id", client.account_id());
    let zones = client.fetch::<Vec<Zone>>(call).await?.result;
    let serves = |zone: &Zone| zone.name == name && zone.status.as_deref() == Some("active");
    Ok(zones.into_iter().find(serves).map(|zone| zone.id))
}
