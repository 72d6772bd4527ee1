//! Removes expired records, and creates the next signing keys. Short-lived records are swept every few minutes, all
//! others at the start and once a day. Records are removed in slices, each in its own unit of work. With several nodes,
//! one node at a time sweeps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::kernel::{Cipher, Context, Ed25519Private, Entropy, Error, Result};
use core_domain::port::{Blobs, Infrastructure, Store, transact};
use core_domain::use_case::billing::closing::close_void_invoices;
use core_domain::use_case::billing::customer_details::send_details;
use core_domain::use_case::billing::inbox::{catch_up, remove_old_provider_events};
use core_domain::use_case::billing::portal;
use core_domain::use_case::billing::provider_run::FailedRecord;
use core_domain::use_case::billing::reconcile::compare_invoices;
use core_domain::use_case::billing::recovery::recover;
use core_domain::use_case::billing::storage_usage::measure_storage;
use core_domain::use_case::billing::{Billing, ledger};
use core_domain::use_case::cli::remove_expired_plans;
use core_domain::use_case::iam::{api_key, oauth, passkey, service_token, session, verification};
use core_domain::use_case::provisioning::{remove_old_dead_letters, remove_old_jobs};
use core_domain::use_case::registry::deployment::fail_stuck;
use core_domain::use_case::registry::retention::{
    DeploymentPosition, remove_old_builds, remove_old_deployments, remove_old_lifecycle_records,
};
use core_domain::use_case::shared::usage::remove_old_events;
use core_domain::use_case::shared::webhook::remove_ended_deliveries;
use core_domain::use_case::shared::{
    LeaseHolder, RemoveSlice, Slice, archive_next_month, remove_archived, remove_expired_answers,
    remove_expired_mail_quotas, sweep_slice,
};
use core_http::kernel::App;
use core_http::kernel::metrics::Metrics;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::background_task::{BackgroundTask, wait_for_grace};
use crate::history_options::HistoryOptions;
use crate::metrics::ArchiveMetrics;
use crate::slice_size::SliceSize;
use crate::sweep_options::SweepOptions;
use crate::uploads;

/// Records that expire after minutes, and that any caller can create many of.
const SHORT_LIVED: [(&str, &RemoveSlice<'static>); 8] = [
    ("deploy plans", &|uow, limit| {
        Box::pin(remove_expired_plans(uow, limit))
    }),
    ("portal sessions", &|uow, limit| {
        Box::pin(portal::remove_ended_sessions(uow, limit))
    }),
    ("links", &|uow, limit| {
        Box::pin(verification::remove_expired(uow, limit))
    }),
    ("sign-ins", &|uow, limit| {
        Box::pin(session::remove_expired_challenges(uow, limit))
    }),
    ("passkey challenges", &|uow, limit| {
        Box::pin(passkey::remove_expired_passkey_challenges(uow, limit))
    }),
    ("device codes", &|uow, limit| {
        Box::pin(oauth::remove_expired_devices(uow, limit))
    }),
    ("mail quotas", &|uow, limit| {
        Box::pin(remove_expired_mail_quotas(uow, limit))
    }),
    ("tokens", &|uow, limit| {
        Box::pin(oauth::remove_expired_tokens(uow, limit))
    }),
];

/// Records that last for hours or days.
const LONG_LIVED: [(&str, &RemoveSlice<'static>); 6] = [
    ("stored responses", &|uow, limit| {
        Box::pin(remove_expired_answers(uow, limit))
    }),
    ("trusted devices", &|uow, limit| {
        Box::pin(session::remove_expired_trust(uow, limit))
    }),
    ("sessions", &|uow, limit| {
        Box::pin(session::remove_expired(uow, limit))
    }),
    ("API keys", &|uow, limit| {
        Box::pin(api_key::remove_ended(uow, limit))
    }),
    ("provider events", &|uow, limit| {
        Box::pin(remove_old_provider_events(uow, limit))
    }),
    ("setup intents", &|uow, limit| {
        Box::pin(ledger::remove_expired_intents(uow, limit))
    }),
];

/// The name of the lease that the sweeping node holds.
const TASK: &str = "sweep";

/// The background task that removes expired records.
#[derive(Clone)]
pub(crate) struct Sweeper {
    store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    infrastructure: Arc<dyn Infrastructure>,
    entropy: Arc<dyn Entropy>,
    cipher: Cipher,
    /// The key that signs the audit log.
    audit_key: Ed25519Private,
    archive_metrics: ArchiveMetrics,
    billing: Arc<Billing>,
    /// How long usage events are kept.
    usage_retention: Duration,
    /// How long other ended records are kept.
    history: HistoryOptions,
    holder: LeaseHolder,
    options: SweepOptions,
}

/// How a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepOutcome {
    /// No expired record is left, or a removal failed and is retried at the next sweep.
    Done,
    /// Another process is sweeping.
    Busy,
    /// The sweeper was asked to stop.
    Stopped,
}

impl Sweeper {
    /// Creates a sweeper. `is_sole` states that no other process uses the store.
    pub(crate) fn new(
        app: &App,
        infrastructure: Arc<dyn Infrastructure>,
        billing: Arc<Billing>,
        usage_retention: Duration,
        history: HistoryOptions,
        options: SweepOptions,
        is_sole: bool,
    ) -> Self {
        let entropy = Arc::clone(&app.entropy);
        let holder = match is_sole {
            true => LeaseHolder::exclusive(TASK, options.lease),
            false => LeaseHolder::generate(TASK, options.lease, entropy.as_ref()),
        };
        Self {
            store: Arc::clone(&app.store),
            blobs: Arc::clone(&app.blobs),
            infrastructure,
            entropy,
            cipher: app.cipher.clone(),
            audit_key: app.audit_key.clone(),
            archive_metrics: ArchiveMetrics::new(&app.metrics),
            billing,
            usage_retention,
            history,
            holder,
            options,
        }
    }

    /// Starts sweeping on the current tokio runtime. After a stop it completes the current slice and releases the
    /// lease. A store that does not respond delays the stop by at most [`GRACE`](crate::background_task::GRACE).
    pub(crate) fn start(self, metrics: &Metrics) -> BackgroundTask {
        let sweeper = Arc::new(self);
        BackgroundTask::start("sweeper", metrics, move |stopped| {
            let sweeper = Arc::clone(&sweeper);
            async move {
                tokio::select! {
                    () = sweeper.run(stopped.clone()) => {}
                    () = wait_for_grace(stopped) => {}
                }
            }
        })
    }

    async fn run(&self, mut stopped: watch::Receiver<bool>) {
        let mut next_daily = Instant::now();
        loop {
            let is_daily = Instant::now() >= next_daily;
            let swept = self.sweep(is_daily, &stopped).await;
            if let Err(error) = self.holder.release(self.store.as_ref()).await {
                tracing::warn!(?error, "the lease of the sweep could not be released");
            }
            if swept == SweepOutcome::Done && is_daily {
                next_daily = Instant::now() + self.options.long_lived_every;
            }
            let pause = match swept {
                SweepOutcome::Stopped => return,
                // The lease may belong to a process that has crashed.
                SweepOutcome::Busy => self.options.lease,
                SweepOutcome::Done => self.options.short_lived_every,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Removes all expired records: the short-lived ones always, the others only in the daily sweep.
    async fn sweep(&self, is_daily: bool, stopped: &watch::Receiver<bool>) -> SweepOutcome {
        let swept = self.remove_expired(&SHORT_LIVED, stopped).await;
        if swept == SweepOutcome::Done
            && let Err(error) = self.fail_stuck_deployments().await
        {
            tracing::warn!(?error, "stuck deployments could not be ended");
        }
        if swept == SweepOutcome::Done {
            self.remove_orphaned_uploads(stopped.clone()).await;
            self.recover_charges(stopped.clone()).await;
            self.follow_provider(stopped.clone()).await;
            self.measure_storage(stopped.clone()).await;
        }
        if swept != SweepOutcome::Done || !is_daily {
            return swept;
        }
        let swept = self.remove_expired(&LONG_LIVED, stopped).await;
        if swept != SweepOutcome::Done {
            return swept;
        }
        let swept = self.remove_history(stopped).await;
        if swept != SweepOutcome::Done {
            return swept;
        }
        let swept = self.archive_audit(stopped).await;
        if swept != SweepOutcome::Done {
            return swept;
        }
        self.remove_old_deployments(stopped.clone()).await;
        if let Err(error) = self.rotate_keys().await {
            tracing::warn!(
                ?error,
                "signing keys of service tokens could not be rotated"
            );
        }
        SweepOutcome::Done
    }

    /// Removes the ended records that are older than their settings.
    async fn remove_history(&self, stopped: &watch::Receiver<bool>) -> SweepOutcome {
        let (usage, history) = (self.usage_retention, self.history);
        // Most deployments stay, so each slice begins after the one before.
        let position = Arc::new(Mutex::new(None));
        let kinds: [(&str, &RemoveSlice<'_>); 7] = [
            ("usage events", &|uow, limit| {
                Box::pin(remove_old_events(uow, usage, limit))
            }),
            ("webhook messages", &|uow, limit| {
                Box::pin(remove_ended_deliveries(
                    uow,
                    history.webhook_deliveries,
                    limit,
                ))
            }),
            ("jobs", &|uow, limit| {
                Box::pin(remove_old_jobs(uow, history.jobs, limit))
            }),
            ("dead letters", &|uow, limit| {
                Box::pin(remove_old_dead_letters(uow, history.dead_letters, limit))
            }),
            ("builds", &|uow, limit| {
                Box::pin(remove_old_builds(uow, history.builds, limit))
            }),
            ("lifecycle records", &|uow, limit| {
                Box::pin(remove_old_lifecycle_records(
                    uow,
                    history.lifecycle_records,
                    limit,
                ))
            }),
            ("deployments", &|uow, limit| {
                let position = Arc::clone(&position);
                let after = lock(&position).clone();
                Box::pin(async move {
                    let retention = history.deployments;
                    let removed = remove_old_deployments(uow, retention, after, limit).await?;
                    *lock(&position) = removed.position;
                    Ok(removed.examined)
                })
            }),
        ];
        self.remove_expired(&kinds, stopped).await
    }

    /// Archives the months of the audit log that are older than their setting, one after the other, and removes their
    /// records.
    async fn archive_audit(&self, stopped: &watch::Receiver<bool>) -> SweepOutcome {
        let archived: [(&str, &RemoveSlice<'_>); 1] =
            [("archived audit entries", &|uow, limit| {
                Box::pin(remove_archived(uow, limit))
            })];
        let cx = Context::system(Arc::clone(&self.entropy));
        let (store, blobs) = (self.store.as_ref(), self.blobs.as_ref());
        loop {
            // An earlier process may have ended before it removed everything.
            let swept = self.remove_expired(&archived, stopped).await;
            if swept != SweepOutcome::Done {
                return swept;
            }
            let mut stopped = stopped.clone();
            let (key, retention) = (&self.audit_key, self.history.audit);
            let next = tokio::select! {
                next = archive_next_month(&cx, store, blobs, key, &self.holder, retention) => next,
                _ = stopped.wait_for(|stopped| *stopped) => return SweepOutcome::Stopped,
            };
            match next {
                Ok(None) => return SweepOutcome::Done,
                Ok(Some(archive)) => {
                    let (month, entries, blob) =
                        (&archive.month, archive.links(), archive.blob_key());
                    tracing::info!(%month, entries, blob, "a month of the audit log was archived");
                }
                Err(error) => {
                    self.archive_metrics.count_failure();
                    tracing::error!(?error, "the audit log could not be archived");
                    return SweepOutcome::Done;
                }
            }
        }
    }

    /// Removes the expired records of each kind. A kind that fails does not stop the others.
    async fn remove_expired(
        &self,
        kinds: &[(&str, &RemoveSlice<'_>)],
        stopped: &watch::Receiver<bool>,
    ) -> SweepOutcome {
        for (kind, remove) in kinds {
            match self.remove_slices(remove, stopped).await {
                Ok(SweepOutcome::Done) => {}
                Ok(swept) => return swept,
                Err(error) => {
                    tracing::warn!(?error, kind, "expired records could not be removed");
                }
            }
        }
        SweepOutcome::Done
    }

    /// Removes all slices, one after the other.
    async fn remove_slices(
        &self,
        remove: &RemoveSlice<'_>,
        stopped: &watch::Receiver<bool>,
    ) -> Result<SweepOutcome> {
        let mut size = SliceSize::first(&self.options);
        let begun = Mutex::new(Instant::now());
        let on_begin = || *begun.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        while !*stopped.borrow() {
            let (store, limit) = (self.store.as_ref(), size.records());
            match sweep_slice(store, &self.holder, remove, limit, &on_begin).await? {
                Slice::Busy => return Ok(SweepOutcome::Busy),
                Slice::Removed(0) => return Ok(SweepOutcome::Done),
                Slice::Removed(removed) => {
                    let begun = *begun.lock().unwrap_or_else(PoisonError::into_inner);
                    size.adapt(removed, begun.elapsed());
                }
            }
        }
        Ok(SweepOutcome::Stopped)
    }

    /// Ends the deployments of other programs that were not updated for too long.
    async fn fail_stuck_deployments(&self) -> Result<()> {
        let cx = Context::system(Arc::clone(&self.entropy));
        let store = self.store.as_ref();
        let failed = transact(store, |uow, _| Box::pin(fail_stuck(&cx, uow))).await?;
        if failed > 0 {
            tracing::info!(failed, "stuck deployments were ended");
        }
        Ok(())
    }

    /// Finds out the outcome of interrupted charges, and undoes changes that were not paid in time.
    async fn recover_charges(&self, mut stopped: watch::Receiver<bool>) {
        let cx = Context::system(Arc::clone(&self.entropy));
        let recovered = tokio::select! {
            recovered = recover(&cx, self.store.as_ref(), &self.billing) => recovered,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match recovered {
            Ok(0) => {}
            Ok(recovered) => tracing::info!(recovered, "interrupted charges were settled"),
            Err(error) => tracing::warn!(?error, "interrupted charges could not be settled"),
        }
    }

    /// Cancels void invoices at the payment provider, sends it changed details of customers, fetches its events whose
    /// webhooks were missed, and compares the invoices once a day.
    async fn follow_provider(&self, mut stopped: watch::Receiver<bool>) {
        let cx = Context::system(Arc::clone(&self.entropy));
        let (store, billing) = (self.store.as_ref(), self.billing.as_ref());
        let followed = async {
            let closed = close_void_invoices(&cx, store, billing).await?;
            let sent = send_details(store, billing).await?;
            let received = catch_up(&cx, store, billing).await?;
            let compared = compare_invoices(&cx, store, billing).await?;
            Ok::<_, Error>((closed, sent, received, compared))
        };
        let followed = tokio::select! {
            followed = followed => followed,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match followed {
            Ok((closed, sent, received, compared)) => {
                for failed in sent.failed.iter().chain(&compared.failed) {
                    let FailedRecord { id, error } = failed;
                    tracing::warn!(%id, %error, "a record could not be sent to or compared with the payment provider");
                }
                let (sent, compared) = (sent.done, compared.done);
                if (closed, sent, received, compared) == (0, 0, 0, 0) {
                    return;
                }
                tracing::info!(
                    closed,
                    sent,
                    received,
                    compared,
                    "caught up with the payment provider"
                );
            }
            Err(error) => tracing::warn!(?error, "the payment provider could not be followed"),
        }
    }

    /// Reports what platforms store as usage, once a day.
    async fn measure_storage(&self, mut stopped: watch::Receiver<bool>) {
        let cx = Context::system(Arc::clone(&self.entropy));
        let (store, infrastructure) = (self.store.as_ref(), self.infrastructure.as_ref());
        let measured = tokio::select! {
            measured = measure_storage(&cx, store, &self.billing, infrastructure) => measured,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match measured {
            Ok(0) => {}
            Ok(stacks) => tracing::info!(stacks, "the storage of the day was measured"),
            Err(error) => tracing::warn!(?error, "the storage of the day could not be measured"),
        }
    }

    /// Removes old previews, and files that no deployment refers to.
    async fn remove_old_deployments(&self, mut stopped: watch::Receiver<bool>) {
        let removed = tokio::select! {
            removed = self.infrastructure.clean_up() => removed,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match removed {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "files of old deployments were removed"),
            Err(error) => tracing::warn!(?error, "old deployments could not be removed"),
        }
    }

    async fn remove_orphaned_uploads(&self, mut stopped: watch::Receiver<bool>) {
        let (store, blobs) = (self.store.as_ref(), self.blobs.as_ref());
        let removed = tokio::select! {
            removed = uploads::remove_orphaned(store, blobs, &self.holder) => removed,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        match removed {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "orphaned uploads were removed"),
            Err(error) => tracing::warn!(?error, "orphaned uploads could not be removed"),
        }
    }

    /// Creates the next signing key in time, and removes the keys that are no longer used.
    async fn rotate_keys(&self) -> Result<u64> {
        let cx = Context::system(Arc::clone(&self.entropy));
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(service_token::rotate_keys(&cx, uow, &self.cipher))
        })
        .await
    }
}

fn lock(
    position: &Mutex<Option<DeploymentPosition>>,
) -> MutexGuard<'_, Option<DeploymentPosition>> {
    position.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use core_domain::billing::{PaymentProvider, PlanCatalog, TaxTable};
    use core_domain::iam::{AccessToken, AccessTokenQuery, SigningKeyQuery, TokenHash};
    use core_domain::kernel::{
        AuditId, Clock, JsonText, LifecycleId, PlatformId, SessionId, StoreError, Timestamp,
    };
    use core_domain::port::{Mode, UnitOfWork, Within};
    use core_domain::registry::{LifecycleQuery, LifecycleRecord, PlatformStatus};
    use core_domain::shared::{AuditEntry, AuditQuery, AuditStream};
    use core_domain::testing::{
        ManualClock, MemoryBlobs, MemoryInfrastructure, MockBlobs, MockPayments, RecordKey,
        SeededEntropy,
    };
    use core_domain::use_case::billing::clock::BillingClock;
    use core_domain::use_case::billing::page_links::PageLinks;
    use core_domain::use_case::shared::seal;
    use core_storage::memory::{MemoryConfig, open};
    use tokio::time::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_secs(5 * 60);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A store that counts the units that write.
    #[derive(Debug)]
    struct Counting(Arc<dyn Store>, Mutex<u32>);

    #[async_trait]
    impl Store for Counting {
        async fn begin(&self, mode: Mode) -> std::result::Result<Box<dyn UnitOfWork>, StoreError> {
            if !matches!(mode, Mode::Auto | Mode::Read) {
                *self.1.lock().unwrap() += 1;
            }
            self.0.begin(mode).await
        }

        async fn back_off(&self, _: u32) {}
    }

    struct World {
        clock: Arc<ManualClock>,
        store: Arc<Counting>,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let store = Arc::new(Counting(store, Mutex::new(0)));
            Self { clock, store }
        }

        /// Returns the sweeper of a node.
        fn sweeper(&self, node: u8) -> Sweeper {
            let (options, entropy) = (
                SweepOptions::default(),
                Arc::new(SeededEntropy::new(node.into())),
            );
            let mut payments = MockPayments::new();
            payments.expect_events_since().returning(|_| Ok(Vec::new()));
            payments
                .expect_provider()
                .return_const(PaymentProvider::Ledger);
            let mut blobs = MockBlobs::new();
            blobs.expect_older_than().returning(|_| Ok(Vec::new()));
            Sweeper {
                store: self.store.clone(),
                blobs: Arc::new(blobs),
                infrastructure: Arc::new(MemoryInfrastructure::default()),
                usage_retention: Duration::from_secs(100 * 24 * 60 * 60),
                history: HistoryOptions::default(),
                holder: LeaseHolder::generate(TASK, options.lease, entropy.as_ref()),
                cipher: Cipher::new([1; 32], entropy.clone()),
                audit_key: Ed25519Private::from_seed([8; 32]),
                archive_metrics: ArchiveMetrics::default(),
                billing: Arc::new(Billing {
                    plans: PlanCatalog::default(),
                    payments: Arc::new(payments),
                    clock: BillingClock::Store,
                    cipher: Cipher::new([1; 32], entropy.clone()),
                    pages: PageLinks::new(None, Vec::new(), b"a secret"),
                    taxes: Arc::new(TaxTable::default()),
                    issuer: None,
                }),
                entropy,
                options,
            }
        }

        /// Inserts access tokens. The first one expires after 900 seconds, each other one `apart` after the one before.
        async fn insert_tokens(&self, number: u32, apart: Duration) {
            transact(self.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let now = uow.now().await?;
                    for nth in 0..number {
                        let token = AccessToken {
                            token_hash: TokenHash::of(&nth.to_string()),
                            session_id: SessionId::generate(now, &SeededEntropy::new(1)),
                            created_at: now,
                            expires_at: now.plus(Duration::from_secs(900) + apart * nth),
                        };
                        let repositories = uow.repositories(RecordKey::for_tests());
                        repositories.access_tokens().insert(token).await?;
                    }
                    Ok(())
                })
            })
            .await
            .unwrap();
        }

        async fn tokens(&self) -> u64 {
            let mut uow = self.store.begin(Mode::Read).await.unwrap();
            let tokens = uow.repositories(RecordKey::for_tests()).access_tokens();
            let all = AccessTokenQuery::ExpiredAt(Timestamp::from_seconds(4_000_000_000));
            tokens.count(Within::Installation, &all).await.unwrap()
        }
    }

    fn running() -> watch::Receiver<bool> {
        watch::channel(false).1
    }

    #[tokio::test(start_paused = true)]
    async fn short_lived_records_are_removed_within_minutes_after_they_expire() {
        let world = World::new();
        world.insert_tokens(2, Duration::from_secs(1)).await;
        let sweeper = world.sweeper(1).start(&Metrics::new());
        for (second, left) in [(899, 2), (900, 1), (901, 0)] {
            world
                .clock
                .set(Timestamp::from_seconds(1_800_000_000 + second));
            // The sweep in this period uses the current time of the clock.
            sleep(SHORT + Duration::from_secs(1)).await;
            assert_eq!(world.tokens().await, left, "{second}");
        }
        sweeper.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn records_that_expire_together_are_removed_in_slices() {
        let world = World::new();
        world.insert_tokens(5_000, Duration::ZERO).await;
        world.clock.advance(DAY);
        let before = *world.store.1.lock().unwrap();
        let swept = world
            .sweeper(1)
            .remove_expired(&SHORT_LIVED, &running())
            .await;
        assert_eq!((swept, world.tokens().await), (SweepOutcome::Done, 0));
        // Slices of 50, 100, 200, 400 and 800, then 1,000 each, an empty slice, and one slice of each other kind.
        let units = *world.store.1.lock().unwrap() - before;
        assert_eq!(units, 5 + 4 + 1 + 7);
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_at_a_time_sweeps_and_another_takes_over_after_a_crash() {
        let world = World::new();
        world.insert_tokens(10, Duration::ZERO).await;
        world.clock.advance(DAY);
        let [dying, other] = [world.sweeper(1), world.sweeper(2)];
        assert!(dying.holder.acquire(world.store.as_ref()).await.unwrap());
        let swept = other.remove_expired(&SHORT_LIVED, &running()).await;
        assert_eq!((swept, world.tokens().await), (SweepOutcome::Busy, 10));
        world.clock.advance(Duration::from_secs(60));
        let swept = other.remove_expired(&SHORT_LIVED, &running()).await;
        assert_eq!((swept, world.tokens().await), (SweepOutcome::Done, 0));
        let swept = dying.remove_expired(&SHORT_LIVED, &running()).await;
        assert_eq!(swept, SweepOutcome::Busy, "it has lost the lease");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_retries_when_the_lease_of_the_sweeping_node_has_expired() {
        let world = World::new();
        world.insert_tokens(10, Duration::ZERO).await;
        world.clock.advance(DAY);
        let dying = world.sweeper(1);
        assert!(dying.holder.acquire(world.store.as_ref()).await.unwrap());
        let other = world.sweeper(2).start(&Metrics::new());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.tokens().await, 10);
        world.clock.advance(Duration::from_secs(60));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(world.tokens().await, 0);
        other.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_sweeper_releases_its_lease_at_once() {
        let world = World::new();
        let first = world.sweeper(1).start(&Metrics::new());
        sleep(Duration::from_secs(1)).await;
        first.stop().await;
        world.insert_tokens(10, Duration::ZERO).await;
        world.clock.advance(DAY);
        let second = world.sweeper(2).start(&Metrics::new());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.tokens().await, 0);
        second.stop().await;
    }

    #[tokio::test]
    async fn the_daily_sweep_removes_ended_records_after_the_time_of_their_setting() {
        let world = World::new();
        let mut sweeper = world.sweeper(1);
        sweeper.history.lifecycle_records = DAY * 3;
        let now = world.clock.now();
        let record = |id: u64| LifecycleRecord {
            id: LifecycleId::generate(now, &SeededEntropy::new(id)),
            platform_id: PlatformId::generate(now, &SeededEntropy::new(1)),
            from_status: None,
            to_status: PlatformStatus::Active,
            triggered_by: "ada".to_owned(),
            trigger_type: "user".to_owned(),
            reason: None,
            metadata: serde_json::json!({}),
            created_at: now,
        };
        let records = (0..3).map(record).collect();
        let mut uow = world.store.begin(Mode::Write).await.unwrap();
        let lifecycle = uow.repositories(RecordKey::for_tests()).lifecycle_records();
        lifecycle.insert_many(records).await.unwrap();
        uow.commit().await.unwrap();
        for (days, left) in [(2, 3), (1, 3), (1, 0)] {
            world.clock.advance(DAY * days);
            let swept = sweeper.remove_history(&running()).await;
            let mut uow = world.store.begin(Mode::Read).await.unwrap();
            let lifecycle = uow.repositories(RecordKey::for_tests()).lifecycle_records();
            let count = lifecycle.count(Within::Installation, &LifecycleQuery::All);
            assert_eq!((swept, count.await.unwrap()), (SweepOutcome::Done, left));
        }
    }

    #[tokio::test]
    async fn the_daily_sweep_archives_the_audit_log_after_the_time_of_its_setting() {
        let world = World::new();
        let mut sweeper = world.sweeper(1);
        sweeper.blobs = Arc::new(MemoryBlobs::default());
        sweeper.history.audit = DAY * 31;
        let now = world.clock.now();
        let entry = AuditEntry {
            id: AuditId::generate(now, &SeededEntropy::new(1)),
            stream: AuditStream::Changes,
            platform_id: None,
            actor_id: "ada".to_owned(),
            actor_type: "user".to_owned(),
            action: "thing.made".to_owned(),
            entity_type: "thing".to_owned(),
            entity_id: "1".to_owned(),
            before: None,
            after: None,
            metadata: JsonText::of(&serde_json::json!({})),
            created_at: now,
        };
        let mut uow = world.store.begin(Mode::Write).await.unwrap();
        let entries = uow.repositories(RecordKey::for_tests()).audit_entries();
        entries.insert(entry).await.unwrap();
        uow.commit().await.unwrap();
        let cx = Context::system(Arc::clone(&sweeper.entropy));
        let sealed = seal(&cx, world.store.as_ref(), &sweeper.audit_key).await;
        assert_eq!(sealed.unwrap().entries, 1);
        // The month ends 17 days after the entry.
        for (days, left) in [(47, "thing.made"), (1, "audit.archived")] {
            world.clock.advance(DAY * days);
            let (_running, stopped) = watch::channel(false);
            let swept = sweeper.archive_audit(&stopped).await;
            let mut uow = world.store.begin(Mode::Read).await.unwrap();
            let entries = uow.repositories(RecordKey::for_tests()).audit_entries();
            let all = AuditQuery::default();
            let found = entries.list(Within::Installation, &all, 10).await.unwrap();
            let actions: Vec<_> = found.iter().map(|entry| entry.action.as_str()).collect();
            assert_eq!((swept, actions), (SweepOutcome::Done, vec![left]));
        }
    }

    #[tokio::test]
    async fn the_daily_sweep_rotates_the_signing_keys() {
        let world = World::new();
        let sweeper = world.sweeper(1);
        let cx = Context::system(Arc::clone(&sweeper.entropy));
        assert_eq!(sweeper.rotate_keys().await.unwrap(), 0);
        transact(world.store.as_ref(), |uow, _| {
            Box::pin(service_token::create_next_key(&cx, uow, &sweeper.cipher))
        })
        .await
        .unwrap();
        let mut removed = 0;
        for _ in 0..100 {
            removed += sweeper.rotate_keys().await.unwrap();
            let mut uow = world.store.begin(Mode::Read).await.unwrap();
            let keys = uow.repositories(RecordKey::for_tests()).signing_keys();
            let all = keys.list(Within::Installation, &SigningKeyQuery::All, 10);
            assert!((1..=2).contains(&all.await.unwrap().len()));
            world.clock.advance(DAY);
        }
        assert_eq!(removed, 3);
    }
}
