//! Notifies the other parts of this process after a commit, according to the effects of the commit, and then the other
//! processes.

use std::sync::{Arc, OnceLock};

use core_domain::kernel::{Effect, Effects, Notice, PlatformId};
use core_domain::port::{CommitListener, DetachedCommit, Notices};
use core_http::gateway::Invalidate;
use core_http::kernel::{AccessSignal, JobSignal, SealSignal, record_effects};
use tokio::runtime::Handle;
use tokio::sync::Notify;

#[cfg(feature = "local")]
use crate::suspension_cache::SuspensionCache;
use crate::worker::WorkerWake;

/// Reacts to the effects of commits in this process. Wakes the worker when a job is ready. Wakes the relays and the
/// webhook dispatcher when a message, a mail or a webhook message is queued. Wakes the sealer when an audit entry is
/// written, the readers of the change feed when entries are sealed, and the event streams of a job when it has new
/// events. It also drops what the gateway has cached about the sessions, API keys and platforms that changed. A
/// sign-out or suspension therefore applies from the next request on, and ends open event streams. A gateway in another
/// process that forwarded the request gets the effects with the response. Finally it sends the effects to all other
/// processes of the installation, which react to them in the same way.
#[derive(Debug)]
pub(crate) struct AfterCommit {
    /// The runtime that completes commits whose callers were dropped; `None` if the suite was built outside a runtime.
    runtime: Option<Handle>,
    worker: WorkerWake,
    relay: Arc<Notify>,
    mail_relay: Arc<Notify>,
    sealer: Arc<Notify>,
    seal_signal: SealSignal,
    job_signal: JobSignal,
    access_signal: AccessSignal,
    webhooks: Arc<Notify>,
    /// The channel to the other processes; `None` if there are none, or if they are not notified.
    notices: Option<Arc<dyn Notices>>,
    /// Set once the gateway exists, which is built from services that hold this value.
    gateway: OnceLock<Invalidate>,
    /// Set once the store is open.
    #[cfg(feature = "local")]
    suspensions: OnceLock<Arc<SuspensionCache>>,
}

impl AfterCommit {
    pub(crate) fn new(worker: WorkerWake, notices: Option<Arc<dyn Notices>>) -> Self {
        Self {
            runtime: Handle::try_current().ok(),
            worker,
            relay: Arc::default(),
            mail_relay: Arc::default(),
            sealer: Arc::default(),
            seal_signal: SealSignal::default(),
            job_signal: JobSignal::default(),
            access_signal: AccessSignal::default(),
            webhooks: Arc::default(),
            notices,
            gateway: OnceLock::new(),
            #[cfg(feature = "local")]
            suspensions: OnceLock::new(),
        }
    }

    /// The notifier that wakes the outbox relay.
    pub(crate) fn relay(&self) -> Arc<Notify> {
        Arc::clone(&self.relay)
    }

    /// The notifier that wakes the mail relay.
    pub(crate) fn mail_relay(&self) -> Arc<Notify> {
        Arc::clone(&self.mail_relay)
    }

    /// The notifier that wakes the sealer of the audit log.
    pub(crate) fn sealer(&self) -> Arc<Notify> {
        Arc::clone(&self.sealer)
    }

    /// The notifier that wakes the webhook dispatcher.
    pub(crate) fn webhooks(&self) -> Arc<Notify> {
        Arc::clone(&self.webhooks)
    }

    /// The signal that new entries of the change feed have been sealed.
    pub(crate) fn seal_signal(&self) -> SealSignal {
        self.seal_signal.clone()
    }

    /// The signal that jobs have new events.
    pub(crate) fn job_signal(&self) -> JobSignal {
        self.job_signal.clone()
    }

    /// The signal that a caller's access has changed.
    pub(crate) fn access(&self) -> AccessSignal {
        self.access_signal.clone()
    }

    pub(crate) fn set_gateway(&self, invalidate: Invalidate) {
        self.gateway.get_or_init(|| invalidate);
    }

    /// Sets the cache of suspensions that commits invalidate.
    #[cfg(feature = "local")]
    pub(crate) fn set_suspensions(&self, suspensions: Arc<SuspensionCache>) {
        self.suspensions.get_or_init(|| suspensions);
    }

    /// Drops the suspension states that the site host has cached for a platform, or for all platforms if it is `None`.
    fn suspension_changed(&self, platform: Option<&PlatformId>) {
        #[cfg(feature = "local")]
        match (self.suspensions.get(), platform) {
            (Some(suspensions), Some(platform)) => suspensions.invalidate(platform),
            (Some(suspensions), None) => suspensions.invalidate_all(),
            (None, _) => {}
        }
        #[cfg(not(feature = "local"))]
        let _ = (self, platform);
    }

    fn access_changed(&self, effect: &Effect, void: impl FnOnce(&Invalidate)) {
        self.access_signal.notify(effect);
        self.void(void);
    }

    fn void(&self, void: impl FnOnce(&Invalidate)) {
        if let Some(gateway) = self.gateway.get() {
            void(gateway);
        }
    }

    /// Reacts to a notice of another process as to a commit of this one, but does not send it again.
    pub(crate) fn on_notice(&self, notice: &Notice) {
        match notice {
            Notice::Effect(effect) => self.react_to(effect),
            Notice::Missed => self.react_to_everything(),
        }
    }

    /// Treats everything as changed that other processes can change, after their notices were lost.
    fn react_to_everything(&self) {
        self.suspension_changed(None);
        self.access_signal.notify_all();
        self.void(Invalidate::all);
        self.job_signal.notify_all();
        self.seal_signal.notify();
    }

    /// Notifies the parts of this process that an effect concerns.
    fn react_to(&self, effect: &Effect) {
        match effect {
            Effect::JobReady => self.worker.wake(),
            Effect::JobProgressed(job) => self.job_signal.notify(job),
            Effect::MessageQueued => self.relay.notify_one(),
            Effect::MailQueued => self.mail_relay.notify_one(),
            Effect::AuditWritten => self.sealer.notify_one(),
            Effect::AuditSealed => self.seal_signal.notify(),
            Effect::WebhookQueued => self.webhooks.notify_one(),
            Effect::SessionChanged(id) => {
                self.access_changed(effect, |gateway| gateway.session(id))
            }
            Effect::ApiKeyChanged(id) => self.access_changed(effect, |gateway| gateway.api_key(id)),
            Effect::PlatformAccessChanged(id) => {
                self.suspension_changed(Some(id));
                self.access_changed(effect, |gateway| gateway.platform(id));
            }
            Effect::UserAccessChanged(id) => {
                self.access_changed(effect, |gateway| gateway.user(id))
            }
            Effect::OrganizationAccessChanged(id) => {
                self.access_changed(effect, |gateway| gateway.organization(id));
            }
            // An unknown effect may affect every caller.
            _ => self.react_to_everything(),
        }
    }
}

impl CommitListener for AfterCommit {
    fn on_committed(&self, effects: &Effects) {
        effects.iter().for_each(|effect| self.react_to(effect));
        record_effects(effects);
        if let Some(notices) = &self.notices {
            notices.publish(effects);
        }
    }

    fn on_committing(&self, effects: &Effects) {
        if effects.iter().any(|effect| *effect == Effect::JobReady) {
            self.worker.wake_before_commit();
        }
    }

    fn run_detached(&self, rest: DetachedCommit) {
        // Without a runtime there is no task left that could be notified.
        if let Some(runtime) = &self.runtime {
            runtime.spawn(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use core_domain::gateway::Credential;
    use core_domain::kernel::{ApiKeyId, Caller, JobId, Role, SuiteService, Timestamp};
    use core_domain::testing::{ManualClock, SeededEntropy};
    use core_http::gateway::{
        Authority, AuthorityError, Gateway, GatewayConfig, Ports, ResolvedCredential, Upstream,
        UpstreamError, Upstreams,
    };
    use core_http::kernel::metrics::Metrics;
    use core_http::kernel::testing::{PEER, member, session_of};
    use core_http::kernel::{Body, MemoryRateLimiter, PeerAddr, empty_body};
    use futures_util::FutureExt;
    use http::{Request, Response};
    use tower::ServiceExt;

    use super::*;

    /// The session tokens of three users, and the API key of a program.
    const TOKENS: [&str; 4] = ["ada", "bob", "eve", "program"];

    /// An IAM double for the gateway that records the tokens it is asked about.
    #[derive(Debug, Default)]
    struct Iam(Mutex<Vec<String>>);

    #[async_trait]
    impl Authority for Iam {
        async fn resolve(
            &self,
            credential: &Credential,
        ) -> Result<ResolvedCredential, AuthorityError> {
            let (Credential::Bearer(token) | Credential::ApiKey(token)) = credential;
            let token = token.expose();
            self.0.lock().unwrap().push(token.to_owned());
            let platform = if token == "ada" || token == "bob" {
                "p-1"
            } else {
                "p-2"
            };
            let person = member(token, platform, Role::OWNER).unwrap();
            let caller = match person.membership() {
                membership @ Some(_) if token == "program" => Caller::ApiKey {
                    key_id: ApiKeyId::parse("key-1").unwrap(),
                    user_id: None,
                    membership: membership.cloned(),
                },
                _ => person,
            };
            Ok(ResolvedCredential {
                caller: Arc::new(caller),
                suspended: false,
                expires_at: None,
                requests_per_minute: None,
            })
        }
    }

    /// A service whose responses are empty.
    #[derive(Debug)]
    struct Silent;

    #[async_trait]
    impl Upstream for Silent {
        async fn send(&self, _: Request<Body>) -> Result<Response<Body>, UpstreamError> {
            Ok(Response::new(empty_body()))
        }
    }

    fn gateway(iam: &Arc<Iam>) -> Gateway {
        let ports = Ports {
            authority: iam.clone(),
            upstreams: Upstreams::new().with(SuiteService::Registry, Silent),
            limiter: Arc::new(MemoryRateLimiter::new()),
            clock: Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000))),
            entropy: Arc::new(SeededEntropy::new(1)),
            meter: None,
            store_check: None,
            metrics: Metrics::new(),
            tracer: None,
        };
        let config = GatewayConfig {
            service_key: Some(core_domain::kernel::Secret::new("a-key-of-the-service")),
            ..GatewayConfig::default()
        };
        Gateway::new(config, ports).unwrap()
    }

    /// Sends one request with each token. Returns the tokens that IAM was asked about.
    async fn asked_about(gateway: &Gateway, iam: &Iam) -> Vec<String> {
        for token in TOKENS {
            let request = Request::get("/api/v1/platforms")
                .header("host", "api.test")
                .header("authorization", format!("Bearer {token}"))
                .extension(PeerAddr(PEER))
                .body(empty_body());
            let answer = gateway.clone().oneshot(request.unwrap()).await.unwrap();
            assert_eq!(answer.status(), 200);
        }
        std::mem::take(&mut *iam.0.lock().unwrap())
    }

    #[tokio::test]
    async fn a_commit_wakes_and_invalidates_exactly_what_its_effects_name() {
        let session = |user| Effect::SessionChanged(session_of(user));
        let key = Effect::ApiKeyChanged(ApiKeyId::parse("key-1").unwrap());
        let job_progress = Effect::JobProgressed(JobId::parse("job-1").unwrap());
        let platform = Effect::PlatformAccessChanged(PlatformId::parse("p-1").unwrap());
        let (ada, eve) = (session("ada"), session("eve"));
        let nobody: &[&str] = &[];
        let table = [
            (vec![], false, false, nobody),
            (vec![Effect::JobReady], true, false, nobody),
            (vec![job_progress], false, false, nobody),
            (vec![Effect::MessageQueued], false, true, nobody),
            (vec![Effect::MailQueued], false, false, nobody),
            (vec![Effect::AuditWritten], false, false, nobody),
            (vec![Effect::AuditSealed], false, false, nobody),
            (vec![Effect::WebhookQueued], false, false, nobody),
            (vec![ada.clone()], false, false, &["ada"]),
            (vec![key], false, false, &["program"]),
            (vec![platform], false, false, &["ada", "bob"]),
            (
                vec![Effect::JobReady, ada, eve],
                true,
                false,
                &["ada", "eve"],
            ),
        ];
        for (effects, wakes_worker, wakes_relay, voided) in table {
            let worker = WorkerWake::default();
            let listener = AfterCommit::new(worker.clone(), None);
            let iam = Arc::new(Iam::default());
            let gateway = gateway(&iam);
            listener.set_gateway(gateway.invalidate());
            assert_eq!(asked_about(&gateway, &iam).await, TOKENS);
            assert!(asked_about(&gateway, &iam).await.is_empty(), "remembered");

            let mut committed = Effects::default();
            effects
                .iter()
                .cloned()
                .for_each(|effect| committed.add(effect));
            listener.on_committing(&committed);
            let expected = worker.wait().now_or_never().is_some();
            assert_eq!(expected, wakes_worker, "{effects:?}");
            listener.on_committed(&committed);
            let woken = (
                worker.wait().now_or_never().is_some(),
                listener.relay().notified().now_or_never().is_some(),
            );
            assert_eq!(woken, (wakes_worker, wakes_relay), "{effects:?}");
            for (wakes, effect) in [
                (listener.mail_relay(), Effect::MailQueued),
                (listener.sealer(), Effect::AuditWritten),
                (listener.webhooks(), Effect::WebhookQueued),
            ] {
                let woken = wakes.notified().now_or_never().is_some();
                assert_eq!(woken, effects.contains(&effect), "{effects:?}");
            }
            assert_eq!(asked_about(&gateway, &iam).await, voided, "{effects:?}");
        }
    }

    /// A channel that records what is sent.
    #[derive(Debug, Default)]
    struct Channel(Mutex<Vec<Effects>>);

    #[async_trait]
    impl Notices for Channel {
        fn publish(&self, effects: &Effects) {
            self.0.lock().unwrap().push(effects.clone());
        }

        async fn receive(&self) -> Notice {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_notice_has_the_effect_of_a_commit_and_is_not_sent_again() {
        let channel = Arc::new(Channel::default());
        let listener = AfterCommit::new(WorkerWake::default(), Some(channel.clone()));
        let iam = Arc::new(Iam::default());
        let gateway = gateway(&iam);
        listener.set_gateway(gateway.invalidate());
        assert_eq!(asked_about(&gateway, &iam).await, TOKENS);

        let ended = Effect::SessionChanged(session_of("ada"));
        let mut effects = Effects::default();
        effects.add(ended.clone());
        listener.on_committed(&effects);
        assert_eq!(asked_about(&gateway, &iam).await, ["ada"]);
        assert_eq!(*channel.0.lock().unwrap(), [effects.clone()]);

        listener.on_notice(&Notice::Effect(ended));
        assert_eq!(asked_about(&gateway, &iam).await, ["ada"]);
        listener.on_notice(&Notice::Missed);
        assert_eq!(asked_about(&gateway, &iam).await, TOKENS);
        assert_eq!(*channel.0.lock().unwrap(), [effects]);
    }

    #[cfg(feature = "local")]
    #[tokio::test]
    async fn a_suspending_commit_invalidates_the_cached_state_of_its_platform_alone() {
        use core_domain::port::PlatformSuspensions;
        use core_domain::testing::MockPlatformSuspensions;

        let is_suspended = Arc::new(Mutex::new(false));
        let mut source = MockPlatformSuspensions::new();
        let state = Arc::clone(&is_suspended);
        source
            .expect_is_suspended()
            .returning(move |_| Ok(*state.lock().unwrap()));
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let cache = Arc::new(SuspensionCache::new(Arc::new(source), clock));
        let listener = AfterCommit::new(WorkerWake::default(), None);
        listener.set_suspensions(Arc::clone(&cache));
        let [own, other] = ["p-1", "p-2"].map(|id| PlatformId::parse(id).unwrap());
        assert_eq!(cache.is_suspended(&own).await, Ok(false));
        *is_suspended.lock().unwrap() = true;
        for (changed, expected) in [(other, false), (own.clone(), true)] {
            let mut effects = Effects::default();
            effects.add(Effect::PlatformAccessChanged(changed));
            listener.on_committed(&effects);
            assert_eq!(cache.is_suspended(&own).await, Ok(expected));
        }
    }
}
