//! Says what a suite is made of, and builds it.

use std::path::PathBuf;
use std::sync::Arc;

use core_domain::kernel::{Clock, Entropy, Secret};
use core_domain::port::{
    Blobs, DnsResolver, Infrastructure, Mailer, Outlet, Passkeys, PasswordHasher, SiteArchives,
    Store, WebhookSender,
};
use core_domain::use_case::provisioning::{JobKind, KindError, Kinds};

use crate::open::StoreChoice;
use crate::relay::LogOutlet;
use crate::secret::{InstallationSecret, MasterKey};
use crate::settings::Settings;
use crate::{Suite, SystemClock, SystemEntropy};

/// What a suite is made of. Everything has a default that works on one machine.
#[derive(Clone, Debug)]
pub struct SuiteBuilder {
    pub(crate) store: StoreChoice,
    pub(crate) data_folder: Option<PathBuf>,
    /// `None`: the system's, and for Postgres the database's.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) hasher: Option<Arc<dyn PasswordHasher>>,
    pub(crate) infrastructure: Option<Arc<dyn Infrastructure>>,
    #[cfg(feature = "cloudflare")]
    pub(crate) cloudflare: Option<crate::CloudflareAccount>,
    pub(crate) blobs: Option<Arc<dyn Blobs>>,
    pub(crate) archives: Option<Arc<dyn SiteArchives>>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) mailer: Option<Arc<dyn Mailer>>,
    pub(crate) webhook_sender: Option<Arc<dyn WebhookSender>>,
    #[cfg(feature = "smtp")]
    pub(crate) smtp: Option<String>,
    pub(crate) passkeys: Option<Arc<dyn Passkeys>>,
    pub(crate) dns_resolver: Option<Arc<dyn DnsResolver>>,
    pub(crate) secret: Option<InstallationSecret>,
    pub(crate) master_key: Option<MasterKey>,
    pub(crate) service_key: Option<Secret>,
    pub(crate) iam_url: String,
    #[cfg(feature = "local")]
    pub(crate) site_port: u16,
    #[cfg(feature = "local")]
    pub(crate) local_latency: std::time::Duration,
    /// The host's own kinds of jobs.
    pub(crate) kinds: Result<Kinds, KindError>,
    #[cfg(feature = "local")]
    pub(crate) workerd: Option<core_local::Workerd>,
    #[cfg(feature = "local")]
    pub(crate) worker_host: Option<core_local::WorkerHostCommand>,
    pub(crate) settings: Settings,
}

impl Default for SuiteBuilder {
    fn default() -> Self {
        Self {
            store: StoreChoice::Memory,
            data_folder: None,
            clock: None,
            entropy: Arc::new(SystemEntropy),
            hasher: None,
            infrastructure: None,
            #[cfg(feature = "cloudflare")]
            cloudflare: None,
            blobs: None,
            archives: None,
            outlet: Arc::new(LogOutlet),
            mailer: None,
            webhook_sender: None,
            #[cfg(feature = "smtp")]
            smtp: None,
            passkeys: None,
            dns_resolver: None,
            secret: None,
            master_key: None,
            service_key: None,
            iam_url: "http://127.0.0.1:8081".to_owned(),
            #[cfg(feature = "local")]
            site_port: 8090,
            #[cfg(feature = "local")]
            local_latency: std::time::Duration::ZERO,
            kinds: Ok(Kinds::new()),
            #[cfg(feature = "local")]
            workerd: None,
            #[cfg(feature = "local")]
            worker_host: None,
            settings: Settings::default(),
        }
    }
}

impl Suite {
    /// Begins a suite with defaults that work on one machine.
    #[must_use]
    pub fn builder() -> SuiteBuilder {
        SuiteBuilder::default()
    }
}

impl SuiteBuilder {
    /// Keeps records in this process; they are gone when it ends. The default.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.store = StoreChoice::Memory;
        self
    }

    /// Keeps records in a SQLite file (feature `sqlite`).
    #[must_use]
    pub fn sqlite(mut self, file: impl Into<PathBuf>) -> Self {
        self.store = StoreChoice::Sqlite(file.into());
        self
    }

    /// Keeps records in a Postgres database (feature `postgres`).
    #[must_use]
    pub fn postgres(mut self, url: impl Into<String>) -> Self {
        self.store = StoreChoice::Postgres(url.into());
        self
    }

    /// Keeps records in a store of your own.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = StoreChoice::Given(store);
        self
    }

    /// Where the local provider, uploads and the installation's secret are kept. Without it: in a temporary folder that
    /// goes with the suite.
    #[must_use]
    pub fn data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = Some(folder.into());
        self
    }

    /// Takes the time from another clock. Without it: the system's, and in units of work on Postgres the database's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes randomness from elsewhere. It must be fit for secrets.
    #[must_use]
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.entropy = entropy;
        self
    }

    /// Hashes passwords in another way than Argon2id with 19 MiB.
    #[must_use]
    pub fn password_hasher(mut self, hasher: Arc<dyn PasswordHasher>) -> Self {
        self.hasher = Some(hasher);
        self
    }

    /// Makes infrastructure elsewhere than on this machine; `Suite::sites` is empty then.
    #[must_use]
    pub fn infrastructure(mut self, infrastructure: Arc<dyn Infrastructure>) -> Self {
        self.infrastructure = Some(infrastructure);
        self
    }

    /// Makes infrastructure in an account at Cloudflare (feature `cloudflare`), as `settings.cloudflare` says; `Suite::sites`
    /// is empty then. A provider that is given goes before it.
    #[cfg(feature = "cloudflare")]
    #[must_use]
    pub fn cloudflare(mut self, account: crate::CloudflareAccount) -> Self {
        self.cloudflare = Some(account);
        self
    }

    /// Keeps uploads elsewhere than in the data folder.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Reads uploaded sites in another way than `UnpackArchives`.
    #[must_use]
    pub fn archives(mut self, archives: Arc<dyn SiteArchives>) -> Self {
        self.archives = Some(archives);
        self
    }

    /// Hands what happens (`platform.status`) to others than the log. Nothing is lost: a message that is not taken is kept
    /// and comes again, after a crash as well.
    #[must_use]
    pub fn outlet(mut self, outlet: Arc<dyn Outlet>) -> Self {
        self.outlet = outlet;
        self
    }

    /// Sends mail in another way than into the folder `outbox` of the data folder. No mail is lost: one that is not taken is
    /// kept and comes again for two days, after a crash as well.
    #[must_use]
    pub fn mailer(mut self, mailer: Arc<dyn Mailer>) -> Self {
        self.mailer = Some(mailer);
        self
    }

    /// Sends webhooks in another way than over HTTP (feature `webhooks`). Without it and without the feature they cannot be
    /// sent, which their messages say. A message that is not taken comes again for three days, after a crash as well.
    #[must_use]
    pub fn webhook_sender(mut self, sender: Arc<dyn WebhookSender>) -> Self {
        self.webhook_sender = Some(sender);
        self
    }

    /// Sends mail by a server (feature `smtp`): `smtp://user:password@host:587` or `smtps://host:465`, see
    /// [`core_smtp::SmtpUrl`]. It needs a sender, [`SuiteBuilder::mail_from`]. A mailer that is given goes before it.
    #[cfg(feature = "smtp")]
    #[must_use]
    pub fn smtp(mut self, url: impl Into<String>) -> Self {
        self.smtp = Some(url.into());
        self
    }

    /// Who mails come from: `Name <address@example.org>`. Also `settings.mail.sender`.
    #[must_use]
    pub fn mail_from(mut self, sender: impl Into<String>) -> Self {
        self.settings.mail.sender = sender.into();
        self
    }

    /// Registers and verifies passkeys in another way than `webauthn` does for the host of IAM's address. Without it and without
    /// the feature `webauthn`, or where the address has no domain name, there are none, and their routes say so.
    #[must_use]
    pub fn passkeys(mut self, passkeys: Arc<dyn Passkeys>) -> Self {
        self.passkeys = Some(passkeys);
        self
    }

    /// Looks up the DNS records of custom domains in another way than by name servers (`settings.dns`). Without it and
    /// without the feature `dns` no domain is verified by itself: it stays `pending` and says which records it takes.
    #[must_use]
    pub fn dns_resolver(mut self, resolver: Arc<dyn DnsResolver>) -> Self {
        self.dns_resolver = Some(resolver);
        self
    }

    /// The installation's secret. Without it, the one kept in the data folder. All nodes of an installation need the same.
    #[must_use]
    pub fn secret(mut self, bytes: [u8; 32]) -> Self {
        self.secret = Some(InstallationSecret::new(bytes));
        self
    }

    /// The key that is encrypted with what is stored and must be read again: signing keys, mails, answers that hold secrets.
    /// Without it, one derived from the installation's secret. All nodes of an installation need the same.
    #[must_use]
    pub fn master_key(mut self, bytes: [u8; 32]) -> Self {
        self.master_key = Some(MasterKey::new(bytes));
        self
    }

    /// The key of operators and of other services, of 16 characters at least. Without it **every request passes**
    /// unauthenticated.
    #[must_use]
    pub fn service_key(mut self, key: impl Into<String>) -> Self {
        self.service_key = Some(Secret::new(key));
        self
    }

    /// The address people reach IAM at: decides the cookie's name, and is the origin its cookies are trusted from.
    #[must_use]
    pub fn iam_url(mut self, url: impl Into<String>) -> Self {
        self.iam_url = url.into();
        self
    }

    /// The port the local sites are served at, for the addresses of deployments.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn site_port(mut self, port: u16) -> Self {
        self.site_port = port;
        self
    }

    /// Lets the local provider wait this long before and after every change, to watch jobs at work.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn local_latency(mut self, latency: std::time::Duration) -> Self {
        self.local_latency = latency;
        self
    }

    /// Runs the workers of the local provider with this program, see [`core_local::find_workerd`]. Without it they are stored
    /// alone, and their addresses say so.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn workerd(mut self, workerd: core_local::Workerd) -> Self {
        self.workerd = Some(workerd);
        self
    }

    /// Hosts the workers of the local provider in a process of its own, which this command starts, unless
    /// [`WorkerdOptions::process`](core_local::WorkerdOptions::process) is off. The command calls [`run_worker_host`]. Without
    /// it this process hosts them.
    ///
    /// [`run_worker_host`]: crate::run_worker_host
    #[cfg(feature = "local")]
    #[must_use]
    pub fn worker_host(mut self, command: core_local::WorkerHostCommand) -> Self {
        self.worker_host = Some(command);
        self
    }

    /// API paths of the gateway that need no credential. None by default.
    #[must_use]
    pub fn public_routes(mut self, routes: Vec<String>) -> Self {
        self.settings.gateway.public_routes = routes;
        self
    }

    /// Web origins that may call the gateway, and that IAM trusts with its cookies.
    #[must_use]
    pub fn allowed_origins(mut self, origins: Vec<String>) -> Self {
        self.settings.gateway.allowed_origins = origins;
        self
    }

    /// Proxies before the gateway and IAM whose `X-Forwarded-For` is believed: addresses or ranges such as `10.0.0.0/8`.
    /// Nobody by default.
    #[must_use]
    pub fn trusted_proxies(mut self, proxies: Vec<String>) -> Self {
        self.settings.gateway.trusted_proxies = proxies;
        self
    }

    /// Runs jobs of a kind of your own as well, see [`crate::jobs`]. Every process that shall run them needs the kind; one
    /// that does not know it leaves them to others.
    #[must_use]
    pub fn job_kind<K: JobKind>(mut self, kind: K) -> Self {
        self.kinds = self.kinds.and_then(|kinds| kinds.with(kind));
        self
    }

    /// How many jobs the process runs at a time, on the runtime the suite is built in. With 0 it queues jobs and leaves them
    /// to other processes on the same database. Also `settings.worker.slots`.
    #[must_use]
    pub fn worker_slots(mut self, slots: usize) -> Self {
        self.settings.worker.slots = slots;
        self
    }

    /// Every other limit and time-out: `.settings(|settings| settings.worker.slots = 8)`.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// The clock outside of units of work.
    pub(crate) fn clock_or_system(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock))
    }
}
