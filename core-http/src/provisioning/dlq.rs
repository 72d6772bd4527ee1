//! The dead-letter queue.

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, DlqEntryId, JobId, ListQuery, Result};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::JobStatus;
use core_domain::use_case::provisioning::{self, DlqEntryView, DlqFilter};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, ListP3, Output, Versioned, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/dlq", "listDlqEntries")
            .summary("Lists entries of the dead-letter queue, newest first: pending ones unless a status is named.")
            .reads(list),
        get("/api/v1/provision/dlq/{entryId}", "getDlqEntry")
            .summary("Shows an entry of the dead-letter queue.")
            .refuses(&[Code::NotFound])
            .reads(show),
        post("/api/v1/provision/dlq/{entryId}/replay", "replayDlqEntry")
            .summary("Queues the job of a pending entry again.")
            .if_match()
            .refuses(&[Code::NotFound, Code::DlqEntryNotReplayable, Code::InvalidState])
            .writes(replay),
    ]
}

/// A job that was queued again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    job_id: JobId,
    status: JobStatus,
    entry_id: DlqEntryId,
}

async fn list(
    _: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<DlqFilter>>,
) -> Result<Output<ListP3<DlqEntryView>>> {
    let page = provisioning::dlq_entries(&scope, uow, &input.query).await?;
    Ok(Output::new(ListP3::new(page, &input.query.page())))
}

async fn show(
    _: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(DlqEntryId,)>,
) -> Result<Versioned<DlqEntryView>> {
    let entry = provisioning::dlq_entry(&scope, uow, &input.path.0).await?;
    Ok(Versioned::of(&entry, (*entry).clone().into()))
}

async fn replay(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(DlqEntryId,)>,
) -> Result<Output<Replayed>> {
    let entry_id = input.path.0;
    let job = provisioning::replay(cx, &scope, uow, &cx.app.kinds, &entry_id).await?;
    Ok(Output::new(Replayed {
        job_id: job.id.clone(),
        status: job.status,
        entry_id,
    }))
}
