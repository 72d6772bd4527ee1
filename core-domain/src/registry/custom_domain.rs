//! Custom domains: names of tenants that lead to a platform (interface: "Custom domain").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hostname::{MAX_NAME_LENGTH, PROOF_LABEL, next_look_up, proof_name, proof_record};
use super::{DnsRecordType, Hostname, MissingRecord, ProviderName, hostname};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    CustomDomainId, DnsRecordId, Error, IllegalMove, JobId, Machine, PlatformId, Result, Timestamp,
    UnixSeconds, record, state_machine, text_enum, update_command,
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
            proof: hostname::proof_text(random),
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

text_enum! {
    /// Where a custom domain stands.
    pub enum CustomDomainStatus {
        /// Entered; its DNS records were not looked up yet.
        Pending = "pending",
        /// Its DNS records are looked up again and again, and some are missing.
        Verifying = "verifying",
        /// Its DNS records were found.
        Active = "active",
        /// Given up.
        Failed = "failed",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

impl CustomDomainStatus {
    /// The statuses of a domain whose DNS records are looked up.
    pub const UNVERIFIED: &'static [Self] = &[Self::Pending, Self::Verifying];
}

text_enum! {
    /// Where the certificate of a custom domain stands.
    pub enum SslStatus {
        /// Whose domain it is is not proved yet.
        PendingValidation = "pending_validation",
        /// To be issued.
        PendingIssuance = "pending_issuance",
        /// Issued, not in use yet.
        PendingDeployment = "pending_deployment",
        /// In use.
        Active = "active",
        /// Too old.
        Expired = "expired",
        /// There will be none.
        Failed = "failed",
    }
}

impl SslStatus {
    /// Whether it is reached only after it was proved whose domain it is, and so takes an operator to say.
    #[must_use]
    pub const fn follows_proof(self) -> bool {
        !matches!(self, Self::PendingValidation | Self::Failed)
    }
}

state_machine! {
    /// What happens to a custom domain. It is created `pending`.
    pub enum CustomDomainEvent moves CustomDomainStatus {
        /// Its DNS records were looked up, and some are missing.
        Check = "check": [Pending] => Verifying, "domain.checked";
        /// All are there, or somebody says so.
        Activate = "activate": [Pending, Verifying] => Active, "domain.activated";
        /// It is given up.
        Fail = "fail": [Pending, Verifying, Active] => Failed, "domain.failed";
        /// It is verified from the beginning.
        Restart = "restart": [Failed] => Pending, "domain.restarted";
        /// It is deleted.
        Delete = "delete": [Pending, Verifying, Active, Failed] => Deleted, "domain.deleted";
    }
}

impl CustomDomain {
    /// The domain after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: CustomDomainEvent, now: Timestamp) -> Result<Self, IllegalMove> {
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

    /// The domain after its DNS records were looked up, and what happened to it by that, if anything.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that is not to be verified.
    pub fn checked(
        mut self,
        missing: &[MissingRecord],
        now: Timestamp,
    ) -> Result<(Self, Option<CustomDomainEvent>), IllegalMove> {
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

    /// The domain once all its DNS records were found and its certificate is the next to come: it becomes active with
    /// that.
    #[must_use]
    pub fn proved(mut self, now: Timestamp) -> Self {
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

    /// Returns the domain after another look-up of its proof while it is active.
    #[must_use]
    pub fn proof_looked_up(mut self, is_there: bool, now: Timestamp) -> Self {
        self.proof_missing_since = hostname::missing_since(self.proof_missing_since, is_there, now);
        self
    }

    /// Returns the domain after its hostname was lost: it has failed, and only a new proof makes it active again.
    ///
    /// # Errors
    /// [`IllegalMove`] if it is neither active nor to be verified.
    pub fn lost(self, random: &str, now: Timestamp) -> Result<Self, IllegalMove> {
        let mut lost = self.after(CustomDomainEvent::Fail, now)?;
        lost.proof = hostname::proof_text(random);
        lost.missing_records = lost.required_records().to_vec();
        Ok(lost)
    }

    /// Tells whether the platform has proved the hostname and not lost it since. Only then may the provider serve it.
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

    /// Whether a job is the one that has it served.
    #[must_use]
    pub fn is_served_by(&self, job: &JobId) -> bool {
        let is_active = self.status == CustomDomainStatus::Active;
        self.is_verified_by(job) || self.job_id == *job && is_active
    }

    /// Whether a job is the one that has to verify it.
    #[must_use]
    pub fn is_verified_by(&self, job: &JobId) -> bool {
        self.job_id == *job && CustomDomainStatus::UNVERIFIED.contains(&self.status)
    }

    /// Whether its DNS records were missing for so long that it is given up.
    #[must_use]
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        hostname::is_given_up(self.checked_since, now)
    }

    /// When its DNS records are to be looked up again after some were missing: after 30 s, and then as long as they were
    /// looked up so far and 30 s more, which doubles every pause, up to an hour.
    #[must_use]
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        next_look_up(self.checked_since.unwrap_or(now), now)
    }

    /// As [`CustomDomain::next_check`], after the DNS did not answer.
    #[must_use]
    pub fn next_try(&self, now: Timestamp) -> Timestamp {
        // Until its records were looked up, the last that happened to a domain is that it became `pending`.
        next_look_up(self.checked_since.unwrap_or(self.updated_at), now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::some;

    use super::*;

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(CustomDomainEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(CustomDomainStatus::Pending, &events);
        }
    }

    #[test]
    fn the_pauses_double_from_half_a_minute_to_an_hour() {
        let mut now = Timestamp::from_seconds(1_000_000);
        let domain = CustomDomain {
            checked_since: Some(now),
            ..some::<CustomDomain>(1).remove(0)
        };
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let next = domain.next_check(now);
            pauses.push(next.since(now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        assert!(!domain.is_given_up(now));
        assert!(domain.is_given_up(now.plus(Duration::from_secs(7 * 24 * 60 * 60))));
    }
}
