//! The pool of running workers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{Cause, PlatformSuspensions};
use futures_util::future::join_all;
use http::{Extensions, HeaderMap, Request, Response};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::WorkerdOptions;
use super::bindings::Bindings;
use super::capnp::Network;
use super::forward::WorkerBody;
#[cfg(unix)]
use super::host_process::WorkerHost;
use super::launch::{self, Launch};
use super::peers::Peers;
use super::process::{Process, SendError};
use super::program::Workerd;
use super::refusal::Refusal;
use crate::config::{LocalConfig, SiteAddress};
use crate::error::{LocalError, Result};
use crate::host::SiteBody;
use crate::logs::ConsoleSink;
use crate::stores::Stores;
use crate::suspension_gate::SuspensionGate;

/// Maximum number of concurrent requests to one worker. It also stops workers that call each other in a circle.
const MAX_CONCURRENT_REQUESTS: usize = 256;
/// Maximum pause before a worker that has ended is started again.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
/// If a worker ran at least this long, its end does not count as a repeated failure.
const STEADY: Duration = Duration::from_secs(60);
/// Maximum time to wait for the processes when all are stopped.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The workers of one provider. Cheap to clone; the processes end when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Workers(Arc<Inner>);

/// A weak reference to the workers, which does not keep their processes running.
#[derive(Clone, Debug)]
struct WeakWorkers(Weak<Inner>);

#[derive(Debug)]
struct Inner {
    stores: Stores,
    /// The same stores with dedicated threads, for the bindings.
    binding_stores: Stores,
    config: Arc<LocalConfig>,
    /// Receives what the workers write to their consoles.
    console: Arc<dyn ConsoleSink>,
    slots: Mutex<Slots>,
    /// The worker host process; `None` if this process hosts the workers.
    #[cfg(unix)]
    host: Option<WorkerHost>,
}

#[derive(Debug, Default)]
struct Slots {
    by_name: HashMap<String, Slot>,
    /// Whether the task that stops idle workers is running.
    has_idle_task: bool,
    is_closed: bool,
}

#[derive(Debug, Default)]
struct Slot {
    process: Option<Arc<Process>>,
    failures: Option<Failures>,
}

/// The consecutive failures of a worker: its process ended unexpectedly.
#[derive(Debug)]
struct Failures {
    identity: String,
    count: u32,
    /// The earliest time of the next start.
    until: Instant,
    refusal: Refusal,
}

impl Workers {
    /// Creates the pool. No worker runs yet.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the threads of the bindings cannot be prepared.
    pub(crate) fn new(
        stores: Stores,
        config: Arc<LocalConfig>,
        console: Arc<dyn ConsoleSink>,
    ) -> Result<Self> {
        Ok(Self(Arc::new(Inner {
            binding_stores: stores.on_separate_threads()?,
            stores,
            #[cfg(unix)]
            host: host_of(&config, &console),
            config,
            console,
            slots: Mutex::default(),
        })))
    }

    /// Returns the stores that contain the workers and sites.
    pub(crate) fn stores(&self) -> &Stores {
        &self.0.stores
    }

    /// Returns the addresses of sites and workers.
    pub(crate) fn addresses(&self) -> &SiteAddress {
        &self.0.config.sites
    }

    /// Returns the address of the client of a request, if addresses are recorded.
    pub(crate) fn client_address(
        &self,
        extensions: &Extensions,
        headers: &HeaderMap,
    ) -> Option<IpAddr> {
        let config = &self.0.config;
        let address = config.client_address.as_ref();
        let address = address.filter(|_| config.logs.client_addresses)?;
        address.of(extensions, headers)
    }

    /// Returns a gate that refuses visitors of suspended platforms.
    pub(crate) fn suspension_gate(&self) -> SuspensionGate {
        SuspensionGate::new(self.0.config.suspensions.clone())
    }

    /// Sends a request to a worker. Starts the worker if no process runs its current version.
    pub(crate) async fn send(
        &self,
        name: &str,
        request: Request<WorkerBody>,
    ) -> Result<Response<SiteBody>, Refusal> {
        #[cfg(unix)]
        if let Some(host) = &self.0.host {
            return host.send(name, request).await;
        }
        let process = self.process_of(name).await?;
        let timeout = self.options().answer_timeout;
        match process.send(request, timeout).await {
            Ok(answer) => Ok(answer),
            Err(SendError::Ended(reason)) => {
                Err(self.slots().await.record_end(name, &process, reason))
            }
            Err(SendError::Silent) => {
                // The process may hang, so the next request starts another one.
                self.slots().await.dismiss(name, &process);
                Err(Refusal::Silent)
            }
            Err(SendError::Broken(cause)) => {
                let cause = Cause::new(LocalError::Io(std::io::Error::other(cause)));
                tracing::warn!(%cause, worker = name, "the connection to a worker broke");
                Err(Refusal::Ended("the connection broke".to_owned()))
            }
        }
    }

    /// Stops a worker that was deleted.
    pub(crate) async fn forget(&self, name: &str) {
        #[cfg(unix)]
        if let Some(host) = &self.0.host {
            return host.stop_worker(name).await;
        }
        self.slots().await.by_name.remove(name);
    }

    /// Stops all workers. No worker is started any more.
    pub(crate) async fn stop(&self) {
        #[cfg(unix)]
        if let Some(host) = &self.0.host {
            return host.stop().await;
        }
        let mut slots = self.slots().await;
        slots.is_closed = true;
        let stopped = std::mem::take(&mut slots.by_name).into_values();
        drop(slots);
        let stopped: Vec<_> = stopped.filter_map(|slot| slot.process).collect();
        let ends: Vec<_> = stopped.iter().map(|process| process.watch_end()).collect();
        drop(stopped);
        let ended = ends.into_iter().map(|mut end| async move {
            // The channel closes only after the process has ended.
            let _ = end.wait_for(Option::is_some).await;
        });
        // A worker that is still responding ends with this process.
        let _ = tokio::time::timeout(STOP_TIME, join_all(ended)).await;
    }

    fn downgrade(&self) -> WeakWorkers {
        WeakWorkers(Arc::downgrade(&self.0))
    }

    fn options(&self) -> WorkerdOptions {
        self.0.config.workers
    }

    async fn slots(&self) -> tokio::sync::MutexGuard<'_, Slots> {
        self.0.slots.lock().await
    }

    async fn process_of(&self, name: &str) -> Result<Arc<Process>, Refusal> {
        let Some(workerd) = &self.0.config.workerd else {
            return Err(Refusal::NotInstalled);
        };
        let owned = name.to_owned();
        let identity = self
            .0
            .stores
            .run(move |data| launch::identity(data, &owned));
        let Some(identity) = identity.await.map_err(|error| start_failed(name, error))? else {
            self.forget(name).await;
            return Err(Refusal::Missing);
        };
        let mut slots = self.slots().await;
        if let Some(process) = slots.running(name, &identity)? {
            return Ok(process);
        }
        slots.evict_idle(self.options().processes)?;
        let process = self.start(workerd, name).await?;
        slots.insert(name, &process);
        if !slots.has_idle_task {
            slots.has_idle_task = true;
            tokio::spawn(stop_idle(self.downgrade(), self.options().idle));
        }
        Ok(process)
    }

    async fn start(&self, workerd: &Workerd, name: &str) -> Result<Arc<Process>, Refusal> {
        let (workerd, owned) = (workerd.clone(), name.to_owned());
        let config = Arc::clone(&self.0.config);
        let (workers, stores) = (self.downgrade(), self.0.binding_stores.clone());
        let console = Arc::clone(&self.0.console);
        let started = self.0.stores.run(move |data| {
            let Some(launch) = launch::read(data, &owned)? else {
                return Ok(None);
            };
            let bindings = bindings_of(&launch, stores, workers, config.suspensions.clone());
            let network = Network {
                private: config.workers.private_network,
                reachable: &config.reachable,
            };
            Process::start(&workerd, &launch, bindings, data, network, console).map(Some)
        });
        match started.await {
            Ok(Some(process)) => Ok(Arc::new(process)),
            Ok(None) => Err(Refusal::Missing),
            Err(error) => Err(start_failed(name, error)),
        }
    }
}

/// Returns the worker host process, if it is configured.
#[cfg(unix)]
fn host_of(config: &Arc<LocalConfig>, console: &Arc<dyn ConsoleSink>) -> Option<WorkerHost> {
    let (command, workerd) = (config.worker_host.clone()?, config.workerd.clone()?);
    let console = Arc::clone(console);
    Some(WorkerHost::new(
        command,
        Arc::clone(config),
        workerd,
        console,
    ))
}

fn bindings_of(
    launch: &Launch,
    stores: Stores,
    workers: WeakWorkers,
    suspensions: Option<Arc<dyn PlatformSuspensions>>,
) -> Bindings {
    let table = launch.script.bindings.clone();
    let gate = SuspensionGate::new(suspensions);
    Bindings::new(launch.owner.clone(), table, stores, Arc::new(workers), gate)
}

fn start_failed(worker: &str, error: LocalError) -> Refusal {
    let cause = Cause::new(error);
    tracing::error!(%cause, worker, "failed to start a worker");
    Refusal::Failed
}

#[async_trait]
impl Peers for WeakWorkers {
    async fn send(
        &self,
        name: &str,
        request: Request<WorkerBody>,
    ) -> Result<Response<SiteBody>, Refusal> {
        let workers = self.upgrade().ok_or(Refusal::Busy)?;
        workers.send(name, request).await
    }
}

impl WeakWorkers {
    /// Returns the workers; `None` if they were dropped.
    fn upgrade(&self) -> Option<Workers> {
        self.0.upgrade().map(Workers)
    }
}

/// Stops idle workers periodically, until the pool is dropped.
async fn stop_idle(workers: WeakWorkers, idle: Duration) {
    loop {
        tokio::time::sleep((idle / 2).max(Duration::from_millis(10))).await;
        let Some(workers) = workers.upgrade() else {
            return;
        };
        let mut slots = workers.slots().await;
        for slot in slots.by_name.values_mut() {
            let is_idle = |process: &Arc<Process>| {
                is_unused(process) && process.last_used().elapsed() >= idle
            };
            if slot.process.as_ref().is_some_and(is_idle) {
                slot.process = None;
            }
        }
    }
}

/// Returns whether no request waits for a response or reads one.
fn is_unused(process: &Arc<Process>) -> bool {
    Arc::strong_count(process) == 1
}

impl Slots {
    /// Returns the process of a worker if it runs the version with this identity.
    fn running(&mut self, name: &str, identity: &str) -> Result<Option<Arc<Process>>, Refusal> {
        if self.is_closed {
            return Err(Refusal::Busy);
        }
        let slot = self.by_name.entry(name.to_owned()).or_default();
        if let Some(process) = slot.process.take() {
            if let Some(reason) = process.end_reason() {
                slot.fail(&process, reason);
            } else if process.identity == identity {
                slot.process = Some(Arc::clone(&process));
                if Arc::strong_count(&process) > MAX_CONCURRENT_REQUESTS {
                    return Err(Refusal::Busy);
                }
                process.record_use();
                return Ok(Some(process));
            }
        }
        match &slot.failures {
            Some(known) if known.identity == identity && Instant::now() < known.until => {
                Err(known.refusal.clone())
            }
            _ => Ok(None),
        }
    }

    /// Stops the longest unused worker if the maximum number of workers is running. Returns an error if all are in use.
    fn evict_idle(&mut self, most: usize) -> Result<(), Refusal> {
        let running = |slot: &Slot| slot.process.is_some();
        if self.by_name.values().filter(|slot| running(slot)).count() < most {
            return Ok(());
        }
        let unused = self.by_name.values_mut().filter_map(|slot| {
            let last_used = slot
                .process
                .as_ref()
                .filter(|process| is_unused(process))?
                .last_used();
            Some((last_used, slot))
        });
        let (_, longest) = unused
            .min_by_key(|(last_used, _)| *last_used)
            .ok_or(Refusal::Busy)?;
        longest.process = None;
        Ok(())
    }

    fn insert(&mut self, name: &str, process: &Arc<Process>) {
        let slot = self.by_name.entry(name.to_owned()).or_default();
        slot.process = Some(Arc::clone(process));
    }

    /// Records that a process has ended.
    fn record_end(&mut self, name: &str, process: &Arc<Process>, reason: String) -> Refusal {
        let refusal = refusal_of(process, reason.clone());
        if let Some(slot) = self.slot_of(name, process) {
            slot.process = None;
            slot.fail(process, reason);
        }
        refusal
    }

    fn dismiss(&mut self, name: &str, process: &Arc<Process>) {
        if let Some(slot) = self.slot_of(name, process) {
            slot.process = None;
        }
    }

    /// Returns the slot of a worker if this is its current process.
    fn slot_of(&mut self, name: &str, process: &Arc<Process>) -> Option<&mut Slot> {
        let slot = self.by_name.get_mut(name)?;
        let is_current = slot
            .process
            .as_ref()
            .is_some_and(|p| Arc::ptr_eq(p, process));
        is_current.then_some(slot)
    }
}

impl Slot {
    fn fail(&mut self, process: &Process, reason: String) {
        let before = self.failures.take();
        let before = before.filter(|known| {
            known.identity == process.identity && process.started_at.elapsed() < STEADY
        });
        let count = before.map_or(1, |known| known.count + 1);
        self.failures = Some(Failures {
            identity: process.identity.clone(),
            count,
            until: Instant::now() + pause(count, process.has_answered()),
            refusal: refusal_of(process, reason),
        });
    }
}

/// Returns the pause before the next start after this number of failures. If the worker had responded before, the first
/// restart is immediate.
fn pause(count: u32, has_answered: bool) -> Duration {
    if has_answered && count == 1 {
        return Duration::ZERO;
    }
    let doubled = Duration::from_millis(100).saturating_mul(1 << count.min(16));
    doubled.min(MAX_RESTART_DELAY)
}

fn refusal_of(process: &Process, reason: String) -> Refusal {
    if process.has_answered() {
        Refusal::Ended(reason)
    } else {
        Refusal::Rejected(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let millis = |count, has_answered| pause(count, has_answered).as_millis();
        assert_eq!((millis(1, true), millis(1, false)), (0, 200));
        assert_eq!((millis(2, true), millis(3, true)), (400, 800));
        assert_eq!(pause(40, true), MAX_RESTART_DELAY);
    }
}
