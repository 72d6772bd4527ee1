//! What every kind of job that makes or removes infrastructure is put through, and what there is afterwards. A kind is one
//! line in [`SCENARIOS`].

use std::collections::BTreeSet;

use core_domain::access::authorize_operator;
use core_domain::kernel::{BoundedJson, EntityId, Environment, JobId, JsonText, Line, PlatformId};
use core_domain::port::{Infrastructure, ResourceRef, transact};
use core_domain::registry::{
    ActivateFeature, AddCustomDomain, CreateDnsRecord, CustomDomain, CustomDomainQuery,
    DeactivateFeature, DnsTargetType, Entity, EntityQuery, FeatureActivation,
    FeatureActivationQuery, FeatureId, Hostname, NewFeatureId, ResourceType, WorkspaceStack,
    WorkspaceStackFilter, WorkspaceStackQuery,
};
use core_domain::stacks::{AppName, AppType, CreateTemplate, PublishVersion, SemVer, TemplateName};
use core_domain::use_case::registry::reconcile::{self, ReconcileCommand};
use core_domain::use_case::registry::stack_instance::{
    self, ActivateStack, CreateApp, DeactivateStack,
};
use core_domain::use_case::registry::{auth, dns, domain, feature, resource};
use core_domain::use_case::stacks::{template, version};
use serde_json::json;

use crate::world::{Command, Platforms, as_operator};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Feature,
    NoFeature {
        delete_data: bool,
    },
    Stack,
    NoStack {
        delete_data: bool,
    },
    App,
    Provision,
    Deprovision,
    Auth,
    Domain,
    NoDomain,
    /// After something was removed and something made at the provider by hand.
    Repair,
}

/// A kind of job, after what must be there before it, and whether a cancelled job of it leaves nothing behind.
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

pub(super) const SCENARIOS: [Scenario; 13] = [
    scenario(&[], Request::Provision, true),
    scenario(&[Request::Provision], Request::Deprovision, false),
    scenario(&[Request::Provision], Request::Auth, false),
    scenario(&[Request::Stack], Request::Domain, true),
    scenario(&[Request::Stack, Request::Domain], Request::NoDomain, false),
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
];

/// What there is of a platform, at the provider and in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) objects: BTreeSet<String>,
    /// Names and statuses of the entries that are not deleted.
    pub(super) entries: BTreeSet<(String, String)>,
    pub(super) features: BTreeSet<(String, String)>,
    pub(super) stacks: BTreeSet<(String, String)>,
    /// Hostnames and statuses of the custom domains.
    pub(super) domains: BTreeSet<(String, String)>,
    /// Those that the provider serves.
    pub(super) served: BTreeSet<String>,
}

impl Snapshot {
    pub(super) async fn of(world: &Platforms, platform: &PlatformId) -> Self {
        let entries = world.entries(platform, false).await.into_iter();
        let features = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: true,
        };
        let features: Vec<FeatureActivation> = world.list(features).await;
        let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        let stacks: Vec<WorkspaceStack> = world.list(stacks).await;
        let domains: Vec<CustomDomain> = world.list(CustomDomainQuery::All { deleted: true }).await;
        let mut served = BTreeSet::new();
        for domain in &domains {
            let hostname = domain.hostname.as_str();
            let found = world.provider.served_hostname(hostname, platform.as_str());
            served.extend(found.await.unwrap().map(|_| hostname.to_owned()));
        }
        let told = |name: &str, status: &str| (name.to_owned(), status.to_owned());
        Self {
            objects: world.objects(platform).await,
            entries: entries
                .map(|entry| told(entry.cf_name.as_str(), entry.status.as_str()))
                .collect(),
            features: features
                .iter()
                .map(|feature| told(feature.feature_id.as_str(), feature.status.as_str()))
                .collect(),
            stacks: stacks
                .iter()
                .map(|stack| told(stack.id.as_str(), stack.status.as_str()))
                .collect(),
            domains: domains
                .iter()
                .map(|domain| told(domain.hostname.as_str(), domain.status.as_str()))
                .collect(),
            served,
        }
    }

    /// The provider and the registry tell the same.
    pub(super) fn agrees(&self) -> bool {
        let active = |all: &BTreeSet<(String, String)>| -> BTreeSet<String> {
            let active = all.iter().filter(|(_, status)| status == "active");
            active.map(|(name, _)| name.clone()).collect()
        };
        let named = active(&self.entries);
        let all_there = named == self.objects && named.len() == self.entries.len();
        all_there && active(&self.domains) == self.served
    }
}

impl Scenario {
    /// A platform that has what must be there before, and nothing else.
    pub(super) async fn prepared(self, world: &Platforms) -> PlatformId {
        let done = world.set_up("engines").await;
        world.operate(Command::Cancel, &done.job_id).await.unwrap();
        let platform = done.platform_id;
        publish(world).await;
        for request in self.before {
            ask(world, &platform, *request).await;
            world.until_idle().await;
        }
        platform
    }

    /// Queues the job.
    pub(super) async fn ask(self, world: &Platforms, platform: &PlatformId) -> JobId {
        ask(world, platform, self.request).await
    }

    /// What there is when nothing goes wrong.
    pub(super) async fn undisturbed(self) -> Snapshot {
        let world = Platforms::memory().await;
        let platform = self.prepared(&world).await;
        self.ask(&world, &platform).await;
        world.until_idle().await;
        let snapshot = Snapshot::of(&world, &platform).await;
        assert!(snapshot.agrees(), "{self:?}: {snapshot:?}");
        snapshot
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

async fn tenant(world: &Platforms) -> EntityId {
    let tenants: Vec<Entity> = world.list(EntityQuery::Tenants).await;
    tenants[0].id.clone()
}

async fn stack(world: &Platforms) -> WorkspaceStack {
    let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
    world.list(stacks).await.swap_remove(0)
}

async fn ask(world: &Platforms, platform: &PlatformId, request: Request) -> JobId {
    let platform_id = platform.clone();
    let environment = Environment::Prod;
    match request {
        Request::Feature => {
            let entity = &tenant(world).await;
            let command = &ActivateFeature {
                feature_id: NewFeatureId::parse("search").unwrap(),
                version: Line::parse("1").unwrap(),
                environment,
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
        Request::NoFeature { delete_data } => {
            let entity = &tenant(world).await;
            let command = &DeactivateFeature {
                feature_id: FeatureId::parse("search").unwrap(),
                environment,
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
        Request::Stack => {
            let command = &ActivateStack {
                platform_id,
                stack_id: Line::parse("shop").unwrap(),
                stack_version: SemVer::parse("1.0.0").unwrap(),
                entity_id: None,
                environment,
            };
            as_operator!(world, platform, |cx, scope, uow| stack_instance::activate(
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
                stack_instance_id: stack(world).await.id,
                environment,
                delete_data,
            };
            as_operator!(
                world,
                platform,
                |cx, scope, uow| stack_instance::deactivate(cx, scope, uow, command.clone())
            )
            .id
            .clone()
        }
        Request::App => {
            let command = &CreateApp {
                platform_id,
                stack_id: stack(world).await.id,
                app_name: AppName::parse("admin").unwrap(),
                app_type: AppType::Fullstack,
                with_database: true,
            };
            as_operator!(
                world,
                platform,
                |cx, scope, uow| stack_instance::create_app(cx, scope, uow, command.clone())
            )
            .id
            .clone()
        }
        Request::Provision => world.provision(platform, environment).await,
        Request::Deprovision => world.deprovision(platform, environment).await,
        Request::Auth => as_operator!(world, platform, |cx, scope, uow| auth::upgrade(
            cx, scope, uow
        ))
        .id
        .clone(),
        Request::Domain => ask_for_domain(world, platform).await,
        Request::NoDomain => {
            let domain = &domain(world).await.id;
            as_operator!(world, platform, |cx, scope, uow| domain::delete(
                cx, scope, uow, domain
            ));
            let mut jobs = world.jobs().await;
            jobs.retain(|job| job.kind == "domain.remove");
            jobs.swap_remove(0).id
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

async fn domain(world: &Platforms) -> CustomDomain {
    let domains = world.list(CustomDomainQuery::All { deleted: false });
    domains.await.swap_remove(0)
}

/// A domain on a DNS record of the stack; the DNS says that it is the platform's.
async fn ask_for_domain(world: &Platforms, platform: &PlatformId) -> JobId {
    let stack = &stack(world).await.id;
    let entries = world.entries(platform, false).await;
    let worker = entries
        .iter()
        .find(|e| e.resource_type == ResourceType::Worker);
    let record = &CreateDnsRecord {
        hostname: Hostname::parse("shop.example.net").unwrap(),
        target_type: DnsTargetType::Worker,
        resource_id: worker.unwrap().id.clone(),
        environment: Environment::Prod,
    };
    let record = as_operator!(world, platform, |cx, scope, uow| dns::create(
        cx,
        scope,
        uow,
        stack,
        record.clone()
    ));
    let command = &AddCustomDomain {
        platform_id: platform.clone(),
        custom_hostname: Hostname::parse("shop.example.com").unwrap(),
        target_dns_record_id: record.id.clone(),
    };
    let job = as_operator!(world, platform, |cx, scope, uow| domain::add(
        cx,
        scope,
        uow,
        command.clone()
    ));
    let [route, proof] = domain(world).await.required_records();
    world.dns.set_cname(&route.name, &route.value);
    world.dns.add_txt(&proof.name, &proof.value);
    job.id.clone()
}

/// One object is lost, and another one left over from an entry that was deleted.
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
