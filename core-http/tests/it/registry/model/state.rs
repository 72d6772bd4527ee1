//! Everything the registry keeps, read past every scope.

use core_domain::access::RecordKey;
use core_domain::kernel::{JsonText, PageRequest, Record, Stored};
use core_domain::port::{Mode, Repository, UnitOfWork, Within};
use core_domain::registry::{
    Entity, EntityFilter, EntityQuery, LifecycleQuery, LifecycleRecord, Platform, PlatformQuery,
    Resource, ResourceQuery,
};
use core_domain::shared::{AuditEntry, AuditQuery};

use crate::world::World;

/// All rows of a store, in the order of their lists.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) platforms: Vec<Stored<Platform>>,
    pub(super) lifecycle: Vec<Stored<LifecycleRecord>>,
    pub(super) entities: Vec<Stored<Entity>>,
    pub(super) resources: Vec<Stored<Resource>>,
    pub(super) audit: Vec<Stored<AuditEntry>>,
}

macro_rules! all {
    ($uow:ident, $accessor:ident, $query:expr) => {
        all_of(
            $uow.repositories(RecordKey::for_tests()).$accessor(),
            &$query,
        )
        .await
    };
}

impl State {
    pub(super) async fn of(world: &World) -> Self {
        let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
        let uow: &mut dyn UnitOfWork = uow.as_mut();
        let entities = EntityQuery::Listed(EntityFilter {
            include_deleted: true,
            ..EntityFilter::default()
        });
        Self {
            platforms: all!(uow, platforms, PlatformQuery::All { deleted: true }),
            lifecycle: all!(uow, lifecycle_records, LifecycleQuery::All),
            entities: all!(uow, entities, entities),
            resources: all!(uow, resources, ResourceQuery::All { deleted: true }),
            audit: without_request(all!(uow, audit_entries, AuditQuery::default())),
        }
    }
}

/// The request behind an entry has an address when it came over HTTP.
fn without_request(mut entries: Vec<Stored<AuditEntry>>) -> Vec<Stored<AuditEntry>> {
    for entry in &mut entries {
        let mut bare = entry.edit();
        bare.metadata = JsonText::of(&());
        *entry = Stored::new(bare, entry.version());
    }
    entries
}

async fn all_of<R: Record>(
    repository: &mut (impl Repository<R> + ?Sized),
    query: &R::Query,
) -> Vec<Stored<R>> {
    let mut page = PageRequest::first(1_000);
    let mut all = Vec::new();
    loop {
        let found = repository.page(Within::Installation, query, &page).await;
        let found = found.unwrap();
        all.extend(found.items);
        page.cursor = found.next;
        if page.cursor.is_none() {
            return all;
        }
    }
}
