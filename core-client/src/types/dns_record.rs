//! DNS records: the hostnames of a workspace stack.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::open_enum::open_enum;

open_enum! {
    /// The type of a record that the owner of a domain must create.
    pub enum RequiredRecordType {
        /// An alias of another name.
        Cname = "CNAME",
        /// A text that proves the ownership.
        Txt = "TXT",
    }
}

/// A record that the owner of a domain must create at their DNS provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RequiredRecord {
    /// The type of the record.
    #[serde(rename = "type")]
    pub kind: RequiredRecordType,
    /// The name of the record, without the trailing dot.
    pub name: String,
    /// The required content: the target of an alias, or the text.
    pub value: String,
}

open_enum! {
    /// The type of the target of a hostname.
    pub enum DnsTargetType {
        /// A worker of the platform.
        Worker = "worker",
        /// A site of the platform.
        Pages = "pages",
        /// An alias of another name.
        Cname = "cname",
        /// An IPv4 address.
        A = "a",
        /// An IPv6 address.
        Aaaa = "aaaa",
        /// A redirect to another address.
        Redirect = "redirect",
    }
}

open_enum! {
    /// The status of a DNS record.
    pub enum DnsRecordStatus {
        /// The proof of the hostname is missing, or the route is being created.
        Pending = "pending",
        /// The hostname is served.
        Active = "active",
        /// The hostname could not be served.
        Failed = "failed",
        /// The record is deleted.
        Deleted = "deleted",
    }
}

/// The hostname to add to a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CreateDnsRecord {
    /// The hostname to serve.
    pub hostname: String,
    /// The type of the target.
    pub target_type: DnsTargetType,
    /// The resource that the hostname leads to.
    pub resource_id: String,
    /// The environment in which the resource runs.
    pub environment: Environment,
}

/// A hostname of a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DnsRecord {
    /// The id of the record.
    pub id: String,
    /// The workspace stack that the record belongs to.
    pub stack_id: String,
    /// The hostname that is served.
    pub hostname: String,
    /// The type of the target.
    pub target_type: DnsTargetType,
    /// The resource that the hostname leads to.
    pub resource_id: String,
    /// The status of the record.
    pub status: DnsRecordStatus,
    /// The records that prove the ownership of the hostname and were missing at the last look-up.
    pub missing_records: Vec<RequiredRecord>,
}
