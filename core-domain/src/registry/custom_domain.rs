//! Custom domains: names of tenants that lead to a platform (interface: "Custom domain").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hostname_proof::{self, MAX_NAME_LENGTH, PROOF_LABEL, proof_name, proof_record};
use super::{CustomDomainStatus, DnsRecordType, Hostname, MissingRecord, ProviderName, SslStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    CustomDomainId, DnsRecordId, Error, JobId, PlatformId, Result, Timestamp, UnixSeconds, record,
    update_command,
};

/// A name of a tenant's that leads to a DNS record of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct CustomDomain {
    /// The domain's id.
    pub id: CustomDomainId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// The DNS record it leads to.
    pub dns_record_id: DnsRecordId,
    /// The name. A platform has it once among its domains that are not deleted. Others may enter it as well: the platform
    /// that proved it last has it, and no two active domains of the installation share one.
    pub hostname: Hostname,
    /// The name it has to lead to in the DNS.
    pub target_dns: Hostname,
    /// Its id at the provider.
    pub cf_hostname_id: Option<ProviderName>,
    /// Where its certificate stands.
    pub ssl_status: SslStatus,
    /// Where it stands.
    pub status: CustomDomainStatus,
    /// When it became active; unset unless it is.
    pub verified_at: Option<Timestamp>,
    /// The DNS records that were missing when they were last looked up; none once it has been active.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub missing_records: Vec<MissingRecord>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The text in the DNS that proves who holds the domain. Everybody can read it there: no secret.
    #[serde(skip)]
    pub proof: String,
    /// When its DNS records were first looked up since it was last `pending`.
    #[serde(skip)]
    pub checked_since: Option<Timestamp>,
    /// The job that looks them up, or did so last.
    #[serde(skip)]
    pub job_id: JobId,
    /// Whether an operator made it active, so that nobody looks for its proof.
    #[serde(skip)]
    pub is_vouched: bool,
    /// Since when its proof has been missing while it is active; `null` if the last look-up found it.
    #[serde(skip)]
    pub proof_missing_since: Option<Timestamp>,
}

record! {
    CustomDomain as "custom domain" by id, asked CustomDomainQuery;
    of platform_id;
    audited, touched updated_at;
}

impl CustomDomain {
    /// A new domain of the platform, which a job verifies. `random` makes its proof differ from all others.
    #[must_use]
    pub fn create(
        id: CustomDomainId,
        platform_id: &PlatformId,
        command: CreateCustomDomain,
        random: &str,
        job_id: JobId,
        now: Timestamp,
    ) -> Self {
        let mut domain = Self {
            id,
            platform_id: platform_id.clone(),
            dns_record_id: command.dns_record_id,
            hostname: command.hostname,
            target_dns: command.target_dns,
            cf_hostname_id: command.cf_hostname_id,
            ssl_status: SslStatus::PendingValidation,
            status: CustomDomainStatus::Pending,
            verified_at: None,
            missing_records: Vec::new(),
            created_at: now,
            updated_at: now,
            proof: hostname_proof::proof_text(random),
            checked_since: None,
            job_id,
            is_vouched: false,
            proof_missing_since: None,
        };
        domain.missing_records = domain.required_records().to_vec();
        domain
    }

    /// The DNS records it takes: the one that leads to the platform, and the one that proves who holds the domain.
    #[must_use]
    pub fn required_records(&self) -> [MissingRecord; 2] {
        let route = MissingRecord {
            record_type: DnsRecordType::Cname,
            name: self.hostname.to_string(),
            value: self.target_dns.to_string(),
        };
        [route, proof_record(&self.hostname, &self.proof)]
    }
}

/// Questions about custom domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomDomainQuery {
    /// All, newest first.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those on a DNS record that are not deleted, newest first.
    OnDnsRecord(DnsRecordId),
    /// Those that are not verified and not given up, oldest first.
    Unverified,
    /// The active one of this name.
    Active(Hostname),
    /// The one of this name that is not deleted; a platform has one at the most.
    Entered(Hostname),
    /// Those of this name, deleted ones too, newest first.
    Named(Hostname),
    /// The active ones, oldest first.
    Served,
}

/// Enters a custom domain and has it served (interface: `POST /api/v1/provision/domain/add`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddCustomDomain {
    /// The platform.
    pub platform_id: PlatformId,
    /// The name.
    pub custom_hostname: Hostname,
    /// The DNS record of the platform it leads to, by the name of which it has to lead there in the DNS; no wildcard.
    pub target_dns_record_id: DnsRecordId,
}

/// Enters a custom domain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateCustomDomain {
    /// The DNS record of the platform it leads to.
    pub dns_record_id: DnsRecordId,
    /// The name.
    pub hostname: Hostname,
    /// The name it has to lead to in the DNS; no wildcard.
    pub target_dns: Hostname,
    /// Its id at the provider.
    pub cf_hostname_id: Option<ProviderName>,
}

impl CreateCustomDomain {
    /// Refuses what could never be verified. `fields` are what the request calls hostname and target.
    ///
    /// # Errors
    /// `VALIDATION_ERROR`.
    pub fn check(&self, fields: [&str; 2]) -> Result<()> {
        let [hostname, target] = fields;
        if proof_name(&self.hostname).len() > MAX_NAME_LENGTH {
            let message = format!("leaves no room for {PROOF_LABEL} before it");
            return Err(Error::invalid(hostname, "too_long", message));
        }
        if self.target_dns.is_wildcard() || self.target_dns == self.hostname {
            let message = "must be a single name, and not that of the domain itself";
            return Err(Error::invalid(target, "invalid", message));
        }
        Ok(())
    }
}

update_command! {
    /// Changes a custom domain.
    pub struct UpdateCustomDomain for CustomDomain {
        set {
            /// Where its certificate stands; what follows a proof is for operators to say.
            ssl_status: SslStatus,
        }
        also {
            /// Where it stands.
            status: Option<CustomDomainStatus>,
            /// When it became active, for one that is.
            verified_at: Option<UnixSeconds>,
        }
        optional {
            /// Its id at the provider; `null` takes it away.
            cf_hostname_id: ProviderName,
        }
    }
}
