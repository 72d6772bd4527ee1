//! Endpoints for the dead-letter queue.

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, DlqEntryId, JobId, ListQuery, Result};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::JobStatus;
use core_domain::use_case::provisioning::{self, DlqEntryView, DlqFilter};
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, ListP3, Output, Versioned, call_with_id, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/dlq", "listDlqEntries")
            .summary("Lists dead letters, newest first.")
            .description(
                "A dead letter describes a job that failed and was not cancelled. Without \
                 `status`, only pending entries are listed; `status=all` lists all.",
            )
            .reads(list),
        get("/api/v1/provision/dlq/{entryId}", "getDlqEntry")
            .summary("Returns a dead letter.")
            .description("The entry has the error, the failed step and the input of the job.")
            .refuses(&[Code::NotFound])
            .reads(
                call_with_id(provisioning::get_dead_letter)
                    .map(|entry| Versioned::of(&entry, DlqEntryView::from((*entry).clone()))),
            ),
        post("/api/v1/provision/dlq/{entryId}/replay", "replayDlqEntry")
            .summary("Queues the failed job of a dead letter again.")
            .description(
                "The same job resumes at its first unfinished step, with new attempts and a new \
                 deadline. The entry must be pending; it becomes `REPLAYED`, and pending again if \
                 the job fails again. Only one of several concurrent calls succeeds.",
            )
            .if_match()
            .refuses(&[
                Code::NotFound,
                Code::DlqEntryNotReplayable,
                Code::InvalidState,
            ])
            .writes(replay),
    ]
}

/// The response to the replay of a dead letter.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReplayedJob {
    /// The id of the job that was queued again.
    job_id: JobId,
    /// The status of the job after the replay.
    status: JobStatus,
    /// The id of the dead letter.
    entry_id: DlqEntryId,
}

async fn list(
    _: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<DlqFilter>>,
) -> Result<Output<ListP3<DlqEntryView>>> {
    let page = provisioning::list_dead_letters(&scope, uow, &input.query).await?;
    Ok(Output::new(ListP3::new(page, &input.query.page())))
}

async fn replay(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(DlqEntryId,)>,
) -> Result<Output<ReplayedJob>> {
    let entry_id = input.path.0;
    let job = provisioning::replay(cx, &scope, uow, &cx.app.kinds, &entry_id).await?;
    Ok(Output::new(ReplayedJob {
        job_id: job.id.clone(),
        status: job.status,
        entry_id,
    }))
}
