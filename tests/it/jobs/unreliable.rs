//! What the simulation runs against: a provider whose requests arrive late, twice or without an answer, and a store that
//! lets others go first between any two units of work.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, Mode, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteUpload, Store, StoreError, UnitOfWork,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::world::provisioned;

/// The luck of one simulation: every draw of it comes from the seed.
#[derive(Clone, Debug)]
pub(super) struct Luck(Arc<Mutex<StdRng>>);

impl Luck {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A number below `below`.
    pub(super) fn draw(&self, below: usize) -> usize {
        self.0.lock().unwrap().random_range(0..below)
    }

    /// Lets others go first, zero to `most` times.
    pub(super) async fn pause(&self, most: usize) {
        for _ in 0..self.draw(most + 1) {
            Yield(false).await;
        }
    }
}

struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A store between whose units others go first.
#[derive(Debug)]
pub(super) struct PoliteStore {
    pub(super) inner: Arc<dyn Store>,
    pub(super) luck: Luck,
}

#[async_trait]
impl Store for PoliteStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        self.luck.pause(2).await;
        self.inner.begin(mode).await
    }
}

/// A provider on the other side of a bad network. It knows the keys of the requests it has carried out, and carries
/// none out twice.
#[derive(Debug)]
pub(super) struct RemoteProvider {
    state: Mutex<Remote>,
    luck: Luck,
    /// Forgets the keys: every request is a new one.
    pub(super) ignores_keys: bool,
}

#[derive(Debug, Default)]
struct Remote {
    calm: bool,
    /// Objects by name, by the key that made them.
    objects: BTreeMap<String, Vec<String>>,
    /// Requests that were sent and have not arrived: name and key.
    under_way: Vec<(String, String)>,
    /// How often an answer was lost or late, or a request came twice.
    mishaps: usize,
}

impl RemoteProvider {
    pub(super) fn new(luck: Luck, ignores_keys: bool) -> Self {
        Self {
            state: Mutex::default(),
            luck,
            ignores_keys,
        }
    }

    fn state(&self) -> MutexGuard<'_, Remote> {
        self.state.lock().unwrap()
    }

    /// From now on everything works; what is under way still arrives when it is delivered.
    pub(super) fn calm_down(&self) {
        self.state().calm = true;
    }

    /// One request that was under way arrives.
    pub(super) fn deliver_one(&self) {
        let waiting = self.state().under_way.len();
        if waiting > 0 {
            let at = self.luck.draw(waiting);
            let (name, key) = self.state().under_way.swap_remove(at);
            self.carry_out(&name, &key);
        }
    }

    pub(super) fn deliver_all(&self) {
        while !self.state().under_way.is_empty() {
            self.deliver_one();
        }
    }

    fn carry_out(&self, name: &str, key: &str) {
        let mut state = self.state();
        let made = state.objects.entry(name.to_owned()).or_default();
        if self.ignores_keys || !made.iter().any(|known| known == key) {
            made.push(key.to_owned());
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.state().objects.contains_key(name)
    }

    pub(super) fn mishaps(&self) -> usize {
        self.state().mishaps
    }

    /// I8: no name has two objects.
    pub(super) fn made_once(&self) -> Result<(), String> {
        let state = self.state();
        let twice = state.objects.iter().find(|(_, made)| made.len() > 1);
        twice.map_or(Ok(()), |(name, keys)| {
            Err(format!("I8 {name} was made by {keys:?}"))
        })
    }
}

#[async_trait]
impl Infrastructure for RemoteProvider {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        self.luck.pause(2).await;
        Ok(self
            .has(&resource.name)
            .then(|| provisioned(&resource.name)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        let (name, key) = (&request.resource.name, &request.effect_key);
        self.luck.pause(4).await;
        let fate = if self.state().calm {
            0
        } else {
            self.luck.draw(12)
        };
        let sent = (name.clone(), key.clone());
        if (6..12).contains(&fate) {
            self.state().mishaps += 1;
        }
        match fate {
            // The request is lost on the way.
            6 => return Err(ProviderError::OutcomeUnknown("no answer".into())),
            // It arrives when nobody waits for it any more.
            7 | 8 => {
                self.state().under_way.push(sent);
                return Err(ProviderError::OutcomeUnknown("no answer".into()));
            }
            // It arrives, and its answer is lost.
            9 => {
                self.carry_out(name, key);
                return Err(ProviderError::OutcomeUnknown("no answer".into()));
            }
            // It arrives now and once more later.
            10 => self.state().under_way.push(sent),
            11 => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: 7,
                });
            }
            _ => {}
        }
        self.carry_out(name, key);
        self.luck.pause(4).await;
        Ok(provisioned(name))
    }

    async fn remove(&self, _: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        Err(ProviderError::Permanent("nothing is removed here".into()))
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
