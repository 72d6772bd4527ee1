//! The handle of a fake for tests.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use core_fake_kit::control_methods;
use core_fake_kit::fault::FaultQueue;
use core_fake_kit::server::{Server, bind};

use crate::fault::Fault;
use crate::journal::{Exchange, Journal, RecordedRequest};
use crate::limit::{Limiter, RateLimit};
use crate::server::{Inner, SharedInner, answer};
use crate::serving::{HostnameTarget, visit};
use crate::settings::Settings;
use crate::state::project::DeploymentEnd;
use crate::state::script::ScriptInfo;
use crate::state::{Kind, State};

/// A running fake with one Cloudflare account. Dropping it stops the server and closes all connections.
pub struct FakeCloudflare {
    shared: Arc<SharedInner>,
    server: Server,
}

impl FakeCloudflare {
    /// Starts the fake on a free port of the loopback interface.
    ///
    /// # Errors
    /// [`io::Error`] if no port is available.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Settings::default()).await
    }

    /// Starts the fake with these settings.
    ///
    /// # Errors
    /// [`io::Error`] if the port is not available.
    pub async fn start_with(settings: Settings) -> io::Result<Self> {
        let listener = bind(settings.port).await?;
        let limiter = Limiter::new(settings.rate_limit);
        let mut state = State::new(settings);
        state.address = listener.local_addr()?.to_string();
        let shared = Arc::new(SharedInner::new(Inner {
            limiter,
            state,
            faults: FaultQueue::default(),
            journal: Journal::default(),
        }));
        let served = Arc::clone(&shared);
        let server = Server::start(listener, move |request| {
            answer(request, Arc::clone(&served))
        })?;
        Ok(Self { shared, server })
    }

    /// Returns the base URL, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// Returns the API token that the fake accepts.
    #[must_use]
    pub fn token(&self) -> String {
        self.shared.lock().state.settings.token.clone()
    }

    /// Returns the id of the account.
    #[must_use]
    pub fn account_id(&self) -> String {
        self.shared.lock().state.settings.account_id.clone()
    }

    /// Returns the id of the initial zone.
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

    /// Sends a message to all tails of a worker or a project. Returns the number of clients that receive it.
    pub fn send_to_tails(&self, target: &str, message: &serde_json::Value) -> usize {
        let inner = self.shared.lock();
        let tails: Vec<_> = inner.state.tails_of(target).collect();
        for tail in &tails {
            tail.send(message.to_string());
        }
        tails.iter().map(|tail| tail.connections()).sum()
    }

    /// Returns the number of tails that are not deleted.
    #[must_use]
    pub fn tail_count(&self) -> usize {
        self.shared.lock().state.tails.len()
    }

    /// Deletes all tails, as when they expire. Their WebSockets close.
    pub fn expire_tails(&self) {
        self.shared.lock().state.tails.clear();
    }

    /// Adds a zone with a status and returns its id.
    pub fn add_zone(&self, name: &str, status: &str) -> String {
        self.shared.lock().state.add_zone(name, status)
    }

    /// Fixes the states of a custom hostname and its certificate, including undocumented states. A PATCH releases them.
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

    /// Returns the target that serves a platform or customer's hostname; `None` if there is none.
    #[must_use]
    pub fn visit(&self, hostname: &str) -> Option<HostnameTarget> {
        visit(&self.shared.lock().state, hostname)
    }

    /// Sets the outcome of the next Pages deployment that has no outcome yet.
    pub fn end_deployment(&self, end: DeploymentEnd) {
        self.shared.lock().state.deployment_ends.push_back(end);
    }

    /// Expires all issued upload tokens of Pages.
    pub fn expire_upload_tokens(&self) {
        self.shared.lock().state.pages_assets.revoke_all();
    }

    /// Replaces the rate limit and resets its count.
    pub fn set_rate_limit(&self, limit: RateLimit) {
        self.shared.lock().limiter = Limiter::new(limit);
    }

    /// Returns the number of objects of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.shared.lock().state.count(kind)
    }

    /// Returns the deployed version of a worker.
    #[must_use]
    pub fn script(&self, name: &str) -> Option<ScriptInfo> {
        self.shared.lock().state.script(name)?.info()
    }

    /// Returns the content that the production environment of a Pages project serves at a path.
    #[must_use]
    pub fn pages_file(&self, project: &str, path: &str) -> Option<Bytes> {
        let inner = self.shared.lock();
        let hash = inner.state.project(project)?.production()?.get(path)?;
        inner.state.pages_assets.file(hash).cloned()
    }

    /// Returns the content that the newest preview of a branch serves at a path.
    #[must_use]
    pub fn preview_file(&self, project: &str, branch: &str, path: &str) -> Option<Bytes> {
        let inner = self.shared.lock();
        let hash = inner.state.project(project)?.preview(branch)?.get(path)?;
        inner.state.pages_assets.file(hash).cloned()
    }

    /// Removes the contents of all Pages deployments that are not live in production, as Cloudflare does after some time.
    pub fn remove_unused_contents(&self) {
        self.shared.lock().state.remove_unused_contents();
    }

    /// Returns the values of the variables and secrets of a Pages environment, `production` or `preview`.
    #[must_use]
    pub fn pages_variables(&self, project: &str, environment: &str) -> BTreeMap<String, String> {
        let inner = self.shared.lock();
        let project = inner.state.project(project);
        project
            .map(|project| project.values(environment))
            .unwrap_or_default()
    }

    /// Returns the secrets of a worker's deployed version, with their values.
    #[must_use]
    pub fn secrets(&self, script: &str) -> BTreeMap<String, String> {
        let inner = self.shared.lock();
        let script = inner.state.script(script);
        script.map(|script| script.secrets()).unwrap_or_default()
    }
}

control_methods!(FakeCloudflare, Fault, RecordedRequest, Exchange);

impl std::fmt::Debug for FakeCloudflare {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("FakeCloudflare");
        shown
            .field("address", &self.server.address())
            .finish_non_exhaustive()
    }
}
