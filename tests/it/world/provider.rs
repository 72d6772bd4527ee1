//! A provider on the other side of a bad network: it does what a test or rng says.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteUpload,
};

use super::rng::Rng;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It is refused for now.
    Down,
    Throttled,
    /// It is refused for good.
    Permanent,
    /// The step breaks down.
    Panic,
    /// No answer, ever.
    Hang,
    /// It is lost on the way.
    Lost,
    /// It arrives, and its answer is lost.
    NoAnswer,
    /// It arrives when nobody waits for it any more.
    Late,
    /// It arrives now and once more later.
    Twice,
}

/// What a random fate is picked from.
const FATES: [Fault; 12] = [
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
    /// Knows a request by its key and carries none out twice. Without, looking first is all that keeps a second request
    /// from being a second object.
    knows_keys: bool,
}

#[derive(Debug, Default)]
struct State {
    /// What becomes of the next requests, last first.
    script: Vec<Fault>,
    /// Objects by name, with the keys of the requests that made them.
    objects: BTreeMap<String, Vec<String>>,
    /// Requests that were sent and have not arrived: name and key.
    under_way: Vec<(String, String)>,
    mishaps: usize,
    calm: bool,
}

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

    /// What becomes of the next requests, last first; after that they work.
    pub(crate) fn script(&self, faults: impl Into<Vec<Fault>>) {
        self.state().script = faults.into();
    }

    /// From now on everything works; what is under way still arrives when it is delivered.
    pub(crate) fn calm_down(&self) {
        self.state().calm = true;
    }

    /// One request that was under way arrives.
    pub(crate) fn deliver_one(&self) {
        let waiting = self.state().under_way.len();
        if let Some(rng) = self.rng.as_ref().filter(|_| waiting > 0) {
            let at = rng.below(waiting);
            let (name, key) = self.state().under_way.swap_remove(at);
            self.apply(&name, &key);
        }
    }

    pub(crate) fn deliver_all(&self) {
        while !self.state().under_way.is_empty() {
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

    /// An object that was made some other time.
    pub(crate) fn put(&self, name: &str) {
        self.apply(name, name);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    /// How many requests or answers went astray.
    pub(crate) fn mishaps(&self) -> usize {
        self.state().mishaps
    }

    /// I8: no name has two objects.
    pub(crate) fn made_once(&self) -> Result<(), String> {
        let state = self.state();
        let twice = state.objects.iter().find(|(_, made)| made.len() > 1);
        twice.map_or(Ok(()), |(name, keys)| {
            Err(format!("I8 {name} was made by {keys:?}"))
        })
    }

    fn next_fault(&self) -> Fault {
        let mut state = self.state();
        let fault = match &self.rng {
            Some(rng) if !state.calm => FATES[rng.below(FATES.len())],
            _ => state.script.pop().unwrap_or(Fault::None),
        };
        state.mishaps += usize::from(fault != Fault::None);
        fault
    }

    async fn pause(&self, most: usize) {
        if let Some(rng) = &self.rng {
            rng.pause(most).await;
        }
    }
}

pub(crate) fn provisioned(name: &str) -> Provisioned {
    Provisioned {
        id: format!("id-{name}"),
        url: None,
        owner: Some("test".into()),
    }
}

fn no_answer() -> ProviderError {
    ProviderError::OutcomeUnknown("no answer".into())
}

#[async_trait]
impl Infrastructure for FakeProvider {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        self.pause(2).await;
        let known = self.state().objects.contains_key(&resource.name);
        Ok(known.then(|| provisioned(&resource.name)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        let (name, key) = (&request.resource.name, &request.effect_key);
        self.pause(4).await;
        let sent = (name.clone(), key.clone());
        match self.next_fault() {
            Fault::None => {}
            Fault::Down => return Err(ProviderError::Transient("down".into())),
            Fault::Permanent => return Err(ProviderError::Permanent("no".into())),
            Fault::Panic => panic!("a step breaks down"),
            Fault::Hang => return std::future::pending().await,
            Fault::Lost => return Err(no_answer()),
            Fault::Twice => self.state().under_way.push(sent),
            Fault::Throttled => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: 7,
                });
            }
            Fault::Late => {
                self.state().under_way.push(sent);
                return Err(no_answer());
            }
            Fault::NoAnswer => {
                self.apply(name, key);
                return Err(no_answer());
            }
        }
        self.apply(name, key);
        self.pause(4).await;
        Ok(provisioned(name))
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
        Err(ProviderError::Permanent("no sites here".into()))
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Ok(None)
    }
}
