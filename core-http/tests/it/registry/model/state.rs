//! All records of the registry, read directly from the store.

use core_domain::access::RecordKey;
use core_domain::kernel::{JsonText, PageQuery, Record, Stored};
use core_domain::port::{Mode, Repository, UnitOfWork, Within};
use core_domain::registry::{
    Build, BuildQuery, ConfigKey, ConfigVersion, ConfigVersionQuery, CustomDomain,
    CustomDomainQuery, Deployment, DeploymentQuery, DnsRecord, DnsRecordQuery, Entity,
    EntityFilter, EntityQuery, FeatureActivation, FeatureActivationQuery, LifecycleQuery,
    LifecycleRecord, Platform, PlatformConfig, PlatformConfigQuery, PlatformQuery, Resource,
    ResourceQuery, ResourceSecret, ResourceSecretQuery, WorkspaceStack, WorkspaceStackFilter,
    WorkspaceStackQuery,
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
    pub(super) secrets: Vec<Stored<ResourceSecret>>,
    pub(super) features: Vec<Stored<FeatureActivation>>,
    pub(super) builds: Vec<Stored<Build>>,
    pub(super) stacks: Vec<Stored<WorkspaceStack>>,
    pub(super) dns: Vec<Stored<DnsRecord>>,
    pub(super) domains: Vec<Stored<CustomDomain>>,
    pub(super) configs: Vec<Stored<PlatformConfig>>,
    pub(super) config_versions: Vec<Stored<ConfigVersion>>,
    pub(super) deployments: Vec<Stored<Deployment>>,
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
        let deleted = true;
        let entities = EntityQuery::Listed(EntityFilter {
            include_deleted: deleted,
            ..EntityFilter::default()
        });
        let resources: Vec<Stored<Resource>> = all!(uow, resources, ResourceQuery::All { deleted });
        let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        let stacks: Vec<Stored<WorkspaceStack>> = all!(uow, workspace_stacks, stacks);
        let (mut secrets, mut dns, mut config_versions) = (Vec::new(), Vec::new(), Vec::new());
        for resource in &resources {
            let of_resource = ResourceSecretQuery::OfResource(resource.id.clone());
            secrets.extend(all!(uow, resource_secrets, of_resource));
        }
        for stack in &stacks {
            let stack_id = stack.id.clone();
            let of_stack = DnsRecordQuery::OfStack { stack_id, deleted };
            dns.extend(all!(uow, dns_records, of_stack));
        }
        for key in ConfigKey::ALL {
            config_versions.extend(all!(uow, config_versions, ConfigVersionQuery::Of(*key)));
        }
        let features = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: true,
        };
        Self {
            platforms: all!(uow, platforms, PlatformQuery::All { deleted }),
            lifecycle: all!(uow, lifecycle_records, LifecycleQuery::All),
            entities: all!(uow, entities, entities),
            resources,
            secrets,
            features: all!(uow, feature_activations, features),
            builds: all!(uow, builds, BuildQuery::All),
            stacks,
            dns,
            domains: all!(uow, custom_domains, CustomDomainQuery::All { deleted }),
            configs: all!(uow, platform_configs, PlatformConfigQuery::All),
            config_versions,
            deployments: all!(uow, deployments, DeploymentQuery::All { in_flight: false }),
            audit: without_request(all!(uow, audit_entries, AuditQuery::default())),
        }
    }
}

/// Removes the request metadata of audit entries, because only requests over HTTP have an address.
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
    let mut page = PageQuery::first(1_000);
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
