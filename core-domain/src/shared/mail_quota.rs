//! Mail quotas: rate limits for mails of one kind to one address or from one organization.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{Timestamp, record};

/// A limit for the rate of mails: at most `max` mails in any `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailRate {
    /// Maximum number of mails per window.
    pub max: u32,
    /// The length of the sliding window. Each mail counts for this long.
    pub window: Duration,
}

impl MailRate {
    /// Creates a limit of `max` mails per hour.
    #[must_use]
    pub const fn per_hour(max: u32) -> Self {
        Self {
            max,
            window: Duration::from_secs(60 * 60),
        }
    }

    /// Creates a limit of `max` mails per day.
    #[must_use]
    pub const fn per_day(max: u32) -> Self {
        Self {
            max,
            window: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Creates a limit that requires at least `pause` between two mails.
    #[must_use]
    pub const fn pause(pause: Duration) -> Self {
        Self {
            max: 1,
            window: pause,
        }
    }
}

/// A limit that one more mail would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceededRate {
    /// The exceeded limit.
    pub rate: MailRate,
    /// Time until the next mail is allowed.
    pub retry_after: Duration,
}

/// The recent mails of one kind to one address or from one organization. The record is stored until its mails count for
/// no limit. So the limits hold across clients, nodes and restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MailQuota {
    /// Identifies the counter: the kind of mail, a colon, and a hash of the address or the organization.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(regex = "[a-z]{1,12}:[0-9a-f]{64}")
    )]
    pub id: String,
    /// The times at which the mails were queued, oldest first.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub sent_at: Vec<Timestamp>,
    /// The time from which no mail of the record counts.
    pub expires_at: Timestamp,
}

record! {
    MailQuota as "mail quota" by id, asked MailQuotaQuery;
}

/// Queries for mail quotas.
#[derive(Clone, Debug, PartialEq)]
pub enum MailQuotaQuery {
    /// The quotas that have expired at this time, earliest first.
    ExpiredAt(Timestamp),
}

impl MailQuota {
    /// Creates a quota without mails.
    #[must_use]
    pub const fn new(id: String, now: Timestamp) -> Self {
        Self {
            id,
            sent_at: Vec::new(),
            expires_at: now,
        }
    }

    /// Returns the quota with one more mail at `now`.
    ///
    /// # Errors
    /// If limits would be exceeded, the one with the longest wait.
    pub fn add_mail(&self, rates: &[MailRate], now: Timestamp) -> Result<Self, ExceededRate> {
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

    /// Returns the time until a limit allows the next mail; `None` if it is allowed now.
    fn wait(&self, rate: MailRate, now: Timestamp) -> Option<Duration> {
        let Ok(max) = usize::try_from(rate.max) else {
            return None;
        };
        if rate.window.is_zero() {
            return None;
        }
        let counted = self.sent_at.iter();
        let counted = counted.filter(|sent| now.since(**sent) < rate.window);
        // The next mail is allowed when this mail stops counting.
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
        fn no_window_contains_more_mails_than_its_rate_allows(
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
                match quota.add_mail(&rates, now) {
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
                            prop_assert!(quota.add_mail(&rates, now.plus(wait)).is_ok());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn pause_starts_at_the_last_mail_and_a_zero_pause_allows_everything() {
        let pause = [MailRate::pause(Duration::from_secs(300))];
        let quota = MailQuota::new("id".to_owned(), START);
        let quota = quota.add_mail(&pause, START).unwrap();
        let later = START.plus(Duration::from_secs(100));
        let exceeded = quota.add_mail(&pause, later).unwrap_err();
        assert_eq!(exceeded.retry_after, Duration::from_secs(200));
        assert_eq!(exceeded.rate, pause[0]);
        assert!(
            quota
                .add_mail(&pause, START.plus(Duration::from_secs(300)))
                .is_ok()
        );
        assert!(
            quota
                .add_mail(&[MailRate::pause(Duration::ZERO)], later)
                .is_ok()
        );
    }
}
