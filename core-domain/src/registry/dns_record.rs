//! DNS records: which hostname leads to which resource (interface: "DNS record").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Hostname;
use crate::kernel::{
    DnsRecordId, Environment, IllegalMove, Line, Machine, PlatformId, ResourceId, StackId,
    Timestamp, record, state_machine, text_enum,
};

text_enum! {
    /// What a hostname leads to.
    pub enum DnsTargetType {
        /// A script that answers requests.
        Worker = "worker",
        /// A static site.
        Pages = "pages",
        /// Another name.
        Cname = "cname",
        /// An IPv4 address.
        A = "a",
        /// An IPv6 address.
        Aaaa = "aaaa",
        /// Another address, told to the client.
        Redirect = "redirect",
    }
}

text_enum! {
    /// Where a DNS record stands.
    pub enum DnsRecordStatus {
        /// In use.
        Active = "active",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to a DNS record. It is created `active`.
    pub enum DnsRecordEvent moves DnsRecordStatus {
        /// It is deleted.
        Delete = "dns_record.deleted": [Active] => Deleted;
    }
}

/// A hostname that leads to a resource of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DnsRecord {
    /// The record's id.
    pub id: DnsRecordId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// The workspace stack it belongs to.
    pub stack_id: StackId,
    /// The name; no two records of the installation that are not deleted share one, and no other platform has an active
    /// custom domain of it.
    pub hostname: Hostname,
    /// What it leads to.
    pub target_type: DnsTargetType,
    /// The resource it leads to.
    pub resource_id: ResourceId,
    /// Where that runs.
    pub environment: Environment,
    /// Its route's id at the provider.
    pub cf_route_id: Option<Line<0, 255>>,
    /// Where it stands.
    pub status: DnsRecordStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    DnsRecord as "DNS record" by id, asked DnsRecordQuery;
    of platform_id;
    audited, touched updated_at;
}

impl DnsRecord {
    /// A new record of a stack.
    #[must_use]
    pub fn create(
        id: DnsRecordId,
        platform_id: &PlatformId,
        stack_id: &StackId,
        command: CreateDnsRecord,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id: platform_id.clone(),
            stack_id: stack_id.clone(),
            hostname: command.hostname,
            target_type: command.target_type,
            resource_id: command.resource_id,
            environment: command.environment,
            cf_route_id: None,
            status: DnsRecordStatus::Active,
            created_at: now,
            updated_at: now,
        }
    }

    /// The record after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: DnsRecordEvent) -> Result<Self, IllegalMove> {
        self.status = event.next(self.status)?;
        Ok(self)
    }
}

/// Questions about DNS records; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecordQuery {
    /// Those that are not deleted.
    Active,
    /// Those of a stack.
    OfStack {
        /// The stack.
        stack_id: StackId,
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those that lead to a resource and are not deleted.
    LeadingTo(ResourceId),
    /// The one of this name that is not deleted.
    Named(Hostname),
}

/// Creates a DNS record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDnsRecord {
    /// The name.
    pub hostname: Hostname,
    /// What it leads to.
    pub target_type: DnsTargetType,
    /// The resource of the platform it leads to.
    pub resource_id: ResourceId,
    /// Where that runs.
    pub environment: Environment,
}
