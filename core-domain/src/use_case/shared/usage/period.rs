//! The usage periods of a platform: the stored ones, and those that follow from its subscription.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::access::{unaudited, unowned_records};
use crate::billing::usage::{
    RenewingTerm, UsageCalendar, UsagePeriod, UsagePeriodQuery, UsagePeriodStatus, UsageTerms,
    UsageTotal,
};
use crate::billing::{Currency, Period, Subscription, SubscriptionQuery};
use crate::kernel::{Error, PlatformId, Result, StoreError, Stored, Timestamp, UsagePeriodId};
use crate::port::UnitOfWork;

/// Maximum number of stored periods that are read at once. Events are at most 35 days old, so few periods concern them.
const MAX_PERIODS: u32 = 200;

/// The length of the longest usage period: a month.
const LONGEST_PERIOD: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// The usage periods of a platform that concern a span of time.
#[derive(Clone, Debug)]
pub struct PeriodBook {
    platform: PlatformId,
    currency: Currency,
    subscription: Option<Stored<Subscription>>,
    stored: BTreeMap<Timestamp, Stored<UsagePeriod>>,
    calendar: UsageCalendar,
}

impl PeriodBook {
    /// Reads the periods of a platform from an instant on, and those before that decide where the first one begins.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn open(
        uow: &mut dyn UnitOfWork,
        platform: &PlatformId,
        from: Timestamp,
        currency: Currency,
    ) -> Result<Self> {
        let live = SubscriptionQuery::LiveOfPlatform(platform.clone());
        let subscription = unowned_records::<Subscription>(uow).first(&live).await?;
        let from = from.minus(LONGEST_PERIOD);
        let ending = UsagePeriodQuery::EndingAfter(platform.clone(), from);
        let stored = unowned_records::<UsagePeriod>(uow)
            .list(&ending, MAX_PERIODS)
            .await?;
        let periods: Result<Vec<_>, _> = stored.iter().map(|period| period.period()).collect();
        let calendar = UsageCalendar {
            stored: periods?,
            term: subscription.as_deref().and_then(RenewingTerm::of),
        };
        let stored = stored
            .into_iter()
            .map(|period| (period.period_start, period));
        Ok(Self {
            platform: platform.clone(),
            currency,
            subscription,
            stored: stored.collect(),
            calendar,
        })
    }

    /// Returns the spans of the periods.
    #[must_use]
    pub const fn calendar(&self) -> &UsageCalendar {
        &self.calendar
    }

    /// Returns the subscription that has not ended. Returns `None` if there is none.
    #[must_use]
    pub const fn subscription(&self) -> Option<&Stored<Subscription>> {
        self.subscription.as_ref()
    }

    /// Returns a period of the calendar: the stored one, or else a new one with the terms that apply now.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the id of the platform has more than 116 characters, which no generated id has.
    pub fn find(&self, period: Period) -> Result<UsagePeriod> {
        match self.stored.get(&period.start()) {
            Some(stored) => Ok(stored.edit()),
            None => self.create(period),
        }
    }

    /// Creates a period with the terms of the subscription, if its periods include this one.
    fn create(&self, period: Period) -> Result<UsagePeriod> {
        let mut created = new_period(&self.platform, period, self.currency)?;
        if let Some(subscription) = &self.subscription
            && let Some(term) = RenewingTerm::of(subscription)
            && term.usage_period_at(period.start()).is_some()
        {
            created.set_subscription(Some(subscription));
            created.apply_terms(UsageTerms::of(subscription, period.start()));
        }
        Ok(created)
    }

    /// Returns a period of the calendar, which is stored if it was not. One that has ended is locked until the unit ends
    /// and, if it is closed, marked as having late usage.
    pub(super) async fn prepare_for_events(
        &self,
        uow: &mut dyn UnitOfWork,
        period: Period,
    ) -> Result<UsagePeriod> {
        let known = self.stored.get(&period.start());
        if let Some(known) = known.filter(|known| known.status == UsagePeriodStatus::Open) {
            return Ok(known.edit());
        }
        let locked = unaudited::insert_or_lock(uow, vec![self.find(period)?]).await?;
        let stored = locked.into_iter().next();
        let stored = stored.ok_or_else(|| Error::Internal("a usage period is missing".into()))?;
        if stored.period_end != period.end() {
            // A concurrent unit has stored the period with other bounds.
            return Err(StoreError::retry("the usage period has changed").into());
        }
        if stored.status == UsagePeriodStatus::Closed && !stored.has_late_usage {
            let mut next = stored.edit();
            next.has_late_usage = true;
            unaudited::replace_locked(uow, vec![(stored.clone(), next)]).await?;
        }
        Ok(stored.into_inner())
    }
}

/// Creates an open usage period of a platform, without a subscription. It is not stored.
///
/// # Errors
/// `INTERNAL_ERROR` if the id of the platform has more than 116 characters, which no generated id has.
pub fn new_period(
    platform: &PlatformId,
    period: Period,
    currency: Currency,
) -> Result<UsagePeriod> {
    let id = period_id(platform, period.start())?;
    Ok(UsagePeriod::new(id, platform.clone(), period, currency))
}

/// Returns the id of the usage period of a platform that begins at an instant. A platform has one such period.
fn period_id(platform: &PlatformId, start: Timestamp) -> Result<UsagePeriodId> {
    let text = format!("{platform}:{:011}", start.seconds());
    let id = UsagePeriodId::parse(&text);
    id.ok_or_else(|| Error::Internal("the id of the platform is too long".into()))
}

/// The usage period of a platform at an instant.
#[derive(Clone, Debug)]
pub struct CurrentPeriod {
    /// The subscription that has not ended. `None` if there is none.
    pub subscription: Option<Stored<Subscription>>,
    /// The period, which may not be stored yet.
    pub period: UsagePeriod,
    /// The sums of the period so far.
    pub total: UsageTotal,
}

/// Returns the usage period of a platform at an instant.
///
/// # Errors
/// Only those of the store.
pub async fn current_period(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    at: Timestamp,
    currency: Currency,
) -> Result<CurrentPeriod> {
    let book = PeriodBook::open(uow, platform, at, currency).await?;
    let found = book.calendar.period_at(at);
    let found = found.ok_or_else(|| Error::Internal("the year is above 9999".into()))?;
    let period = book.find(found)?;
    let id = UsageTotal::id_of(platform, period.period_start);
    let total = unowned_records::<UsageTotal>(uow).find(&id).await?;
    let total = total.map_or_else(
        || UsageTotal::new(platform, period.period_start),
        Stored::into_inner,
    );
    Ok(CurrentPeriod {
        subscription: book.subscription,
        period,
        total,
    })
}
