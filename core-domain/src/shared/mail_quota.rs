//! Counts the mails of one kind to one address, or from one organization.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{Timestamp, record};

/// A rate that mails must not exceed: `max` mails in any `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailRate {
    /// The number of mails.
    pub max: u32,
    /// The length of the window. It slides: each mail counts for this long.
    pub window: Duration,
}

impl MailRate {
    /// At most `max` mails in an hour.
    #[must_use]
    pub const fn per_hour(max: u32) -> Self {
        Self {
            max,
            window: Duration::from_secs(60 * 60),
        }
    }

    /// At most `max` mails in a day.
    #[must_use]
    pub const fn per_day(max: u32) -> Self {
        Self {
            max,
            window: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// At least `pause` between two mails.
    #[must_use]
    pub const fn pause(pause: Duration) -> Self {
        Self {
            max: 1,
            window: pause,
        }
    }
}

/// A rate that one more mail would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededRate {
    /// The rate.
    pub rate: MailRate,
    /// The time until a mail is allowed again.
    pub retry_after: Duration,
}

/// The recent mails of one kind to one address, or from one organization. The record is kept until no rate counts its mails
/// any more, so that the numbers hold over all clients, all nodes and all restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MailQuota {
    /// What is counted: the kind of mail, and a hash of the address or the id of the organization.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(regex = "[a-z]{1,12}:[0-9a-f]{64}")
    )]
    pub id: String,
    /// When the mails were queued, oldest first.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub sent_at: Vec<Timestamp>,
    /// From when on no mail of the record counts.
    pub expires_at: Timestamp,
}

record! {
    MailQuota as "mail quota" by id, asked MailQuotaQuery;
}

/// Queries for mail quotas.
#[derive(Clone, Debug, PartialEq)]
pub enum MailQuotaQuery {
    /// Those that have expired at this instant, oldest first.
    ExpiredAt(Timestamp),
}

impl MailQuota {
    /// A quota without mails.
    #[must_use]
    pub const fn new(id: String, now: Timestamp) -> Self {
        Self {
            id,
            sent_at: Vec::new(),
            expires_at: now,
        }
    }

    /// The quota with one more mail at `now`.
    ///
    /// # Errors
    /// The rate that allows a mail last, when rates would be exceeded.
    pub fn take(&self, rates: &[MailRate], now: Timestamp) -> Result<Self, ExceededRate> {
        let exceeded = rates.iter().filter_map(|rate| {
            let retry_after = self.wait(*rate, now)?;
            Some(ExceededRate {
                rate: *rate,
                retry_after,
            })
        });
        if let Some(exceeded) = exceeded.max_by_key(|exceeded| exceeded.retry_after) {
            return Err(exceeded);
        }
        let longest = rates.iter().map(|rate| rate.window).max();
        let longest = longest.unwrap_or_default();
        let counts = |sent: &&Timestamp| now.since(**sent) < longest;
        let mut sent_at: Vec<Timestamp> = self.sent_at.iter().filter(counts).copied().collect();
        sent_at.push(now);
        Ok(Self {
            id: self.id.clone(),
            sent_at,
            expires_at: now.plus(longest),
        })
    }

    /// How long the next mail has to wait for a rate; `None` if it may be sent now.
    fn wait(&self, rate: MailRate, now: Timestamp) -> Option<Duration> {
        let Ok(max) = usize::try_from(rate.max) else {
            return None;
        };
        if rate.window.is_zero() {
            return None;
        }
        let counted = self.sent_at.iter();
        let counted = counted.filter(|sent| now.since(**sent) < rate.window);
        // The mail whose end makes room for one more.
        let blocking = counted.rev().nth(max.saturating_sub(1));
        match (max, blocking) {
            (0, _) => Some(rate.window),
            (_, None) => None,
            (_, Some(sent)) => Some(sent.plus(rate.window).since(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

    proptest! {
        #[test]
        fn no_window_ever_holds_more_mails_than_its_rate_allows(
            gaps in prop::collection::vec(0_u64..4_000, 1..80),
            per_hour in 0_u32..5,
            per_day in 0_u32..12,
        ) {
            let rates = [MailRate::per_hour(per_hour), MailRate::per_day(per_day)];
            let (mut quota, mut now) = (MailQuota::new("id".to_owned(), START), START);
            let mut sent: Vec<Timestamp> = Vec::new();
            for gap in gaps {
                now = now.plus(Duration::from_secs(gap));
                let within = |rate: MailRate| {
                    let counted = sent.iter().filter(|at| now.since(**at) < rate.window);
                    u32::try_from(counted.count()).unwrap() < rate.max
                };
                let is_allowed = rates.into_iter().all(within);
                match quota.take(&rates, now) {
                    Ok(next) => {
                        prop_assert!(is_allowed);
                        sent.push(now);
                        prop_assert!(next.sent_at.len() <= usize::try_from(per_day).unwrap());
                        quota = next;
                    }
                    Err(ExceededRate { rate, retry_after: wait }) => {
                        prop_assert!(!is_allowed && wait > Duration::ZERO);
                        prop_assert!(rates.contains(&rate) && !within(rate));
                        if per_hour > 0 && per_day > 0 {
                            prop_assert!(quota.take(&rates, now.plus(wait)).is_ok());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_pause_counts_from_the_last_mail_and_a_pause_of_zero_allows_everything() {
        let pause = [MailRate::pause(Duration::from_secs(300))];
        let quota = MailQuota::new("id".to_owned(), START);
        let quota = quota.take(&pause, START).unwrap();
        let later = START.plus(Duration::from_secs(100));
        let exceeded = quota.take(&pause, later).unwrap_err();
        assert_eq!(exceeded.retry_after, Duration::from_secs(200));
        assert_eq!(exceeded.rate, pause[0]);
        assert!(
            quota
                .take(&pause, START.plus(Duration::from_secs(300)))
                .is_ok()
        );
        assert!(
            quota
                .take(&[MailRate::pause(Duration::ZERO)], later)
                .is_ok()
        );
    }
}
