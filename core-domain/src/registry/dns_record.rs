//! DNS records: which hostname leads to which resource (interface: "DNS record").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hostname::{self, next_look_up};
use super::{Hostname, MissingRecord};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    DnsRecordId, Environment, IllegalMove, JobId, Line, Machine, PlatformId, ResourceId, StackId,
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
    /// The status of a DNS record.
    pub enum DnsRecordStatus {
        /// Entered; not served yet. Its platform still has to prove the hostname, or the provider to route it.
        Pending = "pending",
        /// Served: the hostname leads to the resource.
        Active = "active",
        /// Not served: the hostname was not proved in time, is another platform's by now, or the provider refused it.
        Failed = "failed",
        /// Deleted. The final status.
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
        /// The hostname is not served, or no longer.
        Fail = "fail": [Pending, Active] => Failed, "dns_record.failed";
        /// Its job goes on after a failure.
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
    /// The record's id.
    pub id: DnsRecordId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// The workspace stack it belongs to.
    pub stack_id: StackId,
    /// The name. A platform has it once among its records that are not deleted. Others may enter it as well: the platform
    /// that proved it last is served, and no two active records of the installation share one.
    pub hostname: Hostname,
    /// What it leads to.
    pub target_type: DnsTargetType,
    /// The resource it leads to.
    pub resource_id: ResourceId,
    /// Where that runs.
    pub environment: Environment,
    /// Its route's id at the provider.
    pub cf_route_id: Option<Line<0, 255>>,
    /// The status; `active` while the hostname is served.
    pub status: DnsRecordStatus,
    /// The DNS records that prove the hostname and were missing when they were last looked up; none once it is proved.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub missing_records: Vec<MissingRecord>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The text in the DNS that proves who holds the hostname. Everybody can read it there: no secret.
    #[serde(skip)]
    pub proof: String,
    /// The record needs no proof: an operator entered it, or the hostname is reserved for the platform.
    #[serde(skip)]
    pub is_vouched: bool,
    /// When its proof was first looked up since it was last `pending`.
    #[serde(skip)]
    pub checked_since: Option<Timestamp>,
    /// Since when its proof has been missing while it is active; `null` if the last look-up found it.
    #[serde(skip)]
    pub proof_missing_since: Option<Timestamp>,
    /// The job that has it served, or did so last; `null` for a record from before there were such jobs.
    #[serde(skip)]
    pub job_id: Option<JobId>,
}

record! {
    DnsRecord as "DNS record" by id, asked DnsRecordQuery;
    of platform_id;
    audited, touched updated_at;
}

/// What a new record is given besides its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDnsRecord {
    /// The record's id.
    pub id: DnsRecordId,
    /// Makes its proof differ from all others.
    pub random: String,
    /// The record needs no proof.
    pub is_vouched: bool,
    /// The job that has it served.
    pub job_id: JobId,
}

impl DnsRecord {
    /// A new record of a stack, which a job has served.
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

    /// Returns the DNS records that prove the hostname; none for a record that needs no proof.
    #[must_use]
    pub fn required_records(&self) -> Vec<MissingRecord> {
        if self.is_vouched {
            return Vec::new();
        }
        vec![self.proof_record()]
    }

    /// Returns the DNS record that proves the hostname.
    #[must_use]
    pub fn proof_record(&self) -> MissingRecord {
        hostname::proof_record(&self.hostname, &self.proof)
    }

    /// The record after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: DnsRecordEvent) -> Result<Self, IllegalMove> {
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

    /// Returns the record after its hostname was lost: it has failed, and only a new proof makes it active again.
    ///
    /// # Errors
    /// [`IllegalMove`] if it is neither active nor pending.
    pub fn lost(mut self, random: &str) -> Result<Self, IllegalMove> {
        self.is_vouched = false;
        self.proof = hostname::proof_text(random);
        let mut lost = self.after(DnsRecordEvent::Fail)?;
        lost.missing_records = lost.required_records();
        Ok(lost)
    }

    /// Returns the record after its proof was looked up while it is pending.
    #[must_use]
    pub fn checked(mut self, missing: &[MissingRecord], now: Timestamp) -> Self {
        self.checked_since.get_or_insert(now);
        self.missing_records = missing.to_vec();
        self
    }

    /// Returns the record after another look-up of its proof while it is active.
    #[must_use]
    pub fn proof_looked_up(mut self, is_there: bool, now: Timestamp) -> Self {
        self.proof_missing_since = hostname::missing_since(self.proof_missing_since, is_there, now);
        self
    }

    /// Tells whether the platform has proved the hostname, or needs no proof, and has not lost it since. Only then may the
    /// provider serve it.
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

    /// Tells whether this job has to have the record served, and has not done so yet.
    #[must_use]
    pub fn is_pending_for(&self, job: &JobId) -> bool {
        self.job_id.as_ref() == Some(job) && self.status == DnsRecordStatus::Pending
    }

    /// Tells whether the proof was missing for seven days, so that the record is given up.
    #[must_use]
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        hostname::is_given_up(self.checked_since, now)
    }

    /// Returns when the proof is looked up again: after growing pauses, from 30 s to an hour.
    #[must_use]
    pub fn next_check(&self, now: Timestamp) -> Timestamp {
        next_look_up(self.checked_since.unwrap_or(self.updated_at), now)
    }
}

/// Questions about DNS records; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecordQuery {
    /// All of a platform.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those of a stack.
    OfStack {
        /// The stack.
        stack_id: StackId,
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those that lead to a resource and are not deleted.
    LeadingTo(ResourceId),
    /// The active one of this name.
    Active(Hostname),
    /// The one of this name that is not deleted; a platform has one at the most.
    Entered(Hostname),
    /// Those of this name, deleted ones too.
    Named(Hostname),
    /// The active ones, oldest first.
    Served,
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
