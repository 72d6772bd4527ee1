//! DNS records, which map a hostname to a resource of a platform (interface: "DNS record").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hostname::{self, next_look_up};
use super::{Hostname, MissingRecord};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    DnsRecordId, Environment, IllegalTransition, JobId, Line, Machine, PlatformId, ResourceId,
    StackId, Timestamp, record, state_machine, text_enum,
};

text_enum! {
    /// The type of the target that a hostname leads to.
    pub enum DnsTargetType {
        /// A script that responds to requests.
        Worker = "worker",
        /// A static site.
        Pages = "pages",
        /// Another name in the DNS.
        Cname = "cname",
        /// An IPv4 address.
        A = "a",
        /// An IPv6 address.
        Aaaa = "aaaa",
        /// Another address, to which clients are redirected.
        Redirect = "redirect",
    }
}

text_enum! {
    /// The status of a DNS record.
    pub enum DnsRecordStatus {
        /// The hostname is not served yet. The platform still has to prove its ownership, or the provider has to route
        /// it.
        Pending = "pending",
        /// The provider serves the hostname: it leads to the resource.
        Active = "active",
        /// The hostname is not served. It was not proved in time, another platform has proved it, or the provider
        /// refused it.
        Failed = "failed",
        /// The record is deleted. Final status.
        Deleted = "deleted",
    }
}

impl DnsRecordStatus {
    /// The statuses of a record that is not deleted.
    pub const NOT_DELETED: &'static [Self] = &[Self::Pending, Self::Active, Self::Failed];
}

state_machine! {
    /// Events of a DNS record, which is created `pending`.
    pub enum DnsRecordEvent moves DnsRecordStatus {
        /// The hostname leads to the resource.
        Route = "route": [Pending] => Active, "dns_record.routed";
        /// The hostname is not served, or no longer served.
        Fail = "fail": [Pending, Active] => Failed, "dns_record.failed";
        /// The job of a failed record is resumed.
        Restart = "restart": [Failed] => Pending, "dns_record.restarted";
        /// The record is deleted.
        Delete = "delete": [Pending, Active, Failed] => Deleted, "dns_record.deleted";
    }
}

/// A hostname that leads to a resource of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DnsRecord {
    /// The id of the record.
    pub id: DnsRecordId,
    /// The platform that the record belongs to.
    pub platform_id: PlatformId,
    /// The workspace stack that the record belongs to.
    pub stack_id: StackId,
    /// The hostname. It is unique among the platform's records that are not deleted. Several platforms may add the same
    /// hostname; only the one that proved its ownership last is served. No two active records share a hostname.
    pub hostname: Hostname,
    /// The type of the target.
    pub target_type: DnsTargetType,
    /// The resource that the hostname leads to.
    pub resource_id: ResourceId,
    /// The environment in which the resource runs.
    pub environment: Environment,
    /// The id of the route at the provider. `null` if there is none.
    pub cf_route_id: Option<Line<0, 255>>,
    /// The status of the record. `active` while the hostname is served.
    pub status: DnsRecordStatus,
    /// The DNS records that prove the ownership of the hostname and were missing at the last look-up. Empty if it is
    /// proved.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub missing_records: Vec<MissingRecord>,
    /// When the record was created.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// The text of the TXT record that proves the ownership of the hostname. It is public in the DNS and therefore not
    /// a secret.
    #[serde(skip)]
    pub proof: String,
    /// Whether the record needs no proof: an operator created it, or the hostname is reserved for the platform.
    #[serde(skip)]
    pub is_vouched: bool,
    /// When the proof was first looked up after the status last became `pending`.
    #[serde(skip)]
    pub checked_since: Option<Timestamp>,
    /// The time since which the proof of the active record has been missing. `None` if the last look-up found it.
    #[serde(skip)]
    pub proof_missing_since: Option<Timestamp>,
    /// The job that has the hostname served, or did so last. `None` for a record that was created before such jobs
    /// existed.
    #[serde(skip)]
    pub job_id: Option<JobId>,
}

record! {
    DnsRecord as "DNS record" by id, asked DnsRecordQuery;
    of platform_id;
    audited, touched updated_at;
}

/// The values of a new record that its command does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDnsRecord {
    /// The id of the record.
    pub id: DnsRecordId,
    /// Random text that makes the proof unique.
    pub random: String,
    /// Whether the record needs no proof.
    pub is_vouched: bool,
    /// The job that has the hostname served.
    pub job_id: JobId,
}

impl DnsRecord {
    /// Creates a record of a stack with the status `pending`. A job has its hostname served.
    #[must_use]
    pub fn create(
        new: NewDnsRecord,
        platform_id: &PlatformId,
        stack_id: &StackId,
        command: CreateDnsRecord,
        now: Timestamp,
    ) -> Self {
        let mut record = Self {
            id: new.id,
            platform_id: platform_id.clone(),
            stack_id: stack_id.clone(),
            hostname: command.hostname,
            target_type: command.target_type,
            resource_id: command.resource_id,
            environment: command.environment,
            cf_route_id: None,
            status: DnsRecordStatus::Pending,
            missing_records: Vec::new(),
            created_at: now,
            updated_at: now,
            proof: hostname::proof_text(&new.random),
            is_vouched: new.is_vouched,
            checked_since: None,
            proof_missing_since: None,
            job_id: Some(new.job_id),
        };
        record.missing_records = record.required_records();
        record
    }

    /// Returns the DNS records that prove the ownership of the hostname. Empty for a record that needs no proof.
    #[must_use]
    pub fn required_records(&self) -> Vec<MissingRecord> {
        if self.is_vouched {
            return Vec::new();
        }
        vec![self.proof_record()]
    }

    /// Returns the TXT record that proves the ownership of the hostname.
    #[must_use]
    pub fn proof_record(&self) -> MissingRecord {
        hostname::proof_record(&self.hostname, &self.proof)
    }

    /// Applies an event, and updates the fields that depend on the status.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn after(mut self, event: DnsRecordEvent) -> Result<Self, IllegalTransition> {
        self.status = event.next(self.status)?;
        self.proof_missing_since = None;
        match event {
            DnsRecordEvent::Route => self.missing_records.clear(),
            DnsRecordEvent::Restart => {
                self.missing_records = self.required_records();
                self.checked_since = None;
            }
            DnsRecordEvent::Fail | DnsRecordEvent::Delete => {}
        }
        Ok(self)
    }

    /// Returns the record after its hostname was lost: it fails, and only a new proof makes it active again.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the record is neither active nor pending.
    pub fn after_loss(mut self, random: &str) -> Result<Self, IllegalTransition> {
        self.is_vouched = false;
        self.proof = hostname::proof_text(random);
        let mut lost = self.after(DnsRecordEvent::Fail)?;
        lost.missing_records = lost.required_records();
        Ok(lost)
    }

    /// Returns the pending record after its proof was looked up.
    #[must_use]
    pub fn after_look_up(mut self, missing: &[MissingRecord], now: Timestamp) -> Self {
        self.checked_since.get_or_insert(now);
        self.missing_records = missing.to_vec();
        self
    }

    /// Returns the active record after another look-up of its proof.
    #[must_use]
    pub fn after_proof_look_up(mut self, is_there: bool, now: Timestamp) -> Self {
        self.proof_missing_since = hostname::missing_since(self.proof_missing_since, is_there, now);
        self
    }

    /// Returns whether the platform has proved the hostname, or needs no proof, and has not lost it since. Only then
    /// may the provider serve it.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        match self.status {
            DnsRecordStatus::Active => true,
            DnsRecordStatus::Pending => {
                self.checked_since.is_some() && self.missing_records.is_empty()
            }
            DnsRecordStatus::Failed | DnsRecordStatus::Deleted => false,
        }
    }

    /// Returns whether this job has to have the hostname served and has not done so yet.
    #[must_use]
    pub fn is_pending_for(&self, job: &JobId) -> bool {
        self.job_id.as_ref() == Some(job) && self.status == DnsRecordStatus::Pending
    }

    /// Returns whether the proof has been missing for seven days, so that the record fails.
    #[must_use]
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        hostname::has_timed_out(self.checked_since, now)
    }

    /// Returns when the proof is looked up again. The pauses double from 30 seconds to one hour.
    #[must_use]
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        next_look_up(self.checked_since.unwrap_or(self.updated_at), now)
    }
}

/// Queries for DNS records, newest first unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecordQuery {
    /// The records of the platform.
    All {
        /// Includes deleted records.
        deleted: bool,
    },
    /// The records of a workspace stack.
    OfStack {
        /// The workspace stack of the records.
        stack_id: StackId,
        /// Includes deleted records.
        deleted: bool,
    },
    /// The records that lead to a resource and are not deleted.
    LeadingTo(ResourceId),
    /// The active record with a hostname.
    Active(Hostname),
    /// The record with a hostname that is not deleted. A platform has at most one.
    Entered(Hostname),
    /// The records with a hostname, including deleted ones.
    Named(Hostname),
    /// The active records, oldest first.
    Served,
}

/// Request body that creates a DNS record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDnsRecord {
    /// The hostname of the record.
    pub hostname: Hostname,
    /// The type of the target.
    pub target_type: DnsTargetType,
    /// The resource of the platform that the hostname leads to.
    pub resource_id: ResourceId,
    /// The environment in which the resource runs.
    pub environment: Environment,
}
