//! The backlog of jobs, for metrics.

use std::time::Duration;

use crate::access::unowned_records;
use crate::kernel::{Result, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    DeadLetter, DlqQuery, DlqStatus, Job, JobLane, JobLaneQuery, JobQuery, JobStatus,
};

/// The number of ready lanes whose age is read. They are those that are claimed next.
const MAX_READ_LANES: u32 = 50;

/// The jobs that have not ended, and the dead letters that are open. Jobs that have ended are not counted: their number
/// grows without limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobBacklog {
    /// The number of jobs with each status that is not final.
    pub jobs: Vec<(JobStatus, u64)>,
    /// The number of open dead letters with each status.
    pub dead_letters: Vec<(DlqStatus, u64)>,
    /// The number of lanes whose first job can be claimed now.
    pub ready_lanes: u64,
    /// The number of lanes whose first job can be claimed later.
    pub scheduled_lanes: u64,
    /// The longest time for which a job could have been claimed, among the 50 lanes that are claimed next. Zero if no
    /// job can be claimed.
    pub oldest_ready: Duration,
}

/// Reads the backlog of jobs. Every query uses an index and reads only open work.
///
/// # Errors
/// Only those of the store.
pub async fn job_backlog(uow: &mut dyn UnitOfWork) -> Result<JobBacklog> {
    let now = uow.now().await?;
    let mut jobs = Vec::new();
    for status in JobStatus::ALL.iter().filter(|status| !status.is_terminal()) {
        let query = JobQuery::Of {
            platform_id: None,
            status: Some(*status),
        };
        jobs.push((*status, unowned_records::<Job>(uow).count(&query).await?));
    }
    let mut dead_letters = Vec::new();
    for status in DlqStatus::ALL.iter().filter(|status| status.is_open()) {
        let query = DlqQuery::Of {
            status: Some(*status),
            platform_id: None,
            kind: None,
        };
        let number = unowned_records::<DeadLetter>(uow).count(&query).await?;
        dead_letters.push((*status, number));
    }
    let lanes = unowned_records::<JobLane>(uow);
    let ready_lanes = lanes.count(&JobLaneQuery::Ready).await?;
    let scheduled = JobLaneQuery::DueAt(Timestamp::from_millis(i64::MAX));
    let scheduled_lanes = unowned_records::<JobLane>(uow).count(&scheduled).await?;
    let next = unowned_records::<JobLane>(uow);
    let next = next.list(&JobLaneQuery::Ready, MAX_READ_LANES).await?;
    let oldest_ready = next.iter().map(|lane| now.since(lane.ready_at)).max();
    Ok(JobBacklog {
        jobs,
        dead_letters,
        ready_lanes,
        scheduled_lanes,
        oldest_ready: oldest_ready.unwrap_or_default(),
    })
}
