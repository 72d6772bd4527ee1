//! What the account has.

use crate::clock::{Clock, Ids};
use crate::queue::Queue;
use crate::script::Script;
use crate::script::assets::Assets;
use crate::settings::Settings;
use crate::{d1, kv, r2};

/// Kinds of things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// D1 databases.
    D1,
    /// R2 buckets.
    R2,
    /// KV namespaces.
    Kv,
    /// Queues.
    Queue,
    /// Worker scripts.
    Worker,
}

/// The account.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) d1: Vec<d1::Database>,
    pub(crate) r2: Vec<r2::Bucket>,
    pub(crate) kv: Vec<kv::Namespace>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) scripts: Vec<Script>,
    pub(crate) assets: Assets,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            clock: Clock::new(),
            ids: Ids::default(),
            d1: Vec::new(),
            r2: Vec::new(),
            kv: Vec::new(),
            queues: Vec::new(),
            scripts: Vec::new(),
            assets: Assets::default(),
        }
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::D1 => self.d1.len(),
            Kind::R2 => self.r2.len(),
            Kind::Kv => self.kv.len(),
            Kind::Queue => self.queues.len(),
            Kind::Worker => self.scripts.len(),
        }
    }

    pub(crate) fn script(&self, name: &str) -> Option<&Script> {
        self.scripts.iter().find(|script| script.name == name)
    }
}
