//! Adding events to the sums (contract: "Usage"). The result depends on the set of events alone, not on their order or
//! their batches.

use std::collections::BTreeMap;

use super::calendar::{UsageCalendar, start_of_day};
use super::event::UsageEvent;
use super::rollup::{UsageRollup, UsageTotal};
use super::tenant::UsageTenant;
use crate::billing::{Aggregation, Metric, Period};
use crate::kernel::{PlatformId, StackId, Timestamp};

/// A sum does not fit into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum of usage is too large")]
pub struct UsageOverflow;

/// The stack and the time of the first event of a tenant in a period. Of several events at one time, that with the
/// smallest stack counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstUse {
    /// The time of the event.
    pub at: Timestamp,
    /// The stack of the event.
    pub stack: Option<StackId>,
}

/// The change that events make to the record of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantChange {
    first: FirstUse,
    last_used_at: Timestamp,
    sums: BTreeMap<Metric, i128>,
    greatest: BTreeMap<Metric, i64>,
}

/// The change that a set of events makes to the sums of a platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFold {
    /// The additions to rollups, by their keys. The records have no quantity.
    rollups: BTreeMap<String, (UsageRollup, Period, i128)>,
    /// The least quantities that rollups will have, by their keys.
    greatest: BTreeMap<String, (UsageRollup, Period, i64)>,
    /// The changes of tenants, by their keys.
    tenants: BTreeMap<String, (UsageTenant, Period, TenantChange)>,
}

impl UsageFold {
    /// Adds an event. Returns `false` without a change if the instant is after the year 9999.
    pub fn add(&mut self, calendar: &UsageCalendar, event: &UsageEvent) -> bool {
        // A day of storage belongs to the period that contains its first second.
        let is_daily = event.metric.aggregation() == Aggregation::DailyAverage;
        let at = if is_daily {
            start_of_day(event.time)
        } else {
            event.time
        };
        let Some(period) = calendar.period_at(at) else {
            return false;
        };
        let (platform, stack) = (&event.platform_id, event.stack_id.as_ref());
        let start = UsageCalendar::rollup_start(period, at);
        let rollup = UsageRollup::new(platform, start, event.metric, stack);
        if is_daily {
            let entry = self.greatest.entry(rollup.id.clone());
            let (_, _, greatest) = entry.or_insert((rollup, period, 0));
            *greatest = event.quantity.max(*greatest);
        } else {
            let entry = self.rollups.entry(rollup.id.clone());
            entry.or_insert((rollup, period, 0)).2 += i128::from(event.quantity);
        }
        self.add_tenant(period, at, event, is_daily);
        true
    }

    fn add_tenant(&mut self, period: Period, at: Timestamp, event: &UsageEvent, is_daily: bool) {
        let Some(tenant) = &event.tenant_id else {
            return;
        };
        let tenant = UsageTenant::new(&event.platform_id, period.start(), tenant);
        let first = FirstUse {
            at,
            stack: event.stack_id.clone(),
        };
        let entry = self.tenants.entry(tenant.id.clone());
        let (_, _, change) = entry.or_insert_with(|| (tenant, period, TenantChange::new(&first)));
        change.first = change.first.clone().min(first);
        change.last_used_at = change.last_used_at.max(event.time);
        if is_daily {
            let greatest = change.greatest.entry(event.metric).or_default();
            *greatest = event.quantity.max(*greatest);
        } else {
            *change.sums.entry(event.metric).or_default() += i128::from(event.quantity);
        }
    }

    /// Returns the usage periods of the events, earliest first.
    #[must_use]
    pub fn periods(&self) -> Vec<Period> {
        let sums = self.rollups.values().map(|(_, period, _)| *period);
        let greatest = self.greatest.values().map(|(_, period, _)| *period);
        let mut periods: Vec<_> = sums.chain(greatest).collect();
        periods.sort_by_key(|period| period.start());
        periods.dedup();
        periods
    }

    /// Returns empty records of the tenants of the events, sorted by key.
    #[must_use]
    pub fn tenants(&self) -> Vec<UsageTenant> {
        self.tenants
            .values()
            .map(|(tenant, ..)| tenant.clone())
            .collect()
    }

    /// Returns a tenant with its events. Counts the tenant for `active_entities` on the day and in the stack of its
    /// first event, and no longer where it was counted before.
    ///
    /// # Errors
    /// [`UsageOverflow`] if a sum is too large.
    pub fn apply_to_tenant(&mut self, stored: &UsageTenant) -> Result<UsageTenant, UsageOverflow> {
        let mut next = stored.clone();
        let Some((_, period, change)) = self.tenants.get(&stored.id).cloned() else {
            return Ok(next);
        };
        let known = stored.first_at.map(|at| FirstUse {
            at,
            stack: stored.first_stack_id.clone(),
        });
        let first = known
            .clone()
            .map_or(change.first.clone(), |known| known.min(change.first));
        if known.as_ref() != Some(&first) {
            if let Some(known) = &known {
                self.count_tenant(&stored.platform_id, period, known, -1);
            }
            self.count_tenant(&stored.platform_id, period, &first, 1);
        }
        (next.first_at, next.first_stack_id) = (Some(first.at), first.stack);
        next.last_used_at = next.last_used_at.max(change.last_used_at);
        for (metric, sum) in change.sums {
            next.quantities.add(metric, sum).ok_or(UsageOverflow)?;
        }
        for (metric, greatest) in change.greatest {
            next.quantities.raise(metric, greatest);
        }
        Ok(next)
    }

    /// Adds a tenant to the rollup of its first use, or removes it.
    fn count_tenant(
        &mut self,
        platform: &PlatformId,
        period: Period,
        first: &FirstUse,
        change: i128,
    ) {
        let start = UsageCalendar::rollup_start(period, first.at);
        let rollup = UsageRollup::new(
            platform,
            start,
            Metric::ActiveEntities,
            first.stack.as_ref(),
        );
        let entry = self.rollups.entry(rollup.id.clone());
        entry.or_insert((rollup, period, 0)).2 += change;
    }

    /// Returns empty records of the rollups of the events, sorted by key. Call it after the tenants.
    #[must_use]
    pub fn rollups(&self) -> Vec<UsageRollup> {
        let sums = self.rollups.values().map(|(rollup, ..)| rollup.clone());
        let greatest = self.greatest.values().map(|(rollup, ..)| rollup.clone());
        let mut rollups: Vec<_> = sums.chain(greatest).collect();
        rollups.sort_by(|one, other| one.id.cmp(&other.id));
        rollups
    }

    /// Returns a rollup with its events.
    ///
    /// # Errors
    /// [`UsageOverflow`] if the sum is too large.
    pub fn apply_to_rollup(&self, stored: &UsageRollup) -> Result<UsageRollup, UsageOverflow> {
        let mut next = stored.clone();
        if let Some((_, _, sum)) = self.rollups.get(&stored.id) {
            let sum = i128::from(stored.quantity) + sum;
            next.quantity = i64::try_from(sum).map_err(|_| UsageOverflow)?;
        }
        if let Some((_, _, greatest)) = self.greatest.get(&stored.id) {
            next.quantity = stored.quantity.max(*greatest);
        }
        Ok(next)
    }

    /// Returns the total of a period after rollups have changed. Of each pair, the first is the rollup before.
    ///
    /// # Errors
    /// [`UsageOverflow`] if a sum is too large.
    pub fn apply_to_total(
        &self,
        stored: &UsageTotal,
        rollups: &[(UsageRollup, UsageRollup)],
    ) -> Result<UsageTotal, UsageOverflow> {
        let mut next = stored.clone();
        for (before, after) in rollups {
            if self.period_start_of(&before.id) == Some(stored.period_start) {
                let change = i128::from(after.quantity) - i128::from(before.quantity);
                next.sums.add(after.metric, change).ok_or(UsageOverflow)?;
            }
        }
        Ok(next)
    }

    fn period_start_of(&self, rollup: &str) -> Option<Timestamp> {
        let sum = self
            .rollups
            .get(rollup)
            .map(|(_, period, _)| period.start());
        sum.or_else(|| {
            self.greatest
                .get(rollup)
                .map(|(_, period, _)| period.start())
        })
    }
}

impl TenantChange {
    fn new(first: &FirstUse) -> Self {
        Self {
            first: first.clone(),
            last_used_at: first.at,
            sums: BTreeMap::new(),
            greatest: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::billing::usage::RenewingTerm;
    use crate::billing::usage::{NewUsageEvent, Quantities, UsageKey};
    use crate::billing::{Anchor, Interval};
    use crate::kernel::EntityId;

    const START: i64 = 1_800_000_000;

    /// The stored sums of a platform.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Sums {
        known: BTreeSet<String>,
        rollups: BTreeMap<String, UsageRollup>,
        tenants: BTreeMap<String, UsageTenant>,
        totals: BTreeMap<String, UsageTotal>,
    }

    impl Sums {
        /// Adds a batch as the use case does.
        fn add(&mut self, calendar: &UsageCalendar, batch: &[UsageEvent]) {
            let mut fold = UsageFold::default();
            for event in batch {
                if self.known.insert(event.id.clone()) {
                    assert!(fold.add(calendar, event));
                }
            }
            for tenant in fold.tenants() {
                let stored = self.tenants.entry(tenant.id.clone()).or_insert(tenant);
                *stored = fold.apply_to_tenant(stored).unwrap();
            }
            let mut changes = Vec::new();
            for rollup in fold.rollups() {
                let stored = self.rollups.entry(rollup.id.clone()).or_insert(rollup);
                let next = fold.apply_to_rollup(stored).unwrap();
                changes.push((std::mem::replace(stored, next.clone()), next));
            }
            for period in fold.periods() {
                let total = UsageTotal::new(&platform(), period.start());
                let stored = self.totals.entry(total.id.clone()).or_insert(total);
                *stored = fold.apply_to_total(stored, &changes).unwrap();
            }
            // A rollup that a tenant has left is equal to one that was never made.
            self.rollups.retain(|_, rollup| rollup.quantity != 0);
        }
    }

    fn platform() -> PlatformId {
        PlatformId::parse("p1").unwrap()
    }

    fn calendar() -> UsageCalendar {
        let anchor = Anchor::new(Timestamp::from_seconds(START + 1_234_567));
        let period = anchor.period_at(Interval::Month, anchor.at()).unwrap();
        let term = Some(RenewingTerm {
            period,
            anchor,
            renews: true,
        });
        UsageCalendar {
            stored: Vec::new(),
            term,
        }
    }

    fn events() -> impl Strategy<Value = Vec<UsageEvent>> {
        let metric = prop::sample::select(vec!["requests", "builds", "storage_bytes"]);
        let event = (0_i64..6_000_000, metric, 0_i64..1_000, 0_u8..3, 0_u8..4);
        let numbered = prop::collection::vec(event, 0..40);
        numbered.prop_map(|events| {
            let events = events.into_iter().enumerate();
            let event = |(id, (second, metric, quantity, stack, tenant)): (
                usize,
                (i64, &str, i64, u8, u8),
            )| {
                let time = Timestamp::from_seconds(START + second);
                let event = NewUsageEvent {
                    id: UsageKey::parse(&format!("e{id}")).unwrap(),
                    source: UsageKey::parse("test").unwrap(),
                    platform_id: platform(),
                    stack_id: StackId::parse(&format!("s{stack}")).filter(|_| stack > 0),
                    tenant_id: EntityId::parse(&format!("t{tenant}")).filter(|_| tenant > 0),
                    metric: metric.to_owned(),
                    quantity,
                    time,
                    corrects_id: None,
                };
                event.accept(time).unwrap()
            };
            events.map(event).collect()
        })
    }

    proptest! {
        #[test]
        fn the_sums_depend_on_the_set_of_events_alone(
            (events, shuffled) in events().prop_flat_map(|events| {
                let twice: Vec<_> = events.iter().chain(&events).cloned().collect();
                (Just(events), Just(twice).prop_shuffle())
            }),
            batch in 1_usize..20,
        ) {
            let calendar = calendar();
            let (mut at_once, mut in_parts) = (Sums::default(), Sums::default());
            at_once.add(&calendar, &events);
            for batch in shuffled.chunks(batch) {
                in_parts.add(&calendar, batch);
            }
            prop_assert_eq!(at_once, in_parts);
        }

        #[test]
        fn the_days_and_the_stacks_of_a_period_add_up_to_its_total(events in events()) {
            let calendar = calendar();
            let mut sums = Sums::default();
            sums.add(&calendar, &events);
            for total in sums.totals.values() {
                let period = calendar.period_at(total.period_start).unwrap();
                for metric in Metric::ALL {
                    let of_period = |rollup: &&UsageRollup| {
                        rollup.metric == *metric && period.contains(rollup.start)
                    };
                    let days = sums.rollups.values().filter(of_period);
                    prop_assert_eq!(days.map(|day| day.quantity).sum::<i64>(), total.sums.sum(*metric));
                }
                let tenants = sums.tenants.values();
                let tenants = tenants.filter(|tenant| tenant.period_start == total.period_start);
                let active = total.sums.sum(Metric::ActiveEntities);
                prop_assert_eq!(i64::try_from(tenants.count()).unwrap(), active);
            }
        }
    }

    #[test]
    fn a_storage_day_has_the_greatest_quantity_of_each_stack() {
        let mut fold = UsageFold::default();
        let mut report = |stack: &str, quantity: i64, second: i64| {
            let time = Timestamp::from_seconds(START + second);
            let event = NewUsageEvent {
                id: UsageKey::parse(&format!("{stack}{second}")).unwrap(),
                source: UsageKey::parse("test").unwrap(),
                platform_id: platform(),
                stack_id: StackId::parse(stack),
                tenant_id: None,
                metric: "storage_bytes".to_owned(),
                quantity,
                time,
                corrects_id: None,
            };
            fold.add(&UsageCalendar::default(), &event.accept(time).unwrap())
        };
        assert!(report("a", 5, 0) && report("a", 3, 60) && report("b", 7, 120));
        let rollups = fold.rollups();
        let greatest = |rollup| fold.apply_to_rollup(rollup).unwrap().quantity;
        assert_eq!(rollups.iter().map(greatest).collect::<Vec<_>>(), [5, 7]);
        let too_large = UsageRollup {
            quantity: i64::MAX,
            ..rollups[0].clone()
        };
        assert_eq!(fold.apply_to_rollup(&too_large).unwrap().quantity, i64::MAX);
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        let mut total = Quantities::default();
        assert_eq!(total.add(Metric::Requests, i128::from(i64::MAX)), Some(()));
        assert_eq!(total.add(Metric::Requests, 1), None);
        assert_eq!(total.sum(Metric::Requests), i64::MAX);
    }
}
