//! Jobs.

use crate::calls::waiting::{WAIT_SECONDS, WaitPause};
use crate::client::Client;
use crate::error::Result;
use crate::net::event_stream::{EventStream, StreamEnd};
use crate::operations::{FOLLOW_JOB, GET_JOB, LIST_JOB_EVENTS, LIST_JOBS, RETRY_JOB};
use crate::types::job::{Job, JobEvent, JobFilter, JobProgressEvent, JobRef};
use crate::types::page::{Page, PageQuery};

impl Client {
    /// Lists jobs, newest first.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_jobs(&self, filter: &JobFilter, page: &PageQuery) -> Result<Page<Job>> {
        let call = self.call(LIST_JOBS, &[]);
        let call = call.query("platformId", filter.platform_id.as_ref());
        let call = call
            .query("status", filter.status.as_ref())
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Returns a job.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 404 if the caller has no access to it.
    pub async fn get_job(&self, job: &str) -> Result<Job> {
        self.call(GET_JOB, &[job]).send().await
    }

    /// Waits until a job has ended, and returns it.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request. A failed job is no error.
    pub async fn wait_for_job(&self, job: &str) -> Result<Job> {
        let mut pause = WaitPause::new();
        loop {
            pause.start().await;
            let call = self.call(GET_JOB, &[job]).query("wait", Some(WAIT_SECONDS));
            let job = call.send().await?;
            if job.status.is_final() {
                return Ok(job);
            }
        }
    }

    /// Lists the events of a job, newest first.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_job_events(&self, job: &str, page: &PageQuery) -> Result<Page<JobEvent>> {
        let call = self
            .call(LIST_JOB_EVENTS, &[job])
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Follows the events of a job, oldest first, until it has ended.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn follow_job(&self, job: &str) -> Result<EventStream<JobProgressEvent>> {
        self.call(FOLLOW_JOB, &[job])
            .open(StreamEnd::ByServer)
            .await
    }

    /// Retries a failed job. Operators and services only.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 409 if the job has not failed.
    pub async fn retry_job(&self, job: &str) -> Result<JobRef> {
        self.call(RETRY_JOB, &[job]).send().await
    }
}
