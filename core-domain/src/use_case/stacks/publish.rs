//! Publishing a version of a template.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::templates::find_template;
use super::versions::{refresh_latest, version_taken};
use crate::kernel::{Context, Error, Result, VersionId, canonical_json, hex};
use crate::port::{StoreError, Stored, UnitOfWork};
use crate::shared::{Happening, audited};
use crate::stacks::{SemVer, StackVersion, StackVersionQuery, TemplateStatus, VersionStatus};

/// The largest definition, in bytes of canonical JSON: 256 KiB.
const MAX_DEFINITION_BYTES: usize = 256 * 1024;

/// What a new version is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NewVersion {
    /// Its number.
    pub version: SemVer,
    /// What it is made of.
    pub stack_definition: Map<String, Value>,
    /// The SDK it is made for.
    pub core_sdk_version: SemVer,
}

/// Publishes a version; it never changes afterwards. The template's latest version is settled in the same unit.
///
/// # Errors
/// `CONFLICT` when the template has a version of this precedence, deprecated or not; `INVALID_STATE` when the template
/// is deprecated; `VALIDATION_ERROR` for a definition that is too large; `NOT_FOUND`, `UNAUTHORIZED`, `FORBIDDEN`.
pub async fn publish(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
    new: NewVersion,
) -> Result<Stored<StackVersion>> {
    cx.caller.operator()?;
    let definition = Value::Object(new.stack_definition);
    let canonical = canonical_json(&definition);
    if canonical.len() > MAX_DEFINITION_BYTES {
        let message = format!("must have at most {MAX_DEFINITION_BYTES} bytes");
        return Err(Error::invalid("stackDefinition", "too_long", message));
    }
    let template = find_template(cx, uow, name).await?;
    let same = StackVersionQuery::Exactly(template.id.clone(), new.version.clone());
    if uow.stack_versions().first(&same).await?.is_some() {
        return Err(version_taken());
    }
    if template.status == TemplateStatus::Deprecated {
        return Err(Error::InvalidState {
            status: template.status.as_str(),
            allowed_from: vec![TemplateStatus::Active.as_str()],
        });
    }
    let now = uow.now().await?;
    let version = StackVersion {
        id: VersionId::generate(now, cx.entropy.as_ref()),
        template_id: template.id.clone(),
        version: new.version,
        stack_definition: definition,
        digest: hex(&Sha256::digest(&canonical)),
        core_sdk_version: new.core_sdk_version,
        status: VersionStatus::Active,
        published_at: now,
        created_at: now,
    };
    let stored = match uow.stack_versions().insert(version).await {
        Err(StoreError::Conflict { .. }) => return Err(version_taken()),
        outcome => outcome?,
    };
    refresh_latest(uow, template).await?;
    let happening = Happening {
        action: "stack_version.published",
        entity_id: stored.id.to_string(),
        after: Some(json!({
            "template": name,
            "version": stored.version,
            "coreSdkVersion": stored.core_sdk_version,
            "digest": stored.digest,
        })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(stored)
}
