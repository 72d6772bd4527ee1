//! Storing events and adding them to the sums, in one unit of work.

use std::collections::{BTreeMap, BTreeSet};

use super::Metering;
use super::alert::{self, Growth};
use super::period::PeriodBook;
use crate::access::{OperatorScope, unaudited, unowned_records};
use crate::billing::usage::{
    EventOutcome, EventStatus, IngestUsage, IngestedUsage, NewUsageEvent, UsageEvent, UsageFold,
    UsageOverflow, UsagePeriod, UsageRefusal, UsageRollup, UsageTotal, start_of_day,
};
use crate::billing::{Customer, CustomerQuery, PlanCatalog};
use crate::kernel::{Code, Context, Error, PlatformId, Result, Stored, Timestamp};
use crate::port::{Mode, Store, UnitOfWork, transact_in};
use crate::registry::Platform;

impl From<UsageOverflow> for Error {
    fn from(overflow: UsageOverflow) -> Self {
        Self::refused(Code::Conflict, overflow.to_string())
    }
}

/// Stores a batch of events in a unit of its own; see [`ingest_in`]. Batches wait for each other only if they report
/// usage of the same platform.
///
/// # Errors
/// Those of [`ingest_in`].
pub async fn ingest(
    cx: &Context,
    _: &OperatorScope,
    store: &dyn Store,
    metering: Metering<'_>,
    command: IngestUsage,
) -> Result<IngestedUsage> {
    let command = &command;
    // Every write depends on the lock of its row alone, and every sum is commutative.
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move { ingest_in(cx, uow, metering, command).await })
    })
    .await
}

/// Stores a batch of events and adds them to the sums. Each event counts once, however often it is reported. One event
/// never refuses the others.
///
/// # Errors
/// - `VALIDATION_ERROR` if the batch breaks a rule of [`IngestUsage::check`]. No event is stored.
/// - `CONFLICT` if a sum would exceed 63 bits. No event is stored.
pub async fn ingest_in(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    metering: Metering<'_>,
    command: &IngestUsage,
) -> Result<IngestedUsage> {
    let now = metering.clock.now(uow).await?;
    command.check(now)?;
    let platforms = existing_platforms(uow, &command.events).await?;
    let mut batch = Batch::of(&command.events, &platforms, now);
    batch.store(uow).await?;
    let sums = Sums {
        cx,
        plans: metering.plans,
        now,
    };
    for (platform, events) in batch.accepted_by_platform() {
        sums.add(uow, &platform, &events).await?;
    }
    Ok(IngestedUsage::of(batch.outcomes()))
}

/// Returns the platforms of the events that exist. One that was removed exists as long as it has a customer.
async fn existing_platforms(
    uow: &mut dyn UnitOfWork,
    events: &[NewUsageEvent],
) -> Result<BTreeSet<PlatformId>> {
    let named: BTreeSet<&PlatformId> = events.iter().map(|event| &event.platform_id).collect();
    let keys: Vec<&str> = named.iter().map(|platform| platform.as_str()).collect();
    let found = unowned_records::<Platform>(uow).get_many(&keys).await?;
    let mut existing: BTreeSet<_> = found.iter().map(|platform| platform.id.clone()).collect();
    for platform in named {
        if existing.contains(platform) {
            continue;
        }
        let of_platform = CustomerQuery::OfPlatform(platform.clone());
        let customer = unowned_records::<Customer>(uow).first(&of_platform).await?;
        existing.extend(customer.map(|_| platform.clone()));
    }
    Ok(existing)
}

/// The outcome of an event, as far as it is known.
enum Progress {
    /// The event is rejected.
    Rejected(UsageRefusal),
    /// The event is the first one of the batch with its key.
    First(UsageEvent),
    /// The key of the event occurs earlier in the batch.
    Repeated(UsageEvent),
}

/// The events of a request with their outcomes.
struct Batch<'e> {
    events: &'e [NewUsageEvent],
    progress: Vec<Progress>,
    /// The keys that this batch has stored.
    new: BTreeSet<String>,
    /// The stored events with keys of the batch that were stored before.
    known: BTreeMap<String, Stored<UsageEvent>>,
}

impl<'e> Batch<'e> {
    fn of(events: &'e [NewUsageEvent], platforms: &BTreeSet<PlatformId>, now: Timestamp) -> Self {
        let mut keys = BTreeSet::new();
        let mut progress = |event: &NewUsageEvent| {
            if !platforms.contains(&event.platform_id) {
                return Progress::Rejected(UsageRefusal::PlatformUnknown);
            }
            match event.clone().accept(now) {
                Err(refusal) => Progress::Rejected(refusal),
                Ok(event) if keys.insert(event.id.clone()) => Progress::First(event),
                Ok(event) => Progress::Repeated(event),
            }
        };
        Self {
            events,
            progress: events.iter().map(&mut progress).collect(),
            new: BTreeSet::new(),
            known: BTreeMap::new(),
        }
    }

    fn first(&self) -> impl Iterator<Item = &UsageEvent> {
        let progress = self.progress.iter();
        progress.filter_map(|progress| match progress {
            Progress::First(event) => Some(event),
            Progress::Rejected(_) | Progress::Repeated(_) => None,
        })
    }

    /// Stores the events whose keys are free, and reads the others.
    async fn store(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let mut events: Vec<_> = self.first().cloned().collect();
        events.sort_by(|one, other| one.id.cmp(&other.id));
        let keys: Vec<String> = events.iter().map(|event| event.id.clone()).collect();
        self.new = unaudited::insert_new(uow, events).await?;
        let known = keys.iter().filter(|key| !self.new.contains(*key));
        let known: Vec<&str> = known.map(String::as_str).collect();
        if !known.is_empty() {
            let known = unowned_records::<UsageEvent>(uow).get_many(&known).await?;
            self.known = known
                .into_iter()
                .map(|event| (event.id.clone(), event))
                .collect();
        }
        Ok(())
    }

    /// Returns the events that were stored now, by platform.
    fn accepted_by_platform(&self) -> BTreeMap<PlatformId, Vec<UsageEvent>> {
        let mut accepted = BTreeMap::<_, Vec<_>>::new();
        for event in self.first().filter(|event| self.new.contains(&event.id)) {
            let of_platform = accepted.entry(event.platform_id.clone()).or_default();
            of_platform.push(event.clone());
        }
        accepted
    }

    fn outcomes(&self) -> Vec<EventOutcome> {
        let stored: BTreeMap<&str, &UsageEvent> = self
            .first()
            .map(|event| (event.id.as_str(), event))
            .collect();
        let outcome = |(event, progress): (&NewUsageEvent, &Progress)| match progress {
            Progress::Rejected(refusal) => event.outcome(EventStatus::Rejected, Some(*refusal)),
            Progress::First(first) if self.new.contains(&first.id) => {
                event.outcome(EventStatus::Accepted, None)
            }
            Progress::First(later) | Progress::Repeated(later) => {
                let known = self.known.get(&later.id).map(|known| &**known);
                let known = known.or_else(|| stored.get(later.id.as_str()).copied());
                match known.is_some_and(|known| later.has_content_of(known)) {
                    true => event.outcome(EventStatus::Duplicate, None),
                    false => {
                        event.outcome(EventStatus::Rejected, Some(UsageRefusal::EventConflict))
                    }
                }
            }
        };
        self.events
            .iter()
            .zip(&self.progress)
            .map(outcome)
            .collect()
    }
}

/// The sums of usage, to which a unit of work adds events.
struct Sums<'a> {
    cx: &'a Context,
    plans: &'a PlanCatalog,
    now: Timestamp,
}

impl Sums<'_> {
    /// Adds new events of one platform to its sums, and triggers alerts.
    async fn add(
        &self,
        uow: &mut dyn UnitOfWork,
        platform: &PlatformId,
        events: &[UsageEvent],
    ) -> Result<()> {
        let first = events.iter().map(|event| start_of_day(event.time)).min();
        let (first, currency) = (first.unwrap_or(Timestamp::EPOCH), self.plans.currency());
        let book = PeriodBook::open(uow, platform, first, currency).await?;
        let mut fold = UsageFold::default();
        for event in events {
            if !fold.add(book.calendar(), event) {
                return Err(Error::Internal("the year is above 9999".into()));
            }
        }
        let mut periods = Vec::new();
        for period in fold.periods() {
            periods.push(book.prepare_for_events(uow, period).await?);
        }
        let mut changes = Vec::new();
        for stored in unaudited::insert_or_lock(uow, fold.tenants()).await? {
            let next = fold.apply_to_tenant(&stored)?;
            changes.push((stored, next));
        }
        unaudited::replace_locked(uow, changes).await?;
        let rollups = add_to_rollups(uow, &fold).await?;
        for period in &periods {
            self.add_to_total(uow, &fold, period, &rollups).await?;
        }
        Ok(())
    }

    async fn add_to_total(
        &self,
        uow: &mut dyn UnitOfWork,
        fold: &UsageFold,
        period: &UsagePeriod,
        rollups: &[(UsageRollup, UsageRollup)],
    ) -> Result<()> {
        let new = UsageTotal::new(&period.platform_id, period.period_start);
        for stored in unaudited::insert_or_lock(uow, vec![new]).await? {
            let next = fold.apply_to_total(&stored, rollups)?;
            let growth = Growth {
                period,
                before: &stored,
                after: &next,
            };
            alert::trigger(self.cx, uow, self.plans, growth, self.now).await?;
            unaudited::replace_locked(uow, vec![(stored, next)]).await?;
        }
        Ok(())
    }
}

/// Adds events to their rollups. Returns the rollups before and after.
async fn add_to_rollups(
    uow: &mut dyn UnitOfWork,
    fold: &UsageFold,
) -> Result<Vec<(UsageRollup, UsageRollup)>> {
    let (mut changes, mut rollups) = (Vec::new(), Vec::new());
    for stored in unaudited::insert_or_lock(uow, fold.rollups()).await? {
        let next = fold.apply_to_rollup(&stored)?;
        rollups.push((stored.edit(), next.clone()));
        changes.push((stored, next));
    }
    unaudited::replace_locked(uow, changes).await?;
    Ok(rollups)
}
