//! Endpoints for the secrets of a platform's worker or site. Values go to the provider alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, Context, Error, PlatformId, Record, ResourceId, Result, Timestamp, permission,
};
use core_domain::port::{
    Cause, Infrastructure, Mode, ProviderError, SetSecrets, UnitOfWork, transact,
};
use core_domain::registry::{ResourceSecret, SecretName, SecretStatus};
use core_domain::use_case::cli::secret::{self, SecretTarget, SetPlatformSecrets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    App, Cx, Data, Endpoint, Input, Output, Success, Unparsed, delete, get, post, with,
};

const ALL: &str = "/api/v1/platforms/{platformId}/secrets";
const ONE: &str = "/api/v1/platforms/{platformId}/secrets/{secretName}";

pub(super) fn rows(infrastructure: &Arc<dyn Infrastructure>) -> Vec<Endpoint> {
    let provider = Arc::new(SecretProvider(Arc::clone(infrastructure)));
    vec![
        get(ALL, "listPlatformSecrets")
            .summary("Lists the secrets of a worker or site, ordered by name.")
            .description("The list has names and statuses, never values.")
            .refuses(&[Code::NotFound, Code::ValidationError, Code::InvalidState])
            .reads(list),
        post(ALL, "setPlatformSecrets")
            .summary("Sets secrets of a worker or site, either all or none.")
            .description(
                "The values are sent to the provider and stored nowhere else. Workers get them \
                 when they start again. Other secrets are kept. Without `resourceId` the secrets \
                 are those of the platform's worker in production.",
            )
            .refuses(&[
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
                Code::UpstreamError,
            ])
            .plain_with_scope(with(&provider, set)),
        delete(ONE, "deletePlatformSecret")
            .summary("Deletes a secret of a worker or site.")
            .description(
                "The provider deletes the value. The secret stays in the list with the status \
                 `missing`.",
            )
            .refuses(&[
                Code::NotFound,
                Code::ValidationError,
                Code::Conflict,
                Code::InvalidState,
                Code::UpstreamError,
            ])
            .plain_with_scope(with(&provider, remove)),
    ]
}

type Writes = PlatformScope<permission::SecretWrite>;

/// The provider that stores the values.
#[derive(Debug)]
struct SecretProvider(Arc<dyn Infrastructure>);

impl SecretProvider {
    /// Returns whether the provider has a secret with this name.
    async fn has(&self, target: &SecretTarget, name: &SecretName) -> Result<bool> {
        let names = self.0.secret_names(&target.reference()).await;
        let names = names.map_err(provider_error)?;
        Ok(names.iter().any(|known| known == name.as_str()))
    }
}

/// Query parameters of requests about secrets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfResource {
    /// The worker or site that has the secrets. Default: the platform's worker in production.
    resource_id: Option<ResourceId>,
}

/// A secret, without its value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecretView {
    /// The name of the secret.
    name: SecretName,
    /// The status of the secret.
    status: SecretStatus,
    /// The time at which the secret last received a value; `null` if it never had one.
    last_set_at: Option<Timestamp>,
}

impl From<ResourceSecret> for SecretView {
    fn from(secret: ResourceSecret) -> Self {
        Self {
            name: secret.secret_name,
            status: secret.status,
            last_set_at: secret.last_set_at,
        }
    }
}

/// The result for a secret.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SecretResult {
    /// The provider has the value.
    Ok,
}

/// The response to setting secrets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecretResults {
    /// The platform that has the secrets.
    platform_id: PlatformId,
    /// The result by name, always `ok`: secrets are set all together or not at all.
    results: BTreeMap<SecretName, SecretResult>,
}

async fn list(
    _: &Cx,
    scope: PlatformScope<permission::SecretRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), OfResource>,
) -> Result<Output<Data<SecretView>>> {
    let resource = input.query.resource_id.as_ref();
    let secrets = secret::list(&scope, uow, resource).await?;
    let secrets = secrets.into_iter().map(|secret| secret.into_inner().into());
    Ok(Output::new(Data {
        data: secrets.collect(),
    }))
}

async fn set(
    cx: &Cx,
    provider: Arc<SecretProvider>,
    scope: Writes,
    input: Input<(PlatformId,), (), SetPlatformSecrets>,
) -> Result<Output<SecretResults>> {
    let (platform,) = input.path;
    let resource = input.body.resource_id.clone();
    let secrets = input.body.check()?;
    let names: Vec<SecretName> = secrets.keys().cloned().collect();
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let target = secret::target(&scope, uow.as_mut(), resource.as_ref()).await?;
    secret::ensure_room_for_secrets(cx, &scope, uow.as_mut(), &target, &names).await?;
    uow.rollback().await;
    let change = Change {
        request: target.set(&secrets),
        target,
        names: names.clone(),
        is_deletion: false,
    };
    drop(secrets);
    change.apply(cx, &provider, scope).await?;
    let results = names.into_iter().map(|name| (name, SecretResult::Ok));
    Ok(Output::new(SecretResults {
        platform_id: platform,
        results: results.collect(),
    }))
}

async fn remove(
    cx: &Cx,
    provider: Arc<SecretProvider>,
    scope: Writes,
    input: Input<(PlatformId, Unparsed<SecretName>), OfResource>,
) -> Result<Output<Success>> {
    let (_, name) = input.path;
    let name = name.parse("secretName")?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let target = secret::target(&scope, uow.as_mut(), input.query.resource_id.as_ref()).await?;
    let is_known = secret::is_known(&scope, uow.as_mut(), &target, &name).await?;
    uow.rollback().await;
    if !is_known && !provider.has(&target, &name).await? {
        return Err(Error::NotFound(ResourceSecret::KIND));
    }
    let change = Change {
        request: target.delete(&name),
        target,
        names: vec![name],
        is_deletion: true,
    };
    change.apply(cx, &provider, scope).await?;
    Ok(Output::new(Success::YES))
}

/// A change of secrets, first at the provider and then in the registry.
struct Change {
    request: SetSecrets,
    target: SecretTarget,
    names: Vec<SecretName>,
    is_deletion: bool,
}

impl Change {
    /// Applies the change in a separate task, because the future of a handler is dropped if the client disconnects. The
    /// registry would then not know the secrets of the provider.
    async fn apply(self, cx: &Cx, provider: &Arc<SecretProvider>, scope: Writes) -> Result<()> {
        let (app, domain) = (Arc::clone(&cx.app), cx.domain.without_conditions());
        let provider = Arc::clone(provider);
        let applied = tokio::spawn(async move {
            let outcome = provider.0.set_secrets(&self.request).await;
            // Overwrites the values.
            drop(self.request);
            outcome.map_err(provider_error)?;
            let (target, names) = (&self.target, &self.names);
            record(&app, &domain, &scope, target, names, self.is_deletion).await
        });
        match applied.await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Internal("changing secrets panicked".to_owned())),
        }
    }
}

/// Records the change. The caller is not authorized again, because the provider already has the change.
async fn record(
    app: &App,
    cx: &Context,
    scope: &Writes,
    target: &SecretTarget,
    names: &[SecretName],
    is_deletion: bool,
) -> Result<()> {
    transact(app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            if !is_deletion {
                return secret::record_set(cx, scope, uow, target, names).await;
            }
            for name in names {
                secret::record_deletion(cx, scope, uow, target, name).await?;
            }
            Ok(())
        })
    })
    .await
}

/// Converts an error of the provider. Its cause appears in the log only.
fn provider_error(error: ProviderError) -> Error {
    match error {
        ProviderError::NameTaken(_) => Error::refused(
            Code::Conflict,
            "The object at the provider belongs to another owner.",
        ),
        ProviderError::Permanent(why) => Error::refused(
            Code::InvalidState,
            format!("The provider refused the secrets: {why}."),
        ),
        other => Error::Upstream(Cause::new(other).to_string()),
    }
}
