//! The fake, as its tests hold it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::fault::{Fault, FaultQueue, Matcher};
use crate::journal::{Exchange, Journal, Recorded};
use crate::limit::{Limiter, RateLimit};
use crate::server::{Inner, Shared, serve};
use crate::serving::{Visited, visit};
use crate::settings::Settings;
use crate::state::project::DeploymentEnd;
use crate::state::script::ScriptInfo;
use crate::state::{Kind, State};

/// A Cloudflare account on this machine. It ends when it is dropped, with every connection.
pub struct FakeCloudflare {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: AbortHandle,
}

impl FakeCloudflare {
    /// Begins to answer on a free port of the loopback interface.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Settings::default()).await
    }

    /// As [`FakeCloudflare::start`], set up otherwise.
    ///
    /// # Errors
    /// When the port is not free.
    pub async fn start_with(settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind((IpAddr::from([127, 0, 0, 1]), settings.port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(Inner {
            limiter: Limiter::new(settings.rate_limit),
            state: State::new(settings),
            faults: FaultQueue::default(),
            journal: Journal::default(),
        }));
        let task = tokio::spawn(serve(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            shared,
            address,
            task,
        })
    }

    /// Where it answers, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The API token it accepts.
    #[must_use]
    pub fn token(&self) -> String {
        self.shared.lock().state.settings.token.clone()
    }

    /// The account's id.
    #[must_use]
    pub fn account_id(&self) -> String {
        self.shared.lock().state.settings.account_id.clone()
    }

    /// The id of the zone that exists from the start.
    #[must_use]
    pub fn zone_id(&self) -> String {
        let inner = self.shared.lock();
        inner
            .state
            .zones
            .first()
            .map(|zone| zone.id.clone())
            .unwrap_or_default()
    }

    /// Adds a zone with a status, and tells its id.
    pub fn add_zone(&self, name: &str, status: &str) -> String {
        self.shared.lock().state.add_zone(name, status)
    }

    /// Pins a custom hostname and its certificate to states, those the API does not document included; a PATCH lets them go.
    pub fn pin_hostname(&self, hostname: &str, status: &str, ssl_status: &str) {
        let mut inner = self.shared.lock();
        let hostnames = inner
            .state
            .zones
            .iter_mut()
            .flat_map(|zone| &mut zone.hostnames);
        for own in hostnames.filter(|own| own.hostname == hostname) {
            own.pinned = Some((status.to_owned(), ssl_status.to_owned()));
        }
    }

    /// What answers a visitor of a hostname, of the account's zones or of a customer's; `None` if nothing does.
    #[must_use]
    pub fn visit(&self, hostname: &str) -> Option<Visited> {
        visit(&self.shared.lock().state, hostname)
    }

    /// How the next Pages deployment ends for which nothing is said yet.
    pub fn end_deployment(&self, end: DeploymentEnd) {
        self.shared.lock().state.deployment_ends.push_back(end);
    }

    /// Lets every upload token of Pages expire that was issued.
    pub fn expire_upload_tokens(&self) {
        self.shared.lock().state.pages_assets.revoke_all();
    }

    /// A fault for the next request that matches and for which no earlier fault waits.
    pub fn inject(&self, matcher: Matcher, fault: Fault) {
        self.inject_in_order([(matcher, fault)]);
    }

    /// Faults one after the other: each waits for its request once the one before has met its own.
    pub fn inject_in_order(&self, faults: impl IntoIterator<Item = (Matcher, Fault)>) {
        self.shared.lock().faults.push(faults);
    }

    /// The same fault for so many requests.
    pub fn inject_times(&self, matcher: &Matcher, fault: &Fault, times: usize) {
        for _ in 0..times {
            self.inject(matcher.clone(), fault.clone());
        }
    }

    /// From now on a request meets a fault with this chance in percent; the same seed draws the same faults. Connections are
    /// closed rather than left open.
    pub fn inject_random(&self, seed: u64, percent: u32) {
        self.shared.lock().faults.set_random(seed, percent);
    }

    /// No more faults.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// How many scripted faults met no request yet.
    #[must_use]
    pub fn waiting_faults(&self) -> usize {
        self.shared.lock().faults.waiting()
    }

    /// Another limit, from now on and from nothing.
    pub fn set_rate_limit(&self, limit: RateLimit) {
        self.shared.lock().limiter = Limiter::new(limit);
    }

    /// The requests that came, in their order.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().journal.requests.clone()
    }

    /// Requests with their answers, when they are recorded.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.lock().journal.exchanges.clone()
    }

    /// Forgets the requests that came.
    pub fn clear_requests(&self) {
        self.shared.lock().journal = Journal::default();
    }

    /// How many things of a kind there are.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.shared.lock().state.count(kind)
    }

    /// The deployed version of a worker.
    #[must_use]
    pub fn script(&self, name: &str) -> Option<ScriptInfo> {
        self.shared.lock().state.script(name)?.info()
    }

    /// What production of a Pages project serves at a path of its manifest.
    #[must_use]
    pub fn hosted(&self, project: &str, path: &str) -> Option<Bytes> {
        let inner = self.shared.lock();
        let hash = inner.state.project(project)?.production()?.get(path)?;
        inner.state.pages_assets.file(hash).cloned()
    }

    /// The values of the variables and secrets of a Pages project's environment, `production` or `preview`.
    #[must_use]
    pub fn pages_variables(&self, project: &str, environment: &str) -> BTreeMap<String, String> {
        let inner = self.shared.lock();
        let project = inner.state.project(project);
        project
            .map(|project| project.values(environment))
            .unwrap_or_default()
    }

    /// The secrets of a worker's deployed version, with their values.
    #[must_use]
    pub fn secrets(&self, script: &str) -> BTreeMap<String, String> {
        let inner = self.shared.lock();
        let script = inner.state.script(script);
        script.map(|script| script.secrets()).unwrap_or_default()
    }
}

impl Drop for FakeCloudflare {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl std::fmt::Debug for FakeCloudflare {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("FakeCloudflare");
        shown
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
