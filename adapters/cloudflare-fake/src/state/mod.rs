//! The state of the account.

pub(crate) mod binding;
pub(crate) mod d1;
pub(crate) mod dns;
pub(crate) mod hostname;
pub(crate) mod kv;
pub(crate) mod pages_assets;
pub(crate) mod pages_domain;
pub(crate) mod project;
pub(crate) mod queue;
pub(crate) mod r2;
pub(crate) mod route;
pub(crate) mod script;
pub(crate) mod tail;
pub(crate) mod worker_domain;
pub(crate) mod zone;

use std::collections::VecDeque;

use core_fake_kit::Ids;

use self::project::{DeploymentEnd, Project};
use self::queue::Queue;
use self::script::Script;
use self::tail::Tail;
use self::worker_domain::Domain;
use self::zone::Zone;
use crate::clock::Clock;
use crate::settings::Settings;

/// The kinds of objects that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The D1 databases.
    D1,
    /// The R2 buckets.
    R2,
    /// The KV namespaces.
    Kv,
    /// The message queues.
    Queue,
    /// The worker scripts.
    Worker,
    /// Custom domains of workers.
    WorkerDomain,
    /// Worker routes, of all zones.
    Route,
    /// DNS records, of all zones.
    DnsRecord,
    /// Custom hostnames, of all zones.
    CustomHostname,
    /// The Pages projects.
    PagesProject,
    /// Deployments, of all Pages projects.
    PagesDeployment,
}

/// The objects of the account.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) d1: Vec<d1::Database>,
    pub(crate) r2: Vec<r2::Bucket>,
    pub(crate) kv: Vec<kv::Namespace>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) worker_domains: Vec<Domain>,
    pub(crate) zones: Vec<Zone>,
    pub(crate) projects: Vec<Project>,
    pub(crate) pages_assets: pages_assets::Assets,
    /// The outcomes of the next deployments.
    pub(crate) deployment_ends: VecDeque<DeploymentEnd>,
    /// The open tails of workers and deployments.
    pub(crate) tails: Vec<Tail>,
    /// The address of the server, with the port.
    pub(crate) address: String,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        let zone = settings.zone.clone();
        let mut state = Self {
            settings,
            clock: Clock::new(),
            ids: Ids::default(),
            d1: Vec::new(),
            r2: Vec::new(),
            kv: Vec::new(),
            queues: Vec::new(),
            scripts: Vec::new(),
            worker_domains: Vec::new(),
            zones: Vec::new(),
            projects: Vec::new(),
            pages_assets: pages_assets::Assets::default(),
            deployment_ends: VecDeque::new(),
            tails: Vec::new(),
            address: String::new(),
        };
        state.add_zone(&zone, "active");
        state
    }

    /// Adds a zone and returns its id.
    pub(crate) fn add_zone(&mut self, name: &str, status: &str) -> String {
        let zone = Zone::new(self.ids.hex(), self.clock.now(), name, status);
        let id = zone.id.clone();
        self.zones.push(zone);
        id
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::D1 => self.d1.len(),
            Kind::R2 => self.r2.len(),
            Kind::Kv => self.kv.len(),
            Kind::Queue => self.queues.len(),
            Kind::Worker => self.scripts.len(),
            Kind::WorkerDomain => self.worker_domains.len(),
            Kind::Route => self.zones.iter().map(|zone| zone.routes.len()).sum(),
            Kind::DnsRecord => self.zones.iter().map(|zone| zone.records.len()).sum(),
            Kind::CustomHostname => self.zones.iter().map(|zone| zone.hostnames.len()).sum(),
            Kind::PagesProject => self.projects.len(),
            Kind::PagesDeployment => self.projects.iter().map(Project::deployment_count).sum(),
        }
    }

    pub(crate) fn tail(&self, id: &str) -> Option<&Tail> {
        self.tails.iter().find(|tail| tail.id == id)
    }

    /// Returns the tails of a worker or a project.
    pub(crate) fn tails_of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a Tail> {
        self.tails.iter().filter(move |tail| tail.target == target)
    }

    /// Removes the files that no production deployment serves.
    pub(crate) fn remove_unused_contents(&mut self) {
        let served = self.projects.iter().filter_map(Project::production);
        let served = served.flat_map(|paths| paths.values().cloned()).collect();
        self.pages_assets.keep_only(&served);
    }

    pub(crate) fn project(&self, name: &str) -> Option<&Project> {
        self.projects.iter().find(|project| project.name == name)
    }

    pub(crate) fn script(&self, name: &str) -> Option<&Script> {
        self.scripts.iter().find(|script| script.name == name)
    }
}
