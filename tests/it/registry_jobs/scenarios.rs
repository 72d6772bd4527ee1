//! What every kind of job that makes or removes infrastructure is put through, and what there is afterwards. A kind is one
//! line in [`SCENARIOS`].

use std::collections::BTreeSet;

use core_domain::access::authorize_operator;
use core_domain::kernel::{EntityId, Environment, JobId, JsonText, Line, PlatformId};
use core_domain::port::transact;
use core_domain::registry::Entity;
use core_domain::registry::{
    ActivateFeature, DeactivateFeature, EntityQuery, FeatureActivation, FeatureActivationQuery,
    FeatureId, NewFeatureId, WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery,
};
use core_domain::stacks::{AppName, AppType, CreateTemplate, PublishVersion, SemVer, TemplateName};
use core_domain::use_case::registry::feature;
use core_domain::use_case::registry::stack_instance::{
    self, ActivateStack, CreateApp, DeactivateStack,
};
use core_domain::use_case::stacks::{template, version};
use serde_json::json;

use crate::world::{Command, Platforms, as_operator};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Feature,
    NoFeature { delete_data: bool },
    Stack,
    NoStack { delete_data: bool },
    App,
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

pub(super) const SCENARIOS: [Scenario; 7] = [
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
        }
    }

    /// The provider and the catalogue tell the same.
    pub(super) fn agrees(&self) -> bool {
        let active = self.entries.iter().filter(|(_, status)| status == "active");
        let named: BTreeSet<String> = active.map(|(name, _)| name.clone()).collect();
        named == self.objects && named.len() == self.entries.len()
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
        stack_definition: JsonText::of(&definition),
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
    }
}
