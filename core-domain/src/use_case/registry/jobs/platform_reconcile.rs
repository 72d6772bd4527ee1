//! `platform.reconcile`: compares what the registry knows of a platform with what the provider has, a step for every type
//! of resource, one for DNS records and one for custom domains; mends what differs when asked to. What holds data is never removed unless that
//! was asked for, and what nobody knows is only reported.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::auth_upgrade::{auth_ref, auth_request};
use super::platform_provision::{
    CatalogueEntry, Known, MadeResource, default_request, ensure_wanted, upsert_resource,
};
use super::reconcile_dns::CompareRecords;
use super::reconcile_domains::CompareDomains;
use crate::access::{AuditEvent, Batches, PlatformWriter, audited};
use crate::kernel::{Environment, PlatformId, PlatformOwned, ResourceId, Result, Slug, Stored};
use crate::port;
use crate::port::{Mode, ProviderError, Provisioned, ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{
    AUTH, DEFAULT_RESOURCES, Resource, ResourceQuery, ResourceStatus, ResourceType, SslStatus,
    purpose_of,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::resource::Maker;
use crate::use_case::registry::{entity, resource};

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct Reconcile {
    /// Where auth workers reach IAM.
    pub(in crate::use_case::registry) iam_url: String,
}

impl ComparesResources for Reconcile {
    fn iam_url(&self) -> &str {
        &self.iam_url
    }
}

impl JobKind for Reconcile {
    const HOOKS: bool = false;
    const NAME: &'static str = "platform.reconcile";
    const VERSION: i64 = 2;
    type Input = Reconciliation;

    fn steps() -> Steps<Self> {
        let in_order = DEFAULT_RESOURCES.map(|(of_type, _)| CompareResources(of_type));
        let resources = Steps::new().then_all(in_order);
        resources.then(CompareRecords).then(CompareDomains)
    }
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Reconciliation {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// In this environment; in all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    pub(in crate::use_case::registry) repair: bool,
    pub(in crate::use_case::registry) delete_data: bool,
}

impl JobInput for Reconciliation {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn environment(&self) -> Option<Environment> {
        self.environment
    }
}

/// A kind that compares a platform's resources.
pub(super) trait ComparesResources: JobKind<Input = Reconciliation> {
    /// Where auth workers reach IAM.
    fn iam_url(&self) -> &str;
}

/// How many names of a kind a report shows, and how many characters of them: a step may leave 64 KiB.
const MAX_NAMES: usize = 100;
const MAX_LENGTH: usize = 6 * 1024;

/// How many repairs one report tells of; who makes more goes on in another attempt.
pub(super) const MAX_REPAIRS: usize = 40;

/// What a step of a comparison found, and what it mended. Of a long repair it is what the last part of it found: the audit
/// has those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// How many entries were compared.
    pub(super) checked: usize,
    /// How many differ, whether or not they are named.
    pub(super) counts: Counts,
    /// Entries whose objects are not there.
    pub(super) missing: Names,
    /// Objects that no entry tells of.
    pub(super) orphans: Names,
    /// Entries that tell of their objects what is not so.
    pub(super) changed: Names,
    /// What was mended.
    pub(super) repaired: Vec<Repair>,
}

/// How many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) missing: usize,
    pub(super) orphans: usize,
    pub(super) changed: usize,
    pub(super) repaired: usize,
}

/// The first names of many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Adds a name as long as there is room.
    fn push(&mut self, name: &str) {
        let length: usize = self.0.iter().map(String::len).sum();
        if self.0.len() < MAX_NAMES && length + name.len() <= MAX_LENGTH {
            self.0.push(name.to_owned());
        }
    }
}

impl Report {
    pub(super) fn add_missing(&mut self, name: &str) {
        self.counts.missing += 1;
        self.missing.push(name);
    }

    pub(super) fn add_orphan(&mut self, name: &str) {
        self.counts.orphans += 1;
        self.orphans.push(name);
    }

    pub(super) fn add_changed(&mut self, name: &str) {
        self.counts.changed += 1;
        self.changed.push(name);
    }

    pub(super) fn add_repair(&mut self, repair: Repair) {
        self.counts.repaired += 1;
        self.repaired.push(repair);
    }

    /// Whether there is no room for another repair.
    pub(super) const fn is_full(&self) -> bool {
        self.repaired.len() >= MAX_REPAIRS
    }
}

/// What was done about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mended {
    /// The object was made again.
    Created,
    /// The entry tells of the object again what is so.
    Updated,
    /// The object was entered.
    Entered,
    /// The object was removed.
    Removed,
    /// The entry says that its object is lost.
    Failed,
}

/// A difference that was mended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repair {
    /// The name of the object, or the hostname.
    pub(super) name: String,
    pub(super) action: Mended,
    /// The entry's id, if there is an entry.
    pub(super) id: Option<String>,
    /// Where the object runs.
    pub(super) environment: Option<Environment>,
    /// What it is there for.
    pub(super) service_name: Option<String>,
    /// What the provider says of it.
    pub(super) cf_id: Option<String>,
    pub(super) cf_url: Option<String>,
    pub(super) ssl_status: Option<SslStatus>,
}

impl Repair {
    pub(super) fn new(name: &str, action: Mended) -> Self {
        Self {
            name: name.to_owned(),
            action,
            id: None,
            environment: None,
            service_name: None,
            cf_id: None,
            cf_url: None,
            ssl_status: None,
        }
    }
}

/// Compares the resources of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareResources(pub(super) ResourceType);

/// What differs.
#[derive(Debug, Default)]
struct Differences {
    report: Report,
    missing: Vec<Stored<Resource>>,
    changed: Vec<(Stored<Resource>, Provisioned)>,
    orphans: Vec<(String, Provisioned)>,
}

#[async_trait]
impl<K: ComparesResources> JobStep<K> for CompareResources {
    type Output = Report;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let platform = cx.platform(uow.as_mut()).await?;
        ensure_wanted(uow.as_mut(), platform.as_deref(), None).await?;
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut found = self.compare(cx).await?;
        if !cx.input.repair {
            return Ok(found.report);
        }
        match self.repair(cx, &mut found).await {
            Ok(()) if !found.report.is_full() => Ok(found.report),
            // What was mended is kept, and the error met again by the attempt that goes on.
            Err(error) if found.report.repaired.is_empty() => Err(error),
            _ => Err(StepError::unfinished(&found.report)?),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Report,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        for repair in &output.repaired {
            self.record_repair(cx, &platform, uow, repair).await?;
        }
        record_report(cx, &platform, uow, output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Report,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Keeps that something was mended.
pub(super) async fn record_report<K: JobKind>(
    cx: &JobContext<'_, K>,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    report: &Report,
) -> Result<()> {
    if report.repaired.is_empty() {
        return Ok(());
    }
    let event = AuditEvent {
        platform_id: Some(platform.id().clone()),
        action: "platform.repaired",
        entity_id: platform.id().to_string(),
        details: Some(json!({ "jobId": cx.job.id, "repaired": report.repaired })),
    };
    audited::event(cx, uow, event).await
}

impl CompareResources {
    async fn compare<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Differences, StepError> {
        let mut objects = self.objects(cx).await?;
        let mut found = Differences::default();
        for entry in self.entries(cx).await? {
            // What is entered elsewhere is nothing that was left over here.
            let mut object = objects.remove(entry.cf_name.as_str());
            if !cx.input.covers(entry.environment) {
                continue;
            }
            found.report.checked += 1;
            if object.is_none() {
                object = self.observe_again(cx, &entry).await?;
            }
            match object {
                Some(object) if differs(&entry, &object) => {
                    found.report.add_changed(entry.cf_name.as_str());
                    found.changed.push((entry, object));
                }
                None if entry.status == ResourceStatus::Active => {
                    found.report.add_missing(entry.cf_name.as_str());
                    found.missing.push(entry);
                }
                _ => {}
            }
        }
        for (name, object) in objects {
            let own = self.own(cx, &name).map(|own| own.environment);
            if own.map_or_else(|| cx.input.may_cover(&name), |place| cx.input.covers(place)) {
                found.report.add_orphan(&name);
                found.orphans.push((name, object));
            }
        }
        Ok(found)
    }

    /// What of this type the provider has of the platform's, by name.
    async fn objects<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<BTreeMap<String, Provisioned>, StepError> {
        let owner = cx.input.platform_id.as_str();
        let (mut objects, mut cursor) = (BTreeMap::new(), None);
        loop {
            let page = cx.infrastructure.owned(owner, self.0, cursor).await?;
            let named = page.objects.into_iter();
            objects.extend(named.map(|object| (object.name, object.provisioned)));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(objects);
            }
        }
    }

    /// The entries of all environments.
    async fn entries<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Vec<Stored<Resource>>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let of_type = ResourceQuery::OfTypeUntil {
            resource_type: self.0,
            environment: None,
            until: uow.now().await?,
        };
        let mut entries = Vec::new();
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(entries);
        };
        let mut batches = Batches::<Resource>::of(of_type);
        while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
            entries.extend(batch);
        }
        Ok(entries)
    }

    /// A list may be late: what it does not name is looked for by its name.
    async fn observe_again<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        entry: &Resource,
    ) -> Result<Option<Provisioned>, StepError> {
        if entry.status != ResourceStatus::Active {
            return Ok(None);
        }
        let object = cx
            .infrastructure
            .observe(&self.named(entry.cf_name.as_str()))
            .await?;
        let is_own =
            |found: &Provisioned| found.belongs_to(entry.cf_name.as_str(), &entry.platform_id);
        Ok(object.filter(is_own))
    }

    fn named(self, name: &str) -> ResourceRef {
        ResourceRef {
            resource_type: self.0,
            name: name.to_owned(),
        }
    }

    /// Mends what differs, until the report is full. What could be done stands in the report also when something failed.
    async fn repair<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        found: &mut Differences,
    ) -> Result<(), StepError> {
        let report = &mut found.report;
        for (entry, object) in &found.changed {
            if report.is_full() {
                return Ok(());
            }
            let updated = Repair::new(entry.cf_name.as_str(), Mended::Updated);
            report.add_repair(as_entered(updated, entry).with(object.clone()));
        }
        for entry in &found.missing {
            if report.is_full() {
                return Ok(());
            }
            report.add_repair(self.replace(cx, entry).await?);
        }
        for (name, object) in &found.orphans {
            if report.is_full() {
                return Ok(());
            }
            if let Some(repair) = self.place_orphan(cx, name, object).await? {
                report.add_repair(repair);
            }
        }
        Ok(())
    }

    /// Makes an object again that provisioning knows how to make; of others the entry says that they are lost.
    async fn replace<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        entry: &Resource,
    ) -> Result<Repair, StepError> {
        let lost = as_entered(Repair::new(entry.cf_name.as_str(), Mended::Failed), entry);
        let Some(own) = self.own(cx, entry.cf_name.as_str()) else {
            return Ok(lost);
        };
        cx.guard().await?;
        match cx.infrastructure.create(&own.request).await {
            Err(ProviderError::NameTaken(_)) => Ok(lost),
            created => {
                let created_again = Repair::new(entry.cf_name.as_str(), Mended::Created);
                Ok(as_entered(created_again, entry).with(created?))
            }
        }
    }

    /// Enters an object that provisioning makes, unless its entry was deleted: what that left behind is removed. What
    /// neither is true of stays as it is.
    async fn place_orphan<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        name: &str,
        object: &Provisioned,
    ) -> Result<Option<Repair>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let platform = cx.platform(uow.as_mut()).await?;
        let platform = ensure_wanted(uow.as_mut(), platform.as_deref(), None).await?;
        // It may have been entered since the comparison.
        let known = Known::of(platform, uow.as_mut(), &self.named(name)).await?;
        drop(uow);
        if known.is_entered {
            return Ok(None);
        }
        if let Some(place) = known.environment {
            if !cx.input.covers(place) {
                return Ok(None);
            }
            let holds_data = !matches!(self.0, ResourceType::Worker | ResourceType::Pages);
            if holds_data && !cx.input.delete_data {
                return Ok(None);
            }
            cx.guard().await?;
            let owner = cx.input.platform_id.as_str();
            cx.infrastructure.remove(&self.named(name), owner).await?;
            return Ok(Some(Repair::new(name, Mended::Removed)));
        }
        let own = self.own(cx, name);
        let own = own.filter(|own| cx.input.covers(own.environment));
        Ok(own.map(|own| Repair {
            environment: Some(own.environment),
            service_name: Some(own.service_name.to_owned()),
            ..Repair::new(name, Mended::Entered).with(object.clone())
        }))
    }

    /// How provisioning makes the object of this name, if it does.
    fn own<K: ComparesResources>(self, cx: &StepContext<'_, K>, name: &str) -> Option<Own> {
        // Each object is a request of its own.
        let effect_key = || format!("{}-{name}", cx.effect_key);
        let (platform, slug) = (&cx.input.platform_id, &cx.input.slug);
        Environment::ALL.iter().find_map(|environment| {
            let at = (platform, slug, *environment);
            let is_auth = self.0 == ResourceType::Worker && auth_ref(at).name == name;
            let request = if is_auth {
                auth_request(at, cx.kind.iam_url(), effect_key())
            } else {
                default_request(at, self.0, effect_key())
            };
            (request.resource.name == name).then(|| Own {
                request,
                environment: *environment,
                service_name: if is_auth { AUTH } else { purpose_of(self.0) },
            })
        })
    }

    async fn record_repair<K: ComparesResources>(
        &self,
        cx: &JobContext<'_, K>,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        repair: &Repair,
    ) -> Result<()> {
        match (repair.action, &repair.cf_id) {
            (Mended::Failed, _) => {
                let id = repair.id.as_deref().and_then(ResourceId::parse);
                match id {
                    Some(id) => resource::record_loss(cx, platform, uow, &id).await,
                    None => Ok(()),
                }
            }
            (Mended::Created | Mended::Updated | Mended::Entered, Some(cf_id)) => {
                let owner = entity::default_tenant(cx, platform, uow).await?;
                let entry = CatalogueEntry {
                    entity_id: owner.id.clone(),
                    feature: None,
                    service_name: repair.service_name.as_deref().unwrap_or_default(),
                    environment: repair.environment.unwrap_or(Environment::Prod),
                };
                let made = MadeResource {
                    resource_type: self.0,
                    cf_name: repair.name.clone(),
                    cf_id: cf_id.clone(),
                    cf_url: repair.cf_url.clone(),
                    adopted: false,
                };
                let maker = match repair.action {
                    Mended::Created => Maker::Job(&cx.job.id),
                    _ => Maker::Unchanged,
                };
                upsert_resource(cx, platform, uow, entry, &made, maker).await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What provisioning makes.
struct Own {
    request: port::CreateResource,
    environment: Environment,
    service_name: &'static str,
}

impl Reconciliation {
    fn covers(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|only| only == environment)
    }

    /// Whether an object that is nothing provisioning makes may be in an environment that is compared: good enough to
    /// report it, and for nothing else.
    fn may_cover(&self, name: &str) -> bool {
        let is_here = |e: Environment| name.split('-').any(|part| part == e.as_str());
        self.environment.is_none_or(is_here)
    }
}

impl Repair {
    fn with(self, object: Provisioned) -> Self {
        Self {
            cf_id: Some(object.id),
            cf_url: object.url,
            ..self
        }
    }
}

fn as_entered(repair: Repair, entry: &Resource) -> Repair {
    Repair {
        id: Some(entry.id.to_string()),
        environment: Some(entry.environment),
        service_name: Some(entry.service_name.to_string()),
        ..repair
    }
}

/// Whether an entry tells of an object what is not so. Providers need not say in a list where an object is reached.
fn differs(entry: &Resource, object: &Provisioned) -> bool {
    let is_known = entry.cf_id.as_ref().map(|id| id.as_str()) == Some(&object.id);
    let moved = object.url.is_some() && object.url != entry.cf_url;
    entry.status != ResourceStatus::Active || !is_known || moved
}
