//! Objects of other owners, and records that users of the platform created by hand. No job may touch any of them.

use std::collections::BTreeSet;

use core_domain::kernel::{BoundedJson, EntityId, Environment, Line, Name, PlatformId, Slug};
use core_domain::port::{self, Infrastructure, ResourceRef};
use core_domain::registry::{
    CreateEntity, CreateResource, CustomDomain, CustomDomainQuery, DnsRecord, EntityType,
    FeatureActivation, FeatureActivationQuery, Platform, ProviderName, Resource, ResourceQuery,
    ResourceStatus, ResourceType, WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery,
    resource_name,
};
use core_domain::use_case::registry::{entity, resource};
use serde_json::json;

use crate::world::{Platforms, as_operator};

/// The slug of the entity of the platform that no job works for.
pub(super) const ANNEX: &str = "annex";

/// The name of another owner's object, which a user of the platform has recorded as the platform's own.
pub(super) const BY_HAND: &str = "engines-db";

/// The owner of objects that belong to no platform of the installation.
const STRANGER: &str = "somebody-else";

/// Everything that does not belong to the platform.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Others {
    /// Type, name and owner of each object at the provider.
    objects: Vec<(ResourceType, String, String)>,
    resources: Vec<Resource>,
    features: Vec<FeatureActivation>,
    stacks: Vec<WorkspaceStack>,
    domains: Vec<CustomDomain>,
    /// The hostnames that the provider serves.
    served: BTreeSet<String>,
    /// Records that users of the platform created by hand for another entity. They are deleted with their environment,
    /// and with the platform.
    pub(super) by_hand: Vec<Resource>,
}

impl Others {
    /// Creates objects of another owner: some with names that look like the platform's own, and some with names for
    /// which users of the platform have created records by hand.
    pub(super) async fn create(world: &Platforms, platform: &PlatformId) {
        let slug = world.find::<Platform>(platform).await.unwrap().slug;
        for resource_type in [ResourceType::D1, ResourceType::Worker] {
            let name = resource_name(platform, &slug, Environment::Stg, resource_type);
            make(world, resource_type, &name, STRANGER).await;
        }
        for name in ["data", "search", BY_HAND] {
            make(world, ResourceType::D1, name, STRANGER).await;
            make(world, ResourceType::R2, name, STRANGER).await;
        }
        let annex = &annex(world, platform).await;
        enter(world, platform, annex, (ResourceType::D1, BY_HAND)).await;
    }

    /// Collects everything that does not belong to a platform.
    pub(super) async fn beside(world: &Platforms, platform: &PlatformId) -> Self {
        let inventory = world.provider.inventory().await.unwrap().into_iter();
        let objects = inventory.filter(|(_, owner)| owner != platform.as_str());
        let objects = objects.map(|(object, owner)| (object.resource_type, object.name, owner));
        let mut objects: Vec<_> = objects.collect();
        objects.sort_by(|a, b| (a.0.as_str(), &a.1).cmp(&(b.0.as_str(), &b.1)));
        let mut resources: Vec<Resource> = world.list(ResourceQuery::All { deleted: true }).await;
        resources.retain(|entry| entry.platform_id != *platform);
        let mut by_hand = world.entries(platform, false).await;
        by_hand.retain(|entry| entry.cf_name.as_str() == BY_HAND);
        let features = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: true,
        };
        let mut features: Vec<FeatureActivation> = world.list(features).await;
        features.retain(|feature| feature.platform_id != *platform);
        let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        let mut stacks: Vec<WorkspaceStack> = world.list(stacks).await;
        stacks.retain(|stack| stack.platform_id != *platform);
        let domains = CustomDomainQuery::All { deleted: true };
        let mut domains: Vec<CustomDomain> = world.list(domains).await;
        domains.retain(|domain| domain.platform_id != *platform);
        let served = served_hostnames(world, &domains).await;
        assert!(!served.is_empty() && !stacks.is_empty() && objects.len() > 15);
        Self {
            objects,
            resources,
            features,
            stacks,
            domains,
            served,
            by_hand,
        }
    }
}

/// Creates an object at the provider without a job.
pub(super) async fn make(world: &Platforms, resource_type: ResourceType, name: &str, owner: &str) {
    let config = if resource_type == ResourceType::Worker {
        json!({ "mainModule": "a.js", "modules": { "a.js": "export default {}" }, "bindings": [] })
    } else {
        json!({})
    };
    let request = port::ObjectRequest {
        resource: ResourceRef {
            resource_type,
            name: name.to_owned(),
        },
        owner: owner.to_owned(),
        effect_key: format!("{resource_type}-{name}"),
        config,
    };
    world.provider.create(&request).await.unwrap();
}

/// Returns the body of a record that is created by hand.
pub(super) fn by_hand(
    (resource_type, name): (ResourceType, &str),
    environment: Environment,
) -> CreateResource {
    CreateResource {
        stack_id: None,
        resource_type,
        service_name: ProviderName::parse("search").unwrap(),
        environment,
        cf_name: ProviderName::parse(name).unwrap(),
        cf_id: Some(Line::parse("by-hand").unwrap()),
        cf_url: None,
        provision_job_id: None,
        config: BoundedJson::default(),
    }
}

/// Creates a record by hand.
pub(super) async fn enter(
    world: &Platforms,
    platform: &PlatformId,
    entity: &EntityId,
    named: (ResourceType, &str),
) -> Resource {
    let new = &by_hand(named, Environment::Prod);
    let entered = as_operator!(world, platform, |cx, scope, uow| resource::create(
        cx,
        scope,
        uow,
        entity,
        new.clone()
    ));
    assert_eq!(entered.status, ResourceStatus::Pending);
    entered.into_inner()
}

/// Creates another tenant of the platform.
async fn annex(world: &Platforms, platform: &PlatformId) -> EntityId {
    let new = &CreateEntity {
        name: Name::parse("Annex").unwrap(),
        slug: Slug::parse(ANNEX).unwrap(),
        entity_type: EntityType::Tenant,
        parent_id: None,
    };
    let annex = as_operator!(world, platform, |cx, scope, uow| entity::create(
        cx,
        scope,
        uow,
        new.clone()
    ));
    annex.id.clone()
}

/// Returns those hostnames of the domains that the provider serves.
pub(super) async fn served_hostnames(
    world: &Platforms,
    domains: &[CustomDomain],
) -> BTreeSet<String> {
    let mut served = BTreeSet::new();
    for domain in domains {
        let record: Option<DnsRecord> = world.find(&domain.dns_record_id).await;
        let target = match &record {
            Some(record) => target_of(world, record).await,
            None => None,
        };
        let Some(target) = target else {
            continue;
        };
        let (hostname, owner) = (domain.hostname.as_str(), domain.platform_id.as_str());
        let found = world.provider.get_served_hostname(hostname, owner, &target);
        served.extend(found.await.unwrap().map(|_| hostname.to_owned()));
    }
    served
}

/// Returns the object that a DNS record points to.
pub(super) async fn target_of(world: &Platforms, record: &DnsRecord) -> Option<ResourceRef> {
    let resource: Resource = world.find(&record.resource_id).await?;
    Some(ResourceRef {
        resource_type: resource.resource_type,
        name: resource.cf_name.to_string(),
    })
}
