//! The metric `builds`: each deployment and each other build that has ended counts once, whatever its end (contract:
//! "Usage").

use serde_json::Value;

use super::Billing;
use crate::billing::Metric;
use crate::billing::usage::{IngestUsage, NewUsageEvent, UsageKey};
use crate::kernel::{Context, Result, TextValue};
use crate::port::UnitOfWork;
use crate::registry::{BuildStatus, BuildTrigger, DeploymentStatus};
use crate::shared::AuditEntry;
use crate::use_case::shared::usage::ingest_in;

/// Returns the usage that a change reports: the end of a build or of a deployment. Its id is derived from the record, so the
/// record counts once.
pub(super) fn ended_by(entry: &AuditEntry) -> Option<NewUsageEvent> {
    let after = entry.after.as_ref()?.value();
    let has_ended = match entry.entity_type.as_str() {
        "deployment" => {
            word::<DeploymentStatus>(&after, "status").is_some_and(DeploymentStatus::is_terminal)
        }
        "build" => {
            // A build that a caller made by deploying is counted as the deployment.
            let trigger = word::<BuildTrigger>(&after, "triggeredBy");
            let ended = word::<BuildStatus>(&after, "buildStatus");
            ended.is_some_and(BuildStatus::has_ended) && trigger != Some(BuildTrigger::Manual)
        }
        _ => false,
    };
    if !has_ended {
        return None;
    }
    Some(NewUsageEvent {
        id: UsageKey::parse(&entry.entity_id).ok()?,
        source: UsageKey::parse(&format!("core.{}s", entry.entity_type)).ok()?,
        platform_id: entry.platform_id.clone()?,
        stack_id: None,
        tenant_id: None,
        metric: Metric::Builds.as_str().to_owned(),
        quantity: 1,
        time: entry.created_at,
        corrects_id: None,
    })
}

/// Returns a word of a record.
fn word<T: TextValue>(record: &Value, field: &str) -> Option<T> {
    T::from_text(record.get(field)?.as_str()?)
}

/// Adds the usage to the sums of its platform. Does nothing if it is known, or too old to count.
pub(super) async fn report(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    event: &NewUsageEvent,
) -> Result<()> {
    let event = NewUsageEvent {
        time: billing.clock.at(uow, event.time).await?,
        ..event.clone()
    };
    let command = IngestUsage {
        events: vec![event],
    };
    ingest_in(cx, uow, billing.metering(), &command)
        .await
        .map(drop)
}
