//! The records that a unit of work has read or written by key, so that it reads no record twice.

use std::any::{Any, TypeId};

use core_domain::kernel::{PlatformId, Record, Stored};
use core_domain::port::{Mode, Within};

use crate::tabular::Tabular;

/// The maximum number of records, of which the most recent are kept. Few enough for a linear search.
const CAPACITY: usize = 16;

/// The records that a unit has read, in the state in which it would read them again. A unit in [`Mode::Read`] or
/// [`Mode::Write`] sees one state of the store, which only the unit itself changes, so it can reuse them. In
/// [`Mode::ReadCommitted`] and [`Mode::Auto`] each read sees the latest committed state, so nothing is kept.
#[derive(Debug)]
pub(crate) struct IdentityMap {
    is_used: bool,
    records: Vec<CachedRecord>,
}

#[derive(Debug)]
struct CachedRecord {
    kind: TypeId,
    /// The [`Stored`] record.
    stored: Box<dyn Any + Send>,
    /// The platform to which the read was limited. Reads limited to another platform go to the store.
    platform: Option<PlatformId>,
}

impl CachedRecord {
    fn downcast_ref<R: Record>(&self) -> Option<&Stored<R>> {
        if self.kind != TypeId::of::<R>() {
            return None;
        }
        self.stored.downcast_ref()
    }

    fn is<R: Record>(&self, key: &str) -> bool {
        self.downcast_ref::<R>()
            .is_some_and(|stored| stored.key() == key)
    }
}

impl IdentityMap {
    pub(crate) const fn of(mode: Mode) -> Self {
        Self {
            is_used: matches!(mode, Mode::Read | Mode::Write),
            records: Vec::new(),
        }
    }

    /// Returns the record with this key if the unit has read it within the same limits.
    pub(crate) fn get<R: Tabular>(&self, within: Within<'_>, key: &str) -> Option<Stored<R>> {
        let known = self.records.iter().find(|known| known.is::<R>(key))?;
        let is_reached = match within {
            Within::Installation => true,
            Within::Platform(platform) => known.platform.as_ref() == Some(platform),
        };
        known.downcast_ref().filter(|_| is_reached).cloned()
    }

    /// Keeps a record that was read.
    pub(crate) fn insert<R: Tabular>(&mut self, within: Within<'_>, stored: &Stored<R>) {
        if !self.is_used {
            return;
        }
        let platform = match within {
            Within::Installation => None,
            Within::Platform(platform) => Some(platform.clone()),
        };
        let _ = self.remove::<R>(stored.key());
        self.add(stored, platform);
    }

    /// Keeps the new version of a record that was replaced.
    pub(crate) fn replace<R: Tabular>(&mut self, stored: &Stored<R>) {
        if !self.is_used {
            return;
        }
        // A record never changes its platform.
        let known = self.remove::<R>(stored.key());
        self.add(stored, known.and_then(|known| known.platform));
    }

    /// Evicts a record.
    pub(crate) fn evict<R: Tabular>(&mut self, key: &str) {
        let _ = self.remove::<R>(key);
    }

    /// Evicts every record of a type.
    pub(crate) fn evict_all<R: Tabular>(&mut self) {
        self.records.retain(|known| known.kind != TypeId::of::<R>());
    }

    fn remove<R: Tabular>(&mut self, key: &str) -> Option<CachedRecord> {
        let at = self.records.iter().position(|known| known.is::<R>(key))?;
        Some(self.records.remove(at))
    }

    fn add<R: Tabular>(&mut self, stored: &Stored<R>, platform: Option<PlatformId>) {
        if self.records.len() >= CAPACITY {
            self.records.remove(0);
        }
        self.records.push(CachedRecord {
            kind: TypeId::of::<R>(),
            stored: Box::new(stored.clone()),
            platform,
        });
    }
}
