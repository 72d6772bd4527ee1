//! How a custom domain moves.

use super::hostname_proof::{self, next_look_up};
use super::{CustomDomain, CustomDomainEvent, CustomDomainStatus, MissingRecord, SslStatus};
use crate::kernel::{IllegalMove, JobId, Machine, Timestamp};

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
        self.proof_missing_since =
            hostname_proof::missing_since(self.proof_missing_since, is_there, now);
        self
    }

    /// Returns the domain after its hostname was lost: it has failed, and only a new proof makes it active again.
    ///
    /// # Errors
    /// [`IllegalMove`] if it is neither active nor to be verified.
    pub fn lost(self, random: &str, now: Timestamp) -> Result<Self, IllegalMove> {
        let mut lost = self.after(CustomDomainEvent::Fail, now)?;
        lost.proof = hostname_proof::proof_text(random);
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
        hostname_proof::is_given_up(self.checked_since, now)
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

    use super::*;
    use crate::kernel::strategy::some;

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
