//! Custom domains: the hostnames of a platform's customers.

use serde::{Deserialize, Serialize};

use super::dns_record::RequiredRecord;
use super::open_enum::open_enum;

open_enum! {
    /// The status of a custom domain.
    pub enum CustomDomainStatus {
        /// The domain is new.
        Pending = "pending",
        /// The DNS records of the domain are being looked up.
        Verifying = "verifying",
        /// The domain is served.
        Active = "active",
        /// The domain could not be verified.
        Failed = "failed",
        /// The domain is deleted.
        Deleted = "deleted",
    }
}

open_enum! {
    /// The status of a certificate.
    pub enum SslStatus {
        /// The ownership of the hostname is not proved yet.
        PendingValidation = "pending_validation",
        /// The certificate is being issued.
        PendingIssuance = "pending_issuance",
        /// The certificate is being installed.
        PendingDeployment = "pending_deployment",
        /// The certificate is in use.
        Active = "active",
        /// The certificate has expired.
        Expired = "expired",
        /// Issuing the certificate failed.
        Failed = "failed",
    }
}

/// The domain to add to a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddCustomDomain {
    /// The platform that the domain is added to.
    pub platform_id: String,
    /// The hostname of the domain.
    pub custom_hostname: String,
    /// The DNS record of the platform that the domain leads to.
    pub target_dns_record_id: String,
}

/// A hostname of a customer that leads to a DNS record of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CustomDomain {
    /// The id of the domain.
    pub id: String,
    /// The hostname of the domain.
    pub hostname: String,
    /// The name that the hostname must lead to in the DNS.
    pub target_dns: String,
    /// The DNS record of the platform that the domain leads to.
    pub dns_record_id: String,
    /// The status of the domain.
    pub status: CustomDomainStatus,
    /// The status of the certificate.
    pub ssl_status: SslStatus,
    /// The DNS records that were missing at the last look-up. Empty if none is missing.
    pub missing_records: Vec<RequiredRecord>,
    /// The time at which the domain became active; `None` unless it is active.
    pub verified_at: Option<String>,
}
