//! Secrets of a platform's worker or site. Values go to the provider alone; the registry records names and statuses.
//!
//! The caller of this module changes the secrets at the provider between [`target`] and [`record_set`] or
//! [`record_deletion`]. If the process dies in between, the provider has secrets that the registry does not know; the
//! next call and [`reconcile`](crate::use_case::registry::reconcile) record them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::access::PlatformScope;
use crate::kernel::{
    Code, Context, Environment, Error, Issue, ResourceId, Result, Secret, Stored, permission,
};
use crate::port::{ResourceRef, SetSecrets, UnitOfWork};
use crate::registry::{
    Resource, ResourceSecret, ResourceStatus, ResourceType, SecretName, SecretStatus,
};
use crate::use_case::registry::{resource, secret};

/// Maximum number of secrets in one request.
pub const MAX_SECRETS: usize = 100;

/// Maximum length of a value in bytes.
pub const MAX_SECRET_BYTES: usize = 5 * 1024;

/// The value of a secret: 1 to 5,120 bytes. It is overwritten in memory when it is dropped.
#[derive(Clone, Debug)]
pub struct SecretValue(Secret);

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Ok(Self(Secret::new(&*text)))
    }
}

impl JsonSchema for SecretValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SecretValue".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX_SECRET_BYTES })
    }
}

/// Request body that sets secrets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetPlatformSecrets {
    /// The values by name, 1 to 100. A name has upper-case letters, digits and underscores, and starts with a letter. A
    /// value has 1 to 5,120 bytes.
    #[schemars(extend(
        "minProperties" = 1,
        "maxProperties" = MAX_SECRETS,
        "examples" = [{ "API_KEY": "the value" }]
    ))]
    pub secrets: BTreeMap<String, SecretValue>,
    /// The worker or site that gets the secrets. Default: the platform's worker in production.
    pub resource_id: Option<ResourceId>,
}

impl SetPlatformSecrets {
    /// Returns the values with their checked names.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` with every invalid name and every value that is too long.
    pub fn check(self) -> Result<BTreeMap<SecretName, SecretValue>> {
        let (mut secrets, mut issues) = (BTreeMap::new(), Vec::new());
        for (name, value) in self.secrets {
            let mut refuse = |code, message: String| {
                issues.push(Issue {
                    path: vec!["secrets".to_owned(), name.clone()],
                    code,
                    message,
                });
            };
            if value.0.expose().len() > MAX_SECRET_BYTES {
                refuse(
                    "too_long",
                    format!("must have at most {MAX_SECRET_BYTES} bytes"),
                );
            }
            match SecretName::parse(&name) {
                Ok(name) => drop(secrets.insert(name, value)),
                Err(_) => refuse("pattern", "must match ^[A-Z][A-Z0-9_]{0,127}$".to_owned()),
            }
        }
        if issues.is_empty() {
            return Ok(secrets);
        }
        Err(Error::Invalid(issues))
    }
}

/// The worker or site whose secrets are read or changed.
#[derive(Clone, Debug)]
pub struct SecretTarget {
    /// The resource record.
    pub resource: Stored<Resource>,
}

impl SecretTarget {
    /// Returns the request to the provider.
    #[must_use]
    pub fn set(&self, secrets: &BTreeMap<SecretName, SecretValue>) -> SetSecrets {
        let secrets = secrets.iter();
        SetSecrets {
            secrets: secrets
                .map(|(name, value)| (name.to_string(), value.0.clone()))
                .collect(),
            ..self.no_change()
        }
    }

    /// Returns the request to the provider that deletes a secret.
    #[must_use]
    pub fn delete(&self, name: &SecretName) -> SetSecrets {
        SetSecrets {
            deleted: vec![name.to_string()],
            ..self.no_change()
        }
    }

    /// Returns the reference to the object at the provider.
    #[must_use]
    pub fn reference(&self) -> ResourceRef {
        ResourceRef {
            resource_type: self.resource.resource_type,
            name: self.resource.cf_name.to_string(),
        }
    }

    fn no_change(&self) -> SetSecrets {
        SetSecrets {
            resource: self.reference(),
            owner: self.resource.platform_id.to_string(),
            secrets: Vec::new(),
            deleted: Vec::new(),
        }
    }
}

/// Returns the worker or site that a request names; without an id, the platform's worker in production.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such resource.
/// - `VALIDATION_ERROR` if the resource is neither a worker nor a site.
/// - `INVALID_STATE` if the resource is not active, or the platform has no worker yet.
pub async fn target<G>(
    scope: &PlatformScope<G>,
    uow: &mut dyn UnitOfWork,
    id: Option<&ResourceId>,
) -> Result<SecretTarget> {
    let found = match id {
        Some(id) => Some(resource::not_deleted(scope, uow, id).await?),
        None => {
            let (environment, worker) = (Environment::Prod, ResourceType::Worker);
            resource::find_default(scope, uow, environment, worker).await?
        }
    };
    let Some(resource) = found else {
        let message = "The platform has no worker yet. Provision it first, or name a resource.";
        return Err(Error::refused(Code::InvalidState, message));
    };
    if !matches!(
        resource.resource_type,
        ResourceType::Worker | ResourceType::Pages
    ) {
        let message = "must be the id of a worker or a site";
        return Err(Error::invalid("resourceId", "invalid_type", message));
    }
    if resource.status != ResourceStatus::Active {
        let message = format!("The resource is {}, not active.", resource.status);
        return Err(Error::refused(Code::InvalidState, message));
    }
    Ok(SecretTarget { resource })
}

/// Refuses more secrets than a resource can have. Call it before the secrets are set at the provider.
///
/// # Errors
/// `LIMIT_REACHED` if the resource would have more than its maximum number of secrets.
pub async fn ensure_room_for_secrets(
    cx: &Context,
    scope: &PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    target: &SecretTarget,
    names: &[SecretName],
) -> Result<()> {
    secret::ensure_room_for(cx, scope, uow, &target.resource.id, names).await
}

/// Records that the provider has new values for these secrets.
///
/// # Errors
/// `NOT_FOUND` if the resource has been deleted since.
pub async fn record_set(
    cx: &Context,
    scope: &PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    target: &SecretTarget,
    names: &[SecretName],
) -> Result<()> {
    let resource = &target.resource.id;
    for name in names {
        let status = SecretStatus::Set;
        secret::upsert(cx, scope.writer(), uow, resource, name.clone(), status).await?;
    }
    Ok(())
}

/// Records that the provider has no value for a secret any more.
///
/// # Errors
/// `NOT_FOUND` if the resource has been deleted since.
pub async fn record_deletion(
    cx: &Context,
    scope: &PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    target: &SecretTarget,
    name: &SecretName,
) -> Result<()> {
    let (resource, status) = (&target.resource.id, SecretStatus::Missing);
    secret::upsert(cx, scope.writer(), uow, resource, name.clone(), status).await?;
    Ok(())
}

/// Returns whether the registry has a record of a secret.
///
/// # Errors
/// Only those of the store.
pub async fn is_known(
    scope: &PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    target: &SecretTarget,
    name: &SecretName,
) -> Result<bool> {
    let found = secret::find(scope, uow, &target.resource.id, name).await?;
    Ok(found.is_some())
}

/// Lists the secrets of a worker or site by name, without their values.
///
/// # Errors
/// Those of [`target`].
pub async fn list(
    scope: &PlatformScope<permission::SecretRead>,
    uow: &mut dyn UnitOfWork,
    resource: Option<&ResourceId>,
) -> Result<Vec<Stored<ResourceSecret>>> {
    let target = target(scope, uow, resource).await?;
    secret::all(scope, uow, &target.resource.id).await
}
