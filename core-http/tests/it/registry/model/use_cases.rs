//! The random requests as calls of use cases without HTTP, as in an embedding program.

use std::sync::Arc;

use core_domain::access::{PlatformScope, authorize, authorize_organization};
use core_domain::kernel::{
    Context, CustomDomainId, DeploymentId, DnsRecordId, EntityId, Error, PermissionType,
    PlatformId, Record, RequestInfo, ResourceId, Result, StackId, Stored, TextValue, permission,
};
use core_domain::port::{UnitOfWork, transact};
use core_domain::registry::{ConfigKey, DeploymentChange, SecretName};
use core_domain::use_case::registry::{
    config, custom_domain, deployment, dns_record, entity, feature, platform, resource, secret,
    workspace_stack,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::REQUEST_ID;
use super::operation::{ConcreteRequest, Row};
use crate::world::World;

/// Runs a request in its own unit of work.
pub(super) async fn ask(world: &World, row: &Row, ask: &ConcreteRequest) -> Result<Value> {
    let cx = Context {
        caller: Arc::new(ask.caller.clone()),
        request: RequestInfo {
            request_id: REQUEST_ID.to_owned(),
            ..RequestInfo::default()
        },
        ..Context::system(world.app.entropy.clone())
    };
    let unit = Unit {
        world,
        cx: &cx,
        ask,
    };
    transact(world.app.store.as_ref(), |uow, _| {
        Box::pin(unit.run(row.operation, uow))
    })
    .await
}

#[derive(Clone, Copy)]
struct Unit<'a> {
    world: &'a World,
    cx: &'a Context,
    ask: &'a ConcreteRequest,
}

fn body<T: DeserializeOwned>(body: &Value) -> T {
    let body = if body.is_null() {
        json!({})
    } else {
        body.clone()
    };
    serde_json::from_value(body).unwrap()
}

fn to_json<R: Record + Serialize>(stored: &Stored<R>) -> Value {
    serde_json::to_value(&**stored).unwrap()
}

const SUCCESS: fn(()) -> Value = |()| json!({ "success": true });

impl Unit<'_> {
    async fn scope<G: PermissionType>(self, uow: &mut dyn UnitOfWork) -> Result<PlatformScope<G>> {
        let id = PlatformId::parse(&self.ask.path[0]).ok_or(Error::NotFound("platform"))?;
        authorize(self.cx, uow, &id).await
    }

    fn entity(self) -> EntityId {
        EntityId::parse(&self.ask.path[1]).unwrap()
    }

    fn resource(self) -> ResourceId {
        ResourceId::parse(&self.ask.path[1]).unwrap()
    }

    async fn run(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        match operation {
            of if of.ends_with("Platform") => self.platform(of, uow).await,
            of if of.ends_with("Entity") => self.entities(of, uow).await,
            of if of.ends_with("Resource") => self.resources(of, uow).await,
            of if of.ends_with("Feature") => self.features(of, uow).await,
            of if of.contains("Config") => self.config(of, uow).await,
            of if of.contains("Deployment") => self.deployments(of, uow).await,
            of if of.ends_with("Domain") => self.domains(of, uow).await,
            of => self.workspace(of, uow).await,
        }
    }

    async fn platform(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        if operation == "createPlatform" {
            let scope = authorize_organization::<permission::PlatformCreate>(cx, uow).await?;
            let created = platform::create(cx, &scope, uow, body(&ask.body)).await?;
            return Ok(to_json(&created));
        }
        if operation == "updatePlatform" {
            let scope = self.scope::<permission::PlatformUpdate>(uow).await?;
            let updated = platform::update(cx, &scope, uow, body(&ask.body)).await?;
            return Ok(to_json(&updated));
        }
        if operation == "restorePlatform" {
            let scope = self.scope::<permission::PlatformRestore>(uow).await?;
            return Ok(to_json(&platform::restore(cx, &scope, uow, None).await?));
        }
        let scope = self.scope::<permission::PlatformManage>(uow).await?;
        let moved = match operation {
            "suspendPlatform" => platform::suspend(cx, &scope, uow, None).await?,
            "cancelPlatform" => platform::cancel(cx, &scope, uow, None).await?,
            "hardDeletePlatform" => {
                let kinds = &self.world.app.kinds;
                platform::hard_delete(cx, &scope, uow, kinds, None).await?
            }
            _ => {
                platform::delete(cx, &scope, uow).await?;
                return Ok(SUCCESS(()));
            }
        };
        Ok(to_json(&moved))
    }

    async fn entities(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::EntityWrite>(uow).await?;
        match operation {
            "createEntity" => {
                let created = entity::create(cx, &scope, uow, body(&ask.body)).await?;
                Ok(to_json(&created))
            }
            "updateEntity" => {
                let (id, command) = (self.entity(), body(&ask.body));
                Ok(to_json(
                    &entity::update(cx, &scope, uow, &id, command).await?,
                ))
            }
            _ => {
                let cascade = ask.query == "cascade=true";
                let deleted = entity::delete(cx, &scope, uow, &self.entity(), cascade).await;
                deleted.map(SUCCESS)
            }
        }
    }

    async fn resources(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::ResourceWrite>(uow).await?;
        match operation {
            "createResource" => {
                let (entity, command) = (self.entity(), body(&ask.body));
                let created = resource::create(cx, &scope, uow, &entity, command).await?;
                Ok(to_json(&created))
            }
            "updateResource" => {
                let (id, command) = (self.resource(), body(&ask.body));
                let updated = resource::update(cx, &scope, uow, &id, command).await?;
                Ok(to_json(&updated))
            }
            _ => {
                let deleted = resource::delete(cx, &scope, uow, &self.resource()).await;
                deleted.map(SUCCESS)
            }
        }
    }

    async fn features(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::FeatureWrite>(uow).await?;
        let (entity, command) = (self.entity(), &ask.body);
        if operation == "deactivateFeature" {
            let asked = feature::deactivate(cx, &scope, uow, &entity, body(command)).await?;
            let feature = asked.activation;
            return Ok(json!({ "featureId": feature.feature_id, "status": feature.status }));
        }
        let asked = feature::activate(cx, &scope, uow, &entity, body(command)).await?;
        let feature = asked.activation;
        Ok(json!({
            "activationId": feature.id, "featureId": feature.feature_id, "status": feature.status,
            "provisionJobId": feature.provision_job_id,
            "estimatedDurationSeconds": asked.estimated_seconds,
        }))
    }

    async fn config(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::ConfigWrite>(uow).await?;
        let key = ConfigKey::from_text(&ask.path[1]).unwrap();
        let (config, created) = if operation == "rollBackConfig" {
            let command = body(&ask.body);
            (
                config::roll_back(cx, &scope, uow, key, command).await?,
                false,
            )
        } else {
            let set = config::set(cx, &scope, uow, key, body(&ask.body)).await?;
            (set.record, set.created)
        };
        let mut shown = to_json(&config);
        shown["status"] = json!(created.then_some("created"));
        Ok(shown)
    }

    async fn deployments(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::DeploymentWrite>(uow).await?;
        if operation == "createDeploymentRecord" {
            let entered = deployment::create_external(cx, &scope, uow, body(&ask.body)).await?;
            return Ok(to_json(&entered.record));
        }
        let id = DeploymentId::parse(&ask.path[1]).unwrap();
        let change: DeploymentChange = body(&ask.body);
        Ok(to_json(
            &deployment::update(cx, &scope, uow, &id, &change).await?,
        ))
    }

    async fn domains(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let scope = self.scope::<permission::DomainWrite>(uow).await?;
        let id = || CustomDomainId::parse(&ask.path[1]).unwrap();
        match operation {
            "createDomain" => {
                let created = custom_domain::create(cx, &scope, uow, body(&ask.body)).await?;
                Ok(to_json(&created))
            }
            "updateDomain" => {
                let command = body(&ask.body);
                Ok(to_json(
                    &custom_domain::update(cx, &scope, uow, &id(), command).await?,
                ))
            }
            _ => {
                custom_domain::delete(cx, &scope, uow, &id()).await?;
                Ok(Value::Null)
            }
        }
    }

    /// Runs a request about workspace stacks, DNS records, or secrets of resources.
    async fn workspace(self, operation: &str, uow: &mut dyn UnitOfWork) -> Result<Value> {
        let Self { cx, ask, .. } = self;
        let stack = || StackId::parse(&ask.path[1]).unwrap();
        match operation {
            "createWorkspaceStack" => {
                let scope = self.scope::<permission::WorkspaceWrite>(uow).await?;
                let created = workspace_stack::create(cx, &scope, uow, body(&ask.body)).await?;
                let created = to_json(&created);
                let fields = ["id", "name", "status", "isDefault", "createdAt"];
                Ok(fields
                    .map(|f| (f.to_owned(), created[f].clone()))
                    .into_iter()
                    .collect())
            }
            "createDnsRecord" => {
                let scope = self.scope::<permission::DnsWrite>(uow).await?;
                let command = body(&ask.body);
                Ok(to_json(
                    &dns_record::create(cx, &scope, uow, &stack(), command).await?,
                ))
            }
            "deleteDnsRecord" => {
                let scope = self.scope::<permission::DnsWrite>(uow).await?;
                let record = DnsRecordId::parse(&ask.path[2]).unwrap();
                dns_record::delete(cx, &scope, uow, &stack(), &record).await?;
                Ok(Value::Null)
            }
            "setResourceSecret" => {
                let scope = self.scope::<permission::SecretWrite>(uow).await?;
                let name = SecretName::parse(&ask.path[2]).unwrap();
                let (resource, command) = (self.resource(), body(&ask.body));
                let set = secret::set(cx, &scope, uow, &resource, name, command).await?;
                Ok(to_json(&set.0))
            }
            unknown => panic!("{unknown} has no use case here"),
        }
    }
}
