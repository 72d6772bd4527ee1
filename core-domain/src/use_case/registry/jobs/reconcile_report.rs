//! The input and the reports of `platform.reconcile`.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::access::{AuditEvent, PlatformWriter, audited};
use crate::kernel::{Environment, PlatformId, PlatformOwned, Result, Slug};
use crate::port::{ProviderObject, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::SslStatus;
use crate::use_case::provisioning::{JobContext, JobInput, JobKind};

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Reconciliation {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// The environment that is compared; `None` means all environments.
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

impl Reconciliation {
    /// Returns whether the environment is compared.
    pub(super) fn covers(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|only| only == environment)
    }

    /// Returns whether an object that is no default resource may be in a compared environment. This is a guess from its
    /// name, used only for the report.
    pub(super) fn may_cover(&self, name: &str) -> bool {
        let is_here = |e: Environment| name.split('-').any(|part| part == e.as_str());
        self.environment.is_none_or(is_here)
    }
}

/// Maximum number of names in each list of a report. The output of a step is limited to 64 KiB.
const MAX_NAMES: usize = 100;

/// Maximum total length of the names in each list of a report, in bytes.
const MAX_LENGTH: usize = 6 * 1024;

/// Maximum number of repairs in a report. Further repairs are made in another attempt.
const MAX_REPAIRS: usize = 40;

/// The differences that a step found and repaired. If the step needed several attempts, the report is that of the last
/// one; the audit log has the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The number of records that were compared.
    pub(super) checked: usize,
    /// The numbers of differences, including those that are not listed.
    pub(super) counts: Counts,
    /// Records whose objects do not exist.
    pub(super) missing: TruncatedNames,
    /// Objects without a record.
    pub(super) orphans: TruncatedNames,
    /// Records that differ from their objects.
    pub(super) changed: TruncatedNames,
    /// The repairs that were made.
    pub(super) repaired: Vec<Repair>,
}

/// Numbers of differences and repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) missing: usize,
    pub(super) orphans: usize,
    pub(super) changed: usize,
    pub(super) repaired: usize,
}

/// A list of names, truncated to [`MAX_NAMES`] names and [`MAX_LENGTH`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct TruncatedNames(Vec<String>);

impl TruncatedNames {
    /// Adds a name, unless the list is full.
    fn push(&mut self, name: &str) {
        let length: usize = self.0.iter().map(String::len).sum();
        if self.0.len() < MAX_NAMES && length + name.len() <= MAX_LENGTH {
            self.0.push(name.to_owned());
        }
    }
}

impl Report {
    /// Counts and lists a record without an object.
    pub(super) fn add_missing(&mut self, name: &str) {
        self.counts.missing += 1;
        self.missing.push(name);
    }

    /// Counts and lists an object without a record.
    pub(super) fn add_orphan(&mut self, name: &str) {
        self.counts.orphans += 1;
        self.orphans.push(name);
    }

    /// Counts and lists a record that differs from its object.
    pub(super) fn add_changed(&mut self, name: &str) {
        self.counts.changed += 1;
        self.changed.push(name);
    }

    /// Counts and adds a repair.
    pub(super) fn add_repair(&mut self, repair: Repair) {
        self.counts.repaired += 1;
        self.repaired.push(repair);
    }

    /// Returns whether the report has the maximum number of repairs.
    pub(super) const fn is_full(&self) -> bool {
        self.repaired.len() >= MAX_REPAIRS
    }
}

/// The type of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RepairAction {
    /// The object was created again.
    Created,
    /// The record was updated from its object.
    Updated,
    /// A record was created for the object.
    Entered,
    /// The object was removed from the provider.
    Removed,
    /// The record was marked as failed, because its object is lost.
    Failed,
}

/// A difference that was repaired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repair {
    /// The name of the object, or the hostname.
    pub(super) name: String,
    /// The type of the repair.
    pub(super) action: RepairAction,
    /// The id of the record; `None` if there is none.
    pub(super) id: Option<String>,
    /// The environment of the object.
    pub(super) environment: Option<Environment>,
    /// The service name of the resource.
    pub(super) service_name: Option<String>,
    /// The id at the provider.
    pub(super) cf_id: Option<String>,
    /// The URL at the provider.
    pub(super) cf_url: Option<String>,
    /// The status of the certificate at the provider; only for custom domains.
    pub(super) ssl_status: Option<SslStatus>,
}

impl Repair {
    /// Creates a repair without details.
    pub(super) fn new(name: &str, action: RepairAction) -> Self {
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

impl Repair {
    /// Adds the data of the provider's object.
    pub(super) fn with_object(self, object: ProviderObject) -> Self {
        Self {
            cf_id: Some(object.id),
            cf_url: object.url,
            ..self
        }
    }
}

/// Records the repairs in the audit log.
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
    audited::record_event(cx, uow, event).await
}
