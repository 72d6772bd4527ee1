//! DNS records of workspace stacks.

use crate::client::Client;
use crate::error::Result;
use crate::operations::{CREATE_DNS_RECORD, LIST_DNS_RECORDS};
use crate::types::dns_record::{CreateDnsRecord, DnsRecord};
use crate::types::page::{Page, PageQuery};

impl Client {
    /// Lists the DNS records of a workspace stack.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_dns_records(
        &self,
        platform: &str,
        stack: &str,
        page: &PageQuery,
    ) -> Result<Page<DnsRecord>> {
        let call = self
            .call(LIST_DNS_RECORDS, &[platform, stack])
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Adds a hostname to a workspace stack. A job waits for the proof of its ownership.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn create_dns_record(
        &self,
        platform: &str,
        stack: &str,
        record: &CreateDnsRecord,
    ) -> Result<DnsRecord> {
        self.call(CREATE_DNS_RECORD, &[platform, stack])
            .send(record)
            .await
    }
}
