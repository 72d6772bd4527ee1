//! The scenarios for every job kind that creates or removes infrastructure, and their expected results. Each job kind
//! is one line in [`SCENARIOS`].

use core_domain::access::authorize_operator;
use core_domain::kernel::{BoundedJson, EntityId, Environment, JobId, JsonText, Line, PlatformId};
use core_domain::port::{Infrastructure, ResourceRef, transact};
use core_domain::registry::{
    ActivateFeature, AddCustomDomain, CreateDnsRecord, CustomDomain, CustomDomainQuery,
    DeactivateFeature, DnsRecord, DnsRecordQuery, DnsTargetType, Entity, EntityQuery, FeatureId,
    Hostname, NewFeatureId, Resource, ResourceType, WorkspaceStack, WorkspaceStackFilter,
    WorkspaceStackQuery,
};
use core_domain::stacks::{AppName, AppType, CreateTemplate, PublishVersion, SemVer, TemplateName};
use core_domain::use_case::registry::reconcile::{self, ReconcileCommand};
use core_domain::use_case::registry::workspace_stack::{
    self, ActivateStack, CreateApp, DeactivateStack,
};
use core_domain::use_case::registry::{
    auth_worker, custom_domain, dns_record, entity, feature, platform, resource,
};
use core_domain::use_case::stacks::{template, version};
use serde_json::json;

use super::others::{ANNEX, Others};
use super::snapshot::Snapshot;
use crate::world::{Calls, Image, JobCommand, Platforms, as_operator};

/// The request that queues the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Feature,
    FeatureNamed(&'static str),
    NoFeature {
        delete_data: bool,
    },
    /// Deactivates the feature and deletes its data.
    NoFeatureNamed(&'static str),
    Stack,
    NoStack {
        delete_data: bool,
    },
    App,
    Provision,
    Deprovision,
    Auth,
    Record,
    NoRecord,
    Domain,
    NoDomain,
    Suspend,
    /// Restores the platform after a suspension.
    Restore,
    /// Repairs the platform after an object was removed and another one was created at the provider by hand.
    Repair,
    /// Deletes the entity that owns everything, including all its resources.
    Cascade,
    /// Deletes the record of a store by hand; the store remains. This queues no job.
    Forget,
    /// Removes the platform permanently.
    HardDelete,
}

/// A job kind, the requests that must precede it, and whether a cancelled job of it leaves nothing behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) before: &'static [Request],
    pub(super) request: Request,
    pub(super) undoes: bool,
}

const fn scenario(before: &'static [Request], request: Request, undoes: bool) -> Scenario {
    Scenario {
        before,
        request,
        undoes,
    }
}

pub(super) const SCENARIOS: [Scenario; 18] = [
    scenario(&[], Request::Provision, true),
    scenario(&[Request::Provision], Request::Deprovision, false),
    scenario(&[Request::Provision], Request::Auth, false),
    scenario(&[Request::Stack], Request::Record, true),
    scenario(&[Request::Stack, Request::Record], Request::NoRecord, false),
    scenario(&[Request::Stack, Request::Record], Request::Domain, true),
    scenario(
        &[Request::Stack, Request::Record, Request::Domain],
        Request::NoDomain,
        false,
    ),
    scenario(
        &[
            Request::Stack,
            Request::Record,
            Request::Domain,
            Request::Suspend,
        ],
        Request::Restore,
        false,
    ),
    scenario(&[Request::Provision], Request::Repair, false),
    scenario(&[], Request::Feature, true),
    scenario(
        &[Request::Feature],
        Request::NoFeature { delete_data: true },
        false,
    ),
    scenario(&[], Request::Stack, true),
    scenario(
        &[Request::Stack, Request::NoStack { delete_data: false }],
        Request::Stack,
        true,
    ),
    scenario(
        &[Request::Stack, Request::App],
        Request::NoStack { delete_data: false },
        false,
    ),
    scenario(
        &[Request::Stack],
        Request::NoStack { delete_data: true },
        false,
    ),
    scenario(&[Request::Stack], Request::App, true),
    scenario(
        &[Request::Provision, Request::Stack, Request::Feature],
        Request::Cascade,
        false,
    ),
    scenario(
        &[Request::Provision, Request::Feature, Request::Forget],
        Request::HardDelete,
        false,
    ),
];

impl Scenario {
    /// Creates a platform with the required resources and nothing else, besides objects of other owners.
    pub(super) async fn create_platform(self, world: &Platforms) -> PlatformId {
        publish(world).await;
        let other = world.set_up_by("bob@example.org", "looms").await;
        for request in [
            Request::Stack,
            Request::Feature,
            Request::App,
            Request::Record,
            Request::Domain,
        ] {
            world.until_idle().await;
            ask(world, &other.platform_id, request).await;
        }
        world.until_idle().await;
        let done = world.set_up("engines").await;
        world
            .operate(JobCommand::Cancel, &done.job_id)
            .await
            .unwrap();
        let platform = done.platform_id;
        Others::create(world, &platform).await;
        for request in self.before {
            ask(world, &platform, *request).await;
            world.until_idle().await;
        }
        platform
    }

    /// Sends the request. Returns the id of the job.
    pub(super) async fn ask(self, world: &Platforms, platform: &PlatformId) -> JobId {
        ask(world, platform, self.request).await
    }

    /// Prepares a platform once, for many runs.
    pub(super) async fn prepare(self) -> PreparedScenario {
        let world = Platforms::memory().await;
        let platform = self.create_platform(&world).await;
        PreparedScenario {
            scenario: self,
            platform,
            image: world.image(),
        }
    }
}

/// A scenario and its prepared platform.
pub(super) struct PreparedScenario {
    scenario: Scenario,
    pub(super) platform: PlatformId,
    image: Image,
}

impl PreparedScenario {
    /// Returns a world in which the platform is prepared and nothing has been requested. Use one world at a time: they
    /// share a clock.
    pub(super) async fn world(&self) -> Platforms {
        Platforms::from_image(&self.image).await
    }

    /// Sends the request. Returns the id of the job.
    pub(super) async fn ask(&self, world: &Platforms) -> JobId {
        self.scenario.ask(world, &self.platform).await
    }

    /// Returns the state of the platform.
    pub(super) async fn snapshot(&self, world: &Platforms) -> Snapshot {
        Snapshot::of(world, &self.platform).await
    }

    /// Returns the result of an undisturbed run, and the number of its calls of the provider.
    pub(super) async fn run_undisturbed(&self) -> (Snapshot, Calls) {
        let (world, scenario) = (self.world().await, self.scenario);
        let mut before = self.snapshot(&world).await;
        if matches!(scenario.request, Request::Deprovision | Request::HardDelete) {
            before.others.by_hand.clear();
        }
        self.ask(&world).await;
        world.take_calls();
        world.until_idle().await;
        let calls = world.take_calls();
        let snapshot = self.snapshot(&world).await;
        assert!(snapshot.agrees(), "{scenario:?}: {snapshot:?}");
        assert_eq!(snapshot.others, before.others, "{scenario:?}");
        (snapshot, calls)
    }
}

async fn publish(world: &Platforms) {
    let cx = &world.operator();
    let operator = &authorize_operator(cx).unwrap();
    let new = &CreateTemplate {
        name: TemplateName::parse("shop").unwrap(),
        display_name: Line::parse("Shop").unwrap(),
        description: Line::parse("A shop").unwrap(),
        icon: None,
        domain: None,
    };
    let definition = json!({
        "resources": [
            { "name": "db", "type": "d1" },
            { "name": "api", "type": "worker", "mainModule": "api.js", "modules": { "api.js": "export default {}" },
              "bindings": [{ "name": "DB", "resource": "db" }] },
            { "name": "site", "type": "pages", "bindings": [{ "name": "API", "resource": "api" }] },
        ],
        "features": [{ "id": "search", "version": "1" }],
    });
    let release = &PublishVersion {
        version: SemVer::parse("1.0.0").unwrap(),
        stack_definition: BoundedJson::new(JsonText::of(&definition)).unwrap(),
        core_sdk_version: SemVer::parse("1.0.0").unwrap(),
    };
    let published = transact(world.store.as_ref(), |uow, _| {
        Box::pin(async move {
            template::create(cx, operator, uow, new.clone()).await?;
            version::publish(cx, operator, uow, &new.name, release.clone()).await
        })
    });
    published.await.unwrap();
}

pub(super) async fn tenant(world: &Platforms, platform: &PlatformId) -> EntityId {
    let mut tenants: Vec<Entity> = world.list(EntityQuery::Tenants).await;
    tenants.retain(|tenant| tenant.platform_id == *platform && tenant.slug.as_str() != ANNEX);
    tenants[0].id.clone()
}

async fn stack(world: &Platforms, platform: &PlatformId) -> WorkspaceStack {
    let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
    let mut stacks: Vec<WorkspaceStack> = world.list(stacks).await;
    stacks.retain(|stack| stack.platform_id == *platform);
    stacks.swap_remove(0)
}

/// Returns the job of a request, or the newest job for a request without one.
async fn ask(world: &Platforms, platform: &PlatformId, request: Request) -> JobId {
    let platform_id = platform.clone();
    let environment = Environment::Prod;
    match request {
        Request::Feature => activate(world, platform, "search").await,
        Request::FeatureNamed(name) => activate(world, platform, name).await,
        Request::NoFeature { delete_data } => {
            deactivate(world, platform, "search", delete_data).await
        }
        Request::NoFeatureNamed(name) => deactivate(world, platform, name, true).await,
        Request::Stack => {
            let command = &ActivateStack {
                platform_id,
                stack_id: Line::parse("shop").unwrap(),
                stack_version: SemVer::parse("1.0.0").unwrap(),
                entity_id: None,
                environment,
            };
            as_operator!(world, platform, |cx, scope, uow| workspace_stack::activate(
                cx,
                scope,
                uow,
                command.clone()
            ))
            .id
            .clone()
        }
        Request::NoStack { delete_data } => {
            let command = &DeactivateStack {
                platform_id,
                stack_instance_id: stack(world, platform).await.id,
                environment,
                delete_data,
            };
            as_operator!(world, platform, |cx, scope, uow| {
                workspace_stack::deactivate(cx, scope, uow, command.clone())
            })
            .id
            .clone()
        }
        Request::App => {
            let command = &CreateApp {
                platform_id,
                stack_id: stack(world, platform).await.id,
                app_name: AppName::parse("admin").unwrap(),
                app_type: AppType::Fullstack,
                with_database: true,
            };
            as_operator!(world, platform, |cx, scope, uow| {
                workspace_stack::create_app(cx, scope, uow, command.clone())
            })
            .id
            .clone()
        }
        Request::Provision => world.provision(platform, environment).await,
        Request::Deprovision => world.deprovision(platform, environment).await,
        Request::Auth => as_operator!(world, platform, |cx, scope, uow| auth_worker::upgrade(
            cx, scope, uow
        ))
        .id
        .clone(),
        Request::Record => ask_for_record(world, platform).await,
        Request::NoRecord => {
            let record = record(world, platform).await;
            let (stack, id) = (&record.stack_id, &record.id);
            as_operator!(world, platform, |cx, scope, uow| dns_record::delete(
                cx, scope, uow, stack, id
            ));
            unfinished_job(world, platform, "dns.remove").await
        }
        Request::Suspend => {
            as_operator!(world, platform, |cx, scope, uow| platform::suspend(
                cx, scope, uow, None
            ));
            unfinished_job(world, platform, "platform.hostnames").await
        }
        Request::Restore => {
            as_operator!(world, platform, |cx, scope, uow| platform::restore(
                cx, scope, uow, None
            ));
            unfinished_job(world, platform, "platform.hostnames").await
        }
        Request::Domain => ask_for_domain(world, platform).await,
        Request::NoDomain => {
            let domain = &domain(world, platform).await.id;
            as_operator!(world, platform, |cx, scope, uow| custom_domain::delete(
                cx, scope, uow, domain
            ));
            unfinished_job(world, platform, "domain.remove").await
        }
        Request::Cascade => {
            let entity = &tenant(world, platform).await;
            as_operator!(world, platform, |cx, scope, uow| entity::delete(
                cx, scope, uow, entity, true
            ));
            unfinished_job(world, platform, "entity.remove").await
        }
        Request::Forget => {
            let mut entries = world.entries(platform, false).await.into_iter();
            let forgotten = |entry: &Resource| {
                entry.resource_type == ResourceType::Kv && entry.environment == environment
            };
            let id = &entries.find(forgotten).unwrap().id;
            as_operator!(world, platform, |cx, scope, uow| resource::delete(
                cx, scope, uow, id
            ));
            world.jobs().await.swap_remove(0).id
        }
        Request::HardDelete => {
            world.hard_delete(platform).await;
            unfinished_job(world, platform, "platform.deprovision").await
        }
        Request::Repair => {
            inject_drift(world, platform).await;
            let command = &ReconcileCommand {
                platform_id,
                environment: None,
                repair: true,
                delete_data: true,
            };
            as_operator!(world, platform, |cx, scope, uow| reconcile::reconcile(
                cx,
                scope,
                uow,
                command.clone()
            ))
            .id
            .clone()
        }
    }
}

async fn activate(world: &Platforms, platform: &PlatformId, name: &str) -> JobId {
    let entity = &tenant(world, platform).await;
    let command = &ActivateFeature {
        feature_id: NewFeatureId::parse(name).unwrap(),
        version: Line::parse("1").unwrap(),
        environment: Environment::Prod,
        config: None,
    };
    let asked = as_operator!(world, platform, |cx, scope, uow| feature::activate(
        cx,
        scope,
        uow,
        entity,
        command.clone()
    ));
    asked.activation.provision_job_id.clone().unwrap()
}

async fn deactivate(
    world: &Platforms,
    platform: &PlatformId,
    name: &str,
    delete_data: bool,
) -> JobId {
    let entity = &tenant(world, platform).await;
    let command = &DeactivateFeature {
        feature_id: FeatureId::parse(name).unwrap(),
        environment: Environment::Prod,
    };
    let asked = as_operator!(world, platform, |cx, scope, uow| feature::deactivate_with(
        cx,
        scope,
        uow,
        entity,
        command.clone(),
        delete_data
    ));
    asked.activation.provision_job_id.clone().unwrap()
}

async fn domain(world: &Platforms, platform: &PlatformId) -> CustomDomain {
    let domains = world.list(CustomDomainQuery::All { deleted: false });
    let mut domains: Vec<CustomDomain> = domains.await;
    domains.retain(|domain| domain.platform_id == *platform);
    domains.swap_remove(0)
}

/// Returns a hostname of the platform in a zone.
fn hostname(platform: &PlatformId, zone: &str) -> Hostname {
    let label = platform.as_str().replace('-', "").to_lowercase();
    Hostname::parse(&format!("shop-{label}.{zone}")).unwrap()
}

/// Returns the unfinished job of a kind for the platform.
async fn unfinished_job(world: &Platforms, platform: &PlatformId, kind: &str) -> JobId {
    let mut jobs = world.jobs().await;
    jobs.retain(|job| job.kind == kind && job.platform_id.as_ref() == Some(platform));
    jobs.retain(|job| !job.status.is_terminal());
    assert_eq!(jobs.len(), 1, "{kind}");
    jobs.swap_remove(0).id
}

async fn record(world: &Platforms, platform: &PlatformId) -> DnsRecord {
    let records = world.list(DnsRecordQuery::All { deleted: false });
    let mut records: Vec<DnsRecord> = records.await;
    records.retain(|record| record.platform_id == *platform);
    records.swap_remove(0)
}

/// Creates a DNS record of the stack that points to its worker.
async fn ask_for_record(world: &Platforms, platform: &PlatformId) -> JobId {
    let stack = &stack(world, platform).await.id;
    let entries = world.entries(platform, false).await;
    let worker = entries
        .iter()
        .find(|e| e.resource_type == ResourceType::Worker);
    let record = &CreateDnsRecord {
        hostname: hostname(platform, "example.net"),
        target_type: DnsTargetType::Worker,
        resource_id: worker.unwrap().id.clone(),
        environment: Environment::Prod,
    };
    let record = as_operator!(world, platform, |cx, scope, uow| dns_record::create(
        cx,
        scope,
        uow,
        stack,
        record.clone()
    ));
    record.job_id.clone().unwrap()
}

/// Adds a domain on the DNS record, and the DNS records that prove its ownership.
async fn ask_for_domain(world: &Platforms, platform: &PlatformId) -> JobId {
    let record = record(world, platform).await;
    let command = &AddCustomDomain {
        platform_id: platform.clone(),
        custom_hostname: hostname(platform, "example.com"),
        target_dns_record_id: record.id.clone(),
    };
    let job = as_operator!(world, platform, |cx, scope, uow| custom_domain::add(
        cx,
        scope,
        uow,
        command.clone()
    ));
    let [route, proof] = domain(world, platform).await.required_records();
    world.dns.set_cname(&route.name, &route.value);
    world.dns.add_txt(&proof.name, &proof.value);
    job.id.clone()
}

/// Removes one object, and leaves another one without its record.
async fn inject_drift(world: &Platforms, platform: &PlatformId) {
    let entries = world.entries(platform, false).await;
    let of_type = |of| {
        entries
            .iter()
            .find(move |entry| entry.resource_type == of)
            .unwrap()
    };
    let lost = of_type(ResourceType::Kv);
    let lost = ResourceRef {
        resource_type: lost.resource_type,
        name: lost.cf_name.to_string(),
    };
    world
        .provider
        .remove(&lost, platform.as_str())
        .await
        .unwrap();
    let left_over = &of_type(ResourceType::Queue).id;
    as_operator!(world, platform, |cx, scope, uow| resource::delete(
        cx, scope, uow, left_over
    ));
}
