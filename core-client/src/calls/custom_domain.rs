//! Custom domains.

use crate::client::Client;
use crate::error::{Error, Result};
use crate::operations::{ADD_DOMAIN, LIST_DOMAINS};
use crate::types::custom_domain::{AddCustomDomain, CustomDomain};
use crate::types::job::{JobOrPlan, JobRef};
use crate::types::page::{Page, PageQuery};

impl Client {
    /// Lists the custom domains of a platform.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_domains(
        &self,
        platform: &str,
        page: &PageQuery,
    ) -> Result<Page<CustomDomain>> {
        let call = self
            .call(LIST_DOMAINS, &[platform])
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Adds a custom domain, or verifies a failed one again. A job waits for its DNS records.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn add_domain(&self, domain: &AddCustomDomain) -> Result<JobRef> {
        match self.call(ADD_DOMAIN, &[]).send(domain).await? {
            JobOrPlan::Job(job) => Ok(job),
            JobOrPlan::Plan(_) => Err(Error::Decode {
                operation: ADD_DOMAIN.name,
                problem: "a plan instead of a job".to_owned(),
            }),
        }
    }
}
