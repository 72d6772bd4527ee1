//! A DNS resolver in memory, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::port::{DnsError, DnsResolver};

/// A DNS resolver that finds only the records that a test has set. Clones share the records.
#[derive(Clone, Debug, Default)]
pub struct MemoryDns(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    cnames: BTreeMap<String, String>,
    texts: BTreeMap<String, Vec<String>>,
    addresses: BTreeMap<String, BTreeSet<IpAddr>>,
    is_offline: bool,
    lookups: usize,
}

impl MemoryDns {
    /// Sets the CNAME record of a name.
    pub fn set_cname(&self, name: &str, target: &str) {
        self.state()
            .cnames
            .insert(name.to_owned(), target.to_owned());
    }

    /// Adds a TXT record to a name.
    pub fn add_txt(&self, name: &str, text: &str) {
        let mut state = self.state();
        let texts = state.texts.entry(name.to_owned()).or_default();
        texts.push(text.to_owned());
    }

    /// Sets the IP addresses of a name.
    pub fn set_addresses(&self, name: &str, addresses: impl IntoIterator<Item = IpAddr>) {
        let addresses = addresses.into_iter().collect();
        self.state().addresses.insert(name.to_owned(), addresses);
    }

    /// Returns a resolver with the same records. Later changes of one are not seen by the other.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.state().clone())))
    }

    /// Removes all records and resets the count of lookups.
    pub fn clear(&self) {
        *self.state() = State::default();
    }

    /// Makes all lookups fail from now on if `is_offline` is `true`, or succeed again if it is `false`.
    pub fn set_offline(&self, is_offline: bool) {
        self.state().is_offline = is_offline;
    }

    /// Returns the number of lookups so far.
    #[must_use]
    pub fn lookups(&self) -> usize {
        self.state().lookups
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self) -> Result<MutexGuard<'_, State>, DnsError> {
        let mut state = self.state();
        state.lookups += 1;
        if state.is_offline {
            return Err(DnsError::Unavailable("asked for".into()));
        }
        Ok(state)
    }
}

#[async_trait]
impl DnsResolver for MemoryDns {
    async fn cname(&self, name: &str) -> Result<Option<String>, DnsError> {
        Ok(self.ask()?.cnames.get(name).cloned())
    }

    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError> {
        Ok(self.ask()?.texts.get(name).cloned().unwrap_or_default())
    }

    async fn addresses(&self, name: &str) -> Result<BTreeSet<IpAddr>, DnsError> {
        Ok(self.ask()?.addresses.get(name).cloned().unwrap_or_default())
    }
}
