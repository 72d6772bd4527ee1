//! The step that makes one part of a workspace stack: at the provider, then in the registry.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::removal::{delete_entry, take_back};
use super::resource::{MadeResource, is_made_by, made, observe_made, used_otherwise};
use super::stack_target::{PlannedPart, StackInput, StackTarget, StackWork, ensure_called_for};
use crate::kernel::{Error, Result};
use crate::port::{CreateResource, Mode, UnitOfWork};
use crate::registry::{DEFAULT_RESOURCES, Resource, ResourceStatus, ResourceType};
use crate::stacks::{PartId, Script, StackPart};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::stack_instance::entries;

/// The file that a worker begins with when its stack brings none.
const STARTER: &str = include_str!("service.js");
const MAIN_MODULE: &str = "service.js";

/// The work of a job that makes parts.
#[async_trait]
pub(in crate::use_case::registry) trait MakesParts:
    StackWork
{
    /// The parts, in order.
    fn parts(&self) -> &[PlannedPart];

    /// What the part with this id is made of; `None` when it is none of the job's.
    ///
    /// # Errors
    /// When that cannot be told now.
    async fn blueprint(
        &self,
        target: &StackTarget,
        uow: &mut dyn UnitOfWork,
        part: &PartId,
    ) -> Result<Option<StackPart>>;
}

/// Adds the steps that make parts.
pub(super) fn with_parts<K, W>(steps: Steps<K>) -> Steps<K>
where
    K: JobKind<Input = StackInput<W>>,
    W: MakesParts,
{
    steps.then_all(DEFAULT_RESOURCES.map(|(of, _)| MakePart(of)))
}

/// Makes a part of one type.
#[derive(Clone, Copy, Debug)]
struct MakePart(ResourceType);

impl MakePart {
    /// The part that an item of the step means.
    fn part<'p, W: MakesParts>(
        self,
        input: &'p StackInput<W>,
        item: Option<&str>,
    ) -> Result<&'p PlannedPart> {
        let mut parts = input.work.parts().iter();
        let part = parts
            .find(|part| part.id.resource_type == self.0 && item == Some(part.id.name.as_str()));
        part.ok_or_else(|| Error::Internal(format!("no part {} {item:?}", self.0)))
    }
}

/// Whether what is there is left as it is. Data and what people have deployed to an app are; what the definition brings is
/// put there again.
const fn is_left_alone(part: &PartId) -> bool {
    part.of_app || part.resource_type.is_store()
}

#[async_trait]
impl<K, W> JobStep<K> for MakePart
where
    K: JobKind<Input = StackInput<W>>,
    W: MakesParts,
{
    const UNDOES: bool = true;
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<MadeResource>, StepError> {
        ensure_called_for(cx).await?;
        let part = self.part(cx.input, cx.item)?;
        let platform = &cx.input.target.platform_id;
        let observed = observe_made(cx, platform, &part.object()).await?;
        Ok(match observed {
            Observation::Present(_) if !is_left_alone(&part.id) => Observation::Outdated,
            observed => observed,
        })
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<MadeResource, StepError> {
        let part = self.part(cx.input, cx.item)?;
        let target = &cx.input.target;
        let request = CreateResource {
            resource: part.object(),
            owner: target.platform_id.to_string(),
            effect_key: cx.effect_key.to_owned(),
            config: config(cx, part).await?,
        };
        let created = cx.infrastructure.create(&request).await?;
        Ok(made(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let part = self.part(cx.input, cx.item)?;
        let of = (&cx.input.target, &cx.job.id);
        entries::upsert_part(cx, &platform, uow, of, part, output).await
    }

    /// Keeps an object that another job uses or that has DNS records.
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        let part = self.part(cx.input, cx.item)?;
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(Undone::left("its platform does not exist"));
        };
        let entry = entries::of_part(&platform, uow.as_mut(), part).await?;
        let Some(entry) = entry else {
            return Ok(Undone::left("its entry was deleted"));
        };
        if let Some(why) = used_otherwise(&platform, uow.as_mut(), &entry, cx.job).await? {
            return Ok(Undone::left(why));
        }
        drop(uow);
        take_back(cx, &cx.input.target.platform_id, &part.object()).await
    }

    /// Deletes the entry of a removed object and the entry of an object that was only planned.
    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let part = self.part(cx.input, cx.item)?;
        let entry = entries::of_part(&platform, uow, part).await?;
        let goes = |entry: &Resource| {
            let was_planned = entry.status != ResourceStatus::Active;
            is_made_by(entry, cx.job) && (undone.is_taken_back() || was_planned)
        };
        match entry.filter(|entry| goes(entry)) {
            Some(entry) => delete_entry(cx, &platform, uow, &entry).await,
            None => Ok(()),
        }
    }
}

/// The settings of a part at the provider.
async fn config<K, W>(cx: &StepContext<'_, K>, part: &PlannedPart) -> Result<Value, StepError>
where
    K: JobKind<Input = StackInput<W>>,
    W: MakesParts,
{
    if part.id.resource_type.is_store() {
        return Ok(json!({}));
    }
    let mut uow = cx.store.begin(Mode::Read).await?;
    let target = &cx.input.target;
    let made_of = cx
        .input
        .work
        .blueprint(target, uow.as_mut(), &part.id)
        .await?;
    let made_of = made_of.ok_or_else(|| {
        let message = format!(
            "the definition has no {} {}",
            part.id.resource_type, part.id.name
        );
        StepError::permanent("UNKNOWN_PART", message)
    })?;
    let bindings = made_of.bindings.iter().map(|binding| {
        json!({
            "name": binding.name,
            "type": binding.target.resource_type,
            "resource": target.name_of(&binding.target),
        })
    });
    let mut config = json!({ "bindings": bindings.collect::<Vec<_>>() });
    if !made_of.vars.is_empty() {
        config["vars"] = json!(made_of.vars);
    }
    if part.id.resource_type == ResourceType::Worker {
        let script = made_of.script.unwrap_or_else(|| Script {
            main_module: MAIN_MODULE.to_owned(),
            modules: BTreeMap::from([(MAIN_MODULE.to_owned(), STARTER.to_owned())]),
        });
        config["mainModule"] = script.main_module.into();
        config["modules"] = json!(script.modules);
    }
    Ok(config)
}
