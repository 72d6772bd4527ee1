//! A provider with an unreliable network. A test or a random number generator decides about each request.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use core_domain::cli::SiteFile;
use core_domain::port::{
    Infrastructure, ObjectRequest, OwnedObjects, ProviderError, ProviderObject, ResourceRef, Route,
    RouteHostname, ServeHostname, ServedHostname, SetSecrets, SiteDeployment, SiteRedeploy,
    SiteStorage, SiteUpload,
};
use core_domain::registry::ResourceType;

use super::rng::Rng;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The request is refused temporarily.
    Down,
    Throttled,
    /// The request is refused permanently.
    Permanent,
    /// The step panics.
    Panic,
    /// There is never a reply.
    Hang,
    /// The request is lost.
    Lost,
    /// The request arrives, and its reply is lost.
    NoAnswer,
    /// The request arrives after the caller has stopped waiting.
    Late,
    /// The request arrives now, and once more later.
    Twice,
}

/// The faults from which a random one is picked.
const RANDOM_FAULTS: [Fault; 12] = [
    Fault::None,
    Fault::None,
    Fault::None,
    Fault::None,
    Fault::None,
    Fault::None,
    Fault::Lost,
    Fault::Late,
    Fault::Late,
    Fault::NoAnswer,
    Fault::Twice,
    Fault::Throttled,
];

#[derive(Debug, Default)]
pub(crate) struct FakeProvider {
    state: Mutex<State>,
    rng: Option<Rng>,
    /// True if the provider recognises a repeated request by its key. Otherwise only the observation before a request
    /// prevents a second object.
    knows_keys: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The faults of the next requests, last one first.
    script: Vec<Fault>,
    /// Objects by name, with the keys of the requests that created them.
    objects: BTreeMap<String, Vec<String>>,
    /// Requests that were sent and have not arrived yet.
    in_transit: Vec<RequestInTransit>,
    mishaps: usize,
    calm: bool,
    /// The number of seconds that have passed, independent of the clock.
    elapsed: u64,
}

#[derive(Debug)]
struct RequestInTransit {
    name: String,
    key: String,
    sent_at: u64,
}

/// Maximum time in seconds until a request arrives: no request takes longer than a step.
const MAX_TRANSIT_SECONDS: u64 = 60;

impl FakeProvider {
    pub(crate) fn random(rng: Rng, knows_keys: bool) -> Self {
        Self {
            rng: Some(rng),
            knows_keys,
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sets the faults of the next requests, last one first. Later requests succeed.
    pub(crate) fn script(&self, faults: impl Into<Vec<Fault>>) {
        self.state().script = faults.into();
    }

    /// Stops injecting faults. Requests in transit still arrive when they are delivered.
    pub(crate) fn calm_down(&self) {
        self.state().calm = true;
    }

    /// Delivers one request in transit.
    pub(crate) fn deliver_one(&self) {
        let waiting = self.state().in_transit.len();
        if let Some(rng) = self.rng.as_ref().filter(|_| waiting > 0) {
            let at = rng.below(waiting);
            let arrived = self.state().in_transit.swap_remove(at);
            self.apply(&arrived.name, &arrived.key);
        }
    }

    /// Lets time pass. Requests that have been in transit for the maximum time arrive.
    pub(crate) fn pass(&self, seconds: u64) {
        let arrived = {
            let mut state = self.state();
            state.elapsed += seconds;
            let elapsed = state.elapsed;
            let is_due =
                |sent: &mut RequestInTransit| sent.sent_at + MAX_TRANSIT_SECONDS <= elapsed;
            state.in_transit.extract_if(.., is_due).collect::<Vec<_>>()
        };
        for sent in arrived {
            self.apply(&sent.name, &sent.key);
        }
    }

    /// The number of seconds that have passed.
    pub(crate) fn elapsed_seconds(&self) -> u64 {
        self.state().elapsed
    }

    fn send(&self, name: &str, key: &str) {
        let mut state = self.state();
        let sent_at = state.elapsed;
        state.in_transit.push(RequestInTransit {
            name: name.to_owned(),
            key: key.to_owned(),
            sent_at,
        });
    }

    pub(crate) fn deliver_all(&self) {
        while !self.state().in_transit.is_empty() {
            self.deliver_one();
        }
    }

    fn apply(&self, name: &str, key: &str) {
        let mut state = self.state();
        let made = state.objects.entry(name.to_owned()).or_default();
        if !self.knows_keys || !made.iter().any(|known| known == key) {
            made.push(key.to_owned());
        }
    }

    /// Creates an object without a request.
    pub(crate) fn put(&self, name: &str) {
        self.apply(name, name);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// The number of faults so far.
    pub(crate) fn fault_count(&self) -> usize {
        self.state().mishaps
    }

    /// I8: checks that no name has two objects.
    pub(crate) fn check_unique(&self) -> Result<(), String> {
        let state = self.state();
        let twice = state.objects.iter().find(|(_, made)| made.len() > 1);
        twice.map_or(Ok(()), |(name, keys)| {
            Err(format!("I8 {name} was created by {keys:?}"))
        })
    }

    fn next_fault(&self) -> Fault {
        let mut state = self.state();
        let fault = match &self.rng {
            Some(rng) if !state.calm => RANDOM_FAULTS[rng.below(RANDOM_FAULTS.len())],
            _ => state.script.pop().unwrap_or(Fault::None),
        };
        state.mishaps += usize::from(fault != Fault::None);
        fault
    }

    /// Returns an object. Its URL may be known only later.
    fn object(&self, name: &str) -> ProviderObject {
        let calm = self.state().calm;
        let known = |rng: &Rng| calm || rng.below(3) > 0;
        let url = self.rng.as_ref().is_none_or(known);
        ProviderObject {
            url: url.then(|| format!("https://{name}.test")),
            ..object_without_url(name)
        }
    }

    async fn pause(&self, most: usize) {
        if let Some(rng) = &self.rng {
            rng.pause(most).await;
        }
    }
}

pub(crate) fn object_without_url(name: &str) -> ProviderObject {
    ProviderObject {
        id: format!("id-{name}"),
        url: None,
        owner: Some("test".into()),
    }
}

fn no_answer() -> ProviderError {
    ProviderError::OutcomeUnknown("no answer".into())
}

/// Returns the error of a method that no job of these tests calls.
fn unused_method_error() -> ProviderError {
    ProviderError::Permanent("the fake provider has only objects".into())
}

#[async_trait]
impl Infrastructure for FakeProvider {
    async fn observe(
        &self,
        resource: &ResourceRef,
    ) -> Result<Option<ProviderObject>, ProviderError> {
        self.pause(2).await;
        let known = self.state().objects.contains_key(&resource.name);
        Ok(known.then(|| self.object(&resource.name)))
    }

    async fn create(&self, request: &ObjectRequest) -> Result<ProviderObject, ProviderError> {
        let (name, key) = (&request.resource.name, &request.effect_key);
        self.pause(4).await;
        match self.next_fault() {
            Fault::None => {}
            Fault::Down => return Err(ProviderError::Transient("down".into())),
            Fault::Permanent => return Err(ProviderError::Permanent("no".into())),
            Fault::Panic => panic!("a step panics"),
            Fault::Hang => return std::future::pending().await,
            Fault::Lost => return Err(no_answer()),
            Fault::Twice => self.send(name, key),
            Fault::Throttled => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: 7,
                });
            }
            Fault::Late => {
                self.send(name, key);
                return Err(no_answer());
            }
            Fault::NoAnswer => {
                self.apply(name, key);
                return Err(no_answer());
            }
        }
        self.apply(name, key);
        self.pause(4).await;
        Ok(self.object(name))
    }

    async fn remove(&self, resource: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        let fault = self.next_fault();
        match fault {
            Fault::Down => return Err(ProviderError::Transient("down".into())),
            Fault::Permanent => return Err(ProviderError::Permanent("no".into())),
            Fault::Lost => return Err(no_answer()),
            Fault::Throttled => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: 7,
                });
            }
            _ => self.state().objects.remove(&resource.name),
        };
        match fault {
            Fault::NoAnswer | Fault::Late => Err(no_answer()),
            _ => Ok(()),
        }
    }

    async fn deploy_site(&self, _: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        Err(unused_method_error())
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Ok(None)
    }

    async fn site_storage(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: &[SiteFile],
    ) -> Result<SiteStorage, ProviderError> {
        Err(unused_method_error())
    }

    async fn clean_up(&self) -> Result<u64, ProviderError> {
        Err(unused_method_error())
    }

    async fn list_owned(
        &self,
        _: &str,
        _: ResourceType,
        _: Option<String>,
    ) -> Result<OwnedObjects, ProviderError> {
        Err(unused_method_error())
    }

    async fn redeploy_site(&self, _: &SiteRedeploy) -> Result<SiteDeployment, ProviderError> {
        Err(unused_method_error())
    }

    async fn stored_contents(
        &self,
        _: &str,
        _: &str,
        _: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        Err(unused_method_error())
    }

    async fn set_secrets(&self, _: &SetSecrets) -> Result<(), ProviderError> {
        Err(unused_method_error())
    }

    async fn secret_names(&self, _: &ResourceRef) -> Result<Vec<String>, ProviderError> {
        Err(unused_method_error())
    }

    async fn get_route(&self, _: &str) -> Result<Option<Route>, ProviderError> {
        Err(unused_method_error())
    }

    async fn route_hostname(&self, _: &RouteHostname) -> Result<Route, ProviderError> {
        Err(unused_method_error())
    }

    async fn remove_route(&self, _: &str, _: &ResourceRef) -> Result<(), ProviderError> {
        Err(unused_method_error())
    }

    async fn get_served_hostname(
        &self,
        _: &str,
        _: &str,
        _: &ResourceRef,
    ) -> Result<Option<ServedHostname>, ProviderError> {
        Err(unused_method_error())
    }

    async fn serve_hostname(&self, _: &ServeHostname) -> Result<ServedHostname, ProviderError> {
        Err(unused_method_error())
    }

    async fn stop_serving(&self, _: &str, _: &str, _: &ResourceRef) -> Result<(), ProviderError> {
        Err(unused_method_error())
    }

    fn refuses_suspended(&self) -> bool {
        false
    }
}
