//! Custom domains: hostnames of tenants that lead to a platform (interface: "Custom domain").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hostname::{MAX_NAME_LENGTH, PROOF_LABEL, next_look_up, proof_name, proof_record};
use super::{DnsRecordType, Hostname, MissingRecord, ProviderName, hostname};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    CustomDomainId, DnsRecordId, Error, IllegalTransition, JobId, Machine, PlatformId, Result,
    Timestamp, UnixSeconds, record, state_machine, text_enum, update_command,
};

/// A hostname of a tenant that leads to a DNS record of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct CustomDomain {
    /// The id of the domain.
    pub id: CustomDomainId,
    /// The platform that the domain belongs to.
    pub platform_id: PlatformId,
    /// The DNS record that the domain leads to.
    pub dns_record_id: DnsRecordId,
    /// The hostname. It is unique among the platform's domains that are not deleted. Several platforms may add the same
    /// hostname; only the one that proved its ownership last is served. No two active domains share a hostname.
    pub hostname: Hostname,
    /// The name that the hostname must lead to in the DNS.
    pub target_dns: Hostname,
    /// The id of the hostname at the provider. `null` if there is none.
    pub cf_hostname_id: Option<ProviderName>,
    /// The status of the certificate.
    pub ssl_status: SslStatus,
    /// The status of the domain.
    pub status: CustomDomainStatus,
    /// When the domain became active. `null` unless it is active.
    pub verified_at: Option<Timestamp>,
    /// The DNS records that were missing at the last look-up. Before the first look-up, all required records. Empty if
    /// the domain is active.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub missing_records: Vec<MissingRecord>,
    /// When the domain was added.
    pub created_at: Timestamp,
    /// When the domain was last changed.
    pub updated_at: Timestamp,
    /// The text of the TXT record that proves the ownership of the hostname. It is public in the DNS and therefore not
    /// a secret.
    #[serde(skip)]
    pub proof: String,
    /// When the DNS records were first looked up after the status last became `pending`.
    #[serde(skip)]
    pub checked_since: Option<Timestamp>,
    /// The job that verifies the domain and has it served, or did so last.
    #[serde(skip)]
    pub job_id: JobId,
    /// Whether an operator activated the domain. Its proof is then not looked up.
    #[serde(skip)]
    pub is_vouched: bool,
    /// The time since which the proof of the active domain has been missing. `None` if the last look-up found it.
    #[serde(skip)]
    pub proof_missing_since: Option<Timestamp>,
}

record! {
    CustomDomain as "custom domain" by id, asked CustomDomainQuery;
    of platform_id;
    audited, touched updated_at;
}

impl CustomDomain {
    /// Creates a domain with the status `pending`, which a job verifies. `random` makes its proof unique.
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
            proof: hostname::proof_text(random),
            checked_since: None,
            job_id,
            is_vouched: false,
            proof_missing_since: None,
        };
        domain.missing_records = domain.required_records().to_vec();
        domain
    }

    /// Returns the required DNS records: the one that leads to the platform, and the one that proves the ownership.
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

/// Queries for custom domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomDomainQuery {
    /// The domains of the platform, newest first.
    All {
        /// Includes deleted domains.
        deleted: bool,
    },
    /// The domains on a DNS record that are not deleted, newest first.
    OnDnsRecord(DnsRecordId),
    /// The domains that are still to be verified (`pending` or `verifying`), oldest first.
    Unverified,
    /// The active domain with a hostname.
    Active(Hostname),
    /// The domain with a hostname that is not deleted. A platform has at most one.
    Entered(Hostname),
    /// The domains with a hostname, including deleted ones, newest first.
    Named(Hostname),
    /// The active domains, oldest first.
    ActiveOldestFirst,
}

/// Request body that adds a custom domain and queues the job that verifies it and has it served.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddCustomDomain {
    /// The platform that the domain is added to.
    pub platform_id: PlatformId,
    /// The hostname to add.
    pub custom_hostname: Hostname,
    /// The DNS record of the platform that the domain leads to. In the DNS, the domain must lead to the hostname of
    /// this record, which must not be a wildcard.
    pub target_dns_record_id: DnsRecordId,
}

/// Request body that adds a custom domain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateCustomDomain {
    /// The DNS record of the platform that the domain leads to.
    pub dns_record_id: DnsRecordId,
    /// The hostname to add.
    pub hostname: Hostname,
    /// The name that the hostname must lead to in the DNS. It must not be a wildcard or the hostname itself.
    pub target_dns: Hostname,
    /// The id of the hostname at the provider. Default: none.
    pub cf_hostname_id: Option<ProviderName>,
}

impl CreateCustomDomain {
    /// Refuses a domain that could never be verified. `fields` are the request's names of the fields for hostname and
    /// target.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the hostname is too long for a proof record, or the target is a wildcard or the hostname
    /// itself.
    pub fn check(&self, fields: [&str; 2]) -> Result<()> {
        let [hostname, target] = fields;
        if proof_name(&self.hostname).len() > MAX_NAME_LENGTH {
            let message = format!("is too long to be prefixed with {PROOF_LABEL}");
            return Err(Error::invalid(hostname, "too_long", message));
        }
        if self.target_dns.is_wildcard() || self.target_dns == self.hostname {
            let message = "must not be a wildcard or the hostname of the domain itself";
            return Err(Error::invalid(target, "invalid", message));
        }
        Ok(())
    }
}

update_command! {
    /// Request body that updates a custom domain. Omitted fields stay unchanged.
    pub struct UpdateCustomDomain for CustomDomain {
        set {
            /// The new status of the certificate. Only operators can set values other than `pending_validation` and
            /// `failed`.
            ssl_status: SslStatus,
        }
        also {
            /// The new status of the domain. Only operators can set `active`.
            status: Option<CustomDomainStatus>,
            /// When the domain became active, in Unix seconds. Allowed only for operators, and only if the domain is
            /// active.
            verified_at: Option<UnixSeconds>,
        }
        optional {
            /// The id of the hostname at the provider. `null` clears it.
            cf_hostname_id: ProviderName,
        }
    }
}

text_enum! {
    /// The status of a custom domain.
    pub enum CustomDomainStatus {
        /// The DNS records have not been looked up yet.
        Pending = "pending",
        /// Some DNS records are missing and are looked up repeatedly, or all were found and the certificate is pending.
        Verifying = "verifying",
        /// The domain is verified.
        Active = "active",
        /// The verification failed, or the hostname was lost.
        Failed = "failed",
        /// The domain is deleted. Final status.
        Deleted = "deleted",
    }
}

impl CustomDomainStatus {
    /// The statuses of a domain whose DNS records are looked up.
    pub const UNVERIFIED: &'static [Self] = &[Self::Pending, Self::Verifying];
}

text_enum! {
    /// The status of the certificate of a custom domain.
    pub enum SslStatus {
        /// The ownership of the domain is not proved yet.
        PendingValidation = "pending_validation",
        /// The certificate has not been issued yet.
        PendingIssuance = "pending_issuance",
        /// The certificate is issued but not in use yet.
        PendingDeployment = "pending_deployment",
        /// The certificate is in use.
        Active = "active",
        /// The certificate has expired.
        Expired = "expired",
        /// Issuing the certificate failed.
        Failed = "failed",
    }
}

impl SslStatus {
    /// Returns whether the status requires that the ownership was proved. Only operators can set such a status.
    #[must_use]
    pub const fn requires_proof(self) -> bool {
        !matches!(self, Self::PendingValidation | Self::Failed)
    }
}

state_machine! {
    /// Events of a custom domain, which is created `pending`.
    pub enum CustomDomainEvent moves CustomDomainStatus {
        /// The DNS records were looked up, and the domain cannot become active yet.
        Check = "check": [Pending] => Verifying, "domain.checked";
        /// All DNS records were found, or an operator declared the domain active.
        Activate = "activate": [Pending, Verifying] => Active, "domain.activated";
        /// The verification failed, or the hostname was lost.
        Fail = "fail": [Pending, Verifying, Active] => Failed, "domain.failed";
        /// The verification starts again from the beginning.
        Restart = "restart": [Failed] => Pending, "domain.restarted";
        /// The domain is deleted.
        Delete = "delete": [Pending, Verifying, Active, Failed] => Deleted, "domain.deleted";
    }
}

impl CustomDomain {
    /// Applies an event, and updates the fields that depend on the status.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn after(
        mut self,
        event: CustomDomainEvent,
        now: Timestamp,
    ) -> Result<Self, IllegalTransition> {
        self.status = event.next(self.status)?;
        self.verified_at = (self.status == CustomDomainStatus::Active).then_some(now);
        self.proof_missing_since = None;
        match event {
            CustomDomainEvent::Activate => {
                self.missing_records.clear();
                if self.ssl_status == SslStatus::PendingValidation {
                    self.ssl_status = SslStatus::PendingIssuance;
                }
            }
            CustomDomainEvent::Restart => {
                self.missing_records = self.required_records().to_vec();
                self.ssl_status = SslStatus::PendingValidation;
                self.checked_since = None;
                self.is_vouched = false;
            }
            CustomDomainEvent::Check | CustomDomainEvent::Fail | CustomDomainEvent::Delete => {}
        }
        Ok(self)
    }

    /// Returns the domain after its DNS records were looked up, and the event that follows, if any.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the domain is not to be verified.
    pub fn after_look_up(
        mut self,
        missing: &[MissingRecord],
        now: Timestamp,
    ) -> Result<(Self, Option<CustomDomainEvent>), IllegalTransition> {
        self.checked_since.get_or_insert(now);
        let event = match self.status {
            _ if missing.is_empty() => CustomDomainEvent::Activate,
            CustomDomainStatus::Verifying => {
                self.missing_records = missing.to_vec();
                return Ok((self, None));
            }
            _ => CustomDomainEvent::Check,
        };
        let mut next = self.after(event, now)?;
        next.missing_records = missing.to_vec();
        Ok((next, Some(event)))
    }

    /// Returns the domain after all its DNS records were found, while its certificate is pending. It becomes active
    /// together with the certificate.
    #[must_use]
    pub fn after_proof(mut self, now: Timestamp) -> Self {
        self.checked_since.get_or_insert(now);
        if let Ok(status) = CustomDomainEvent::Check.next(self.status) {
            self.status = status;
        }
        self.missing_records.clear();
        if self.ssl_status == SslStatus::PendingValidation {
            self.ssl_status = SslStatus::PendingIssuance;
        }
        self
    }

    /// Returns the active domain after another look-up of its proof.
    #[must_use]
    pub fn after_proof_look_up(mut self, is_there: bool, now: Timestamp) -> Self {
        self.proof_missing_since = hostname::missing_since(self.proof_missing_since, is_there, now);
        self
    }

    /// Returns the domain after its hostname was lost: it fails, and only a new proof makes it active again.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the domain is already failed or deleted.
    pub fn after_loss(self, random: &str, now: Timestamp) -> Result<Self, IllegalTransition> {
        let mut lost = self.after(CustomDomainEvent::Fail, now)?;
        lost.proof = hostname::proof_text(random);
        lost.missing_records = lost.required_records().to_vec();
        Ok(lost)
    }

    /// Returns whether the platform has proved the hostname and not lost it since. Only then may the provider serve it.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        match self.status {
            CustomDomainStatus::Active => true,
            CustomDomainStatus::Verifying => self.missing_records.is_empty(),
            CustomDomainStatus::Pending
            | CustomDomainStatus::Failed
            | CustomDomainStatus::Deleted => false,
        }
    }

    /// Returns whether a job is the one that has the domain served: the domain is active or to be verified.
    #[must_use]
    pub fn is_served_by(&self, job: &JobId) -> bool {
        let is_active = self.status == CustomDomainStatus::Active;
        self.is_verified_by(job) || self.job_id == *job && is_active
    }

    /// Returns whether a job is the one that has to verify the domain.
    #[must_use]
    pub fn is_verified_by(&self, job: &JobId) -> bool {
        self.job_id == *job && CustomDomainStatus::UNVERIFIED.contains(&self.status)
    }

    /// Returns whether DNS records have been missing for seven days, so that the verification fails.
    #[must_use]
    pub fn has_timed_out(&self, now: Timestamp) -> bool {
        hostname::has_timed_out(self.checked_since, now)
    }

    /// Returns when the DNS records are looked up again after some were missing. The pauses double from 30 seconds to
    /// one hour.
    #[must_use]
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        next_look_up(self.checked_since.unwrap_or(now), now)
    }

    /// Returns when the DNS records are looked up again after a look-up failed, with the pauses of
    /// [`CustomDomain::next_check`].
    #[must_use]
    pub fn next_check_after_error(&self, now: Timestamp) -> Timestamp {
        // Before the first look-up, the last change of the domain is the one that made it `pending`.
        next_look_up(self.checked_since.unwrap_or(self.updated_at), now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::fixed_sample;

    use super::*;

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(CustomDomainEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(CustomDomainStatus::Pending, &events);
        }
    }

    #[test]
    fn pauses_between_look_ups_double_from_30_seconds_to_one_hour() {
        let mut now = Timestamp::from_seconds(1_000_000);
        let domain = CustomDomain {
            checked_since: Some(now),
            ..fixed_sample::<CustomDomain>(1).remove(0)
        };
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let next = domain.next_check(now);
            pauses.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        assert!(!domain.has_timed_out(now));
        assert!(domain.has_timed_out(now.plus(Duration::from_secs(7 * 24 * 60 * 60))));
    }
}
