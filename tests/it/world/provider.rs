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
    /// Requests that were sent and have not arrived.
    under_way: Vec<UnderWay>,
    mishaps: usize,
    calm: bool,
    /// How many seconds have passed, whatever a clock says.
    elapsed: u64,
}

#[derive(Debug)]
struct UnderWay {
    name: String,
    key: String,
    sent_at: u64,
}

/// What takes longer has been lost: no request is under way for longer than a step may take.
const LONGEST_SECONDS: u64 = 60;

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
            let arrived = self.state().under_way.swap_remove(at);
            self.apply(&arrived.name, &arrived.key);
        }
    }

    /// Time passes: what has been under way for the longest time a request can be arrives.
    pub(crate) fn pass(&self, seconds: u64) {
        let arrived = {
            let mut state = self.state();
            state.elapsed += seconds;
            let elapsed = state.elapsed;
            let is_due = |sent: &mut UnderWay| sent.sent_at + LONGEST_SECONDS <= elapsed;
            state.under_way.extract_if(.., is_due).collect::<Vec<_>>()
        };
        for sent in arrived {
            self.apply(&sent.name, &sent.key);
        }
    }

    /// How many seconds have passed.
    pub(crate) fn elapsed(&self) -> u64 {
        self.state().elapsed
    }

    fn send(&self, name: &str, key: &str) {
        let mut state = self.state();
        let sent_at = state.elapsed;
        state.under_way.push(UnderWay {
            name: name.to_owned(),
            key: key.to_owned(),
            sent_at,
        });
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

    /// An object; where it can be found is known after a while.
    fn provisioned(&self, name: &str) -> Provisioned {
        let calm = self.state().calm;
        let known = |rng: &Rng| calm || rng.below(3) > 0;
        let url = self.rng.as_ref().is_none_or(known);
        Provisioned {
            url: url.then(|| format!("https://{name}.test")),
            ..provisioned(name)
        }
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
        Ok(known.then(|| self.provisioned(&resource.name)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        let (name, key) = (&request.resource.name, &request.effect_key);
        self.pause(4).await;
        match self.next_fault() {
            Fault::None => {}
            Fault::Down => return Err(ProviderError::Transient("down".into())),
            Fault::Permanent => return Err(ProviderError::Permanent("no".into())),
            Fault::Panic => panic!("a step breaks down"),
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
        Ok(self.provisioned(name))
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
