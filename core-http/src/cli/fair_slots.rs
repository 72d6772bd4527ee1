//! A bounded resource that platforms share. Each free slot goes to the platform that holds the fewest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::kernel::PlatformId;
use tokio::sync::oneshot;

/// The amount of the resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// Total number of slots.
    pub(super) slots: usize,
    /// Maximum number of slots of one platform.
    pub(super) per_platform: usize,
    /// Maximum number of bytes of all slots together.
    pub(super) bytes: u64,
}

/// The slots of a resource. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct FairSlots(Arc<Mutex<State>>);

/// The right to use the resource. It is released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: FairSlots,
    id: u64,
    platform: PlatformId,
    bytes: u64,
    revocation: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct State {
    free_slots: usize,
    free_bytes: u64,
    per_platform: usize,
    slots_by_platform: HashMap<PlatformId, usize>,
    /// The waiting requests, the one that has waited longest first.
    waiting: Vec<WaitingRequest>,
    /// The slots that can be revoked, the oldest first.
    revocable: Vec<RevocableSlot>,
    next_id: u64,
}

#[derive(Debug)]
struct WaitingRequest {
    platform: PlatformId,
    bytes: u64,
    granted: oneshot::Sender<Slot>,
}

#[derive(Debug)]
struct RevocableSlot {
    id: u64,
    platform: PlatformId,
    revoke: oneshot::Sender<()>,
}

impl FairSlots {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self(Arc::new(Mutex::new(State {
            free_slots: capacity.slots,
            free_bytes: capacity.bytes,
            per_platform: capacity.per_platform,
            slots_by_platform: HashMap::new(),
            waiting: Vec::new(),
            revocable: Vec::new(),
            next_id: 0,
        })))
    }

    /// Waits for a slot with room for `bytes`. Returns `None` after `timeout`. If all slots are taken, the platform
    /// with the
    /// most of them loses its latest one to a platform that has at least two fewer.
    pub(super) async fn acquire(
        &self,
        platform: &PlatformId,
        bytes: u64,
        timeout: Duration,
    ) -> Option<Slot> {
        let granted = self.enqueue(platform, bytes);
        // A slot that is granted after the timeout is dropped, and so released, with the channel.
        tokio::time::timeout(timeout, granted).await.ok()?.ok()
    }

    fn enqueue(&self, platform: &PlatformId, bytes: u64) -> oneshot::Receiver<Slot> {
        let (sender, granted) = oneshot::channel();
        let mut state = self.state();
        state.revoke_for(platform, bytes);
        state.waiting.push(WaitingRequest {
            platform: platform.clone(),
            bytes,
            granted: sender,
        });
        drop(state);
        self.grant();
        granted
    }

    /// Grants free slots to waiting requests, as many as possible.
    fn grant(&self) {
        loop {
            // Dropping a slot takes the lock, so the lock must not be held when sending to a receiver that no longer
            // exists.
            let next = self.state().next(self);
            let Some((granted, slot)) = next else { return };
            drop(granted.send(slot));
        }
    }

    fn release(&self, slot: &Slot) {
        self.state().release(slot);
        self.grant();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn slot_count(&self, platform: &PlatformId) -> usize {
        self.slots_by_platform
            .get(platform)
            .copied()
            .unwrap_or_default()
    }

    fn fits(&self, platform: &PlatformId, bytes: u64) -> bool {
        self.free_slots > 0
            && bytes <= self.free_bytes
            && self.slot_count(platform) < self.per_platform
    }

    /// Grants a slot to the next waiting request: of those that fit, the one whose platform holds the fewest slots,
    /// then the one that has waited longest.
    fn next(&mut self, slots: &FairSlots) -> Option<(oneshot::Sender<Slot>, Slot)> {
        self.waiting.retain(|waiting| !waiting.granted.is_closed());
        let fitting = self.waiting.iter().enumerate();
        let fitting = fitting.filter(|(_, w)| self.fits(&w.platform, w.bytes));
        let (at, _) = fitting.min_by_key(|(at, w)| (self.slot_count(&w.platform), *at))?;
        let WaitingRequest {
            platform,
            bytes,
            granted,
        } = self.waiting.remove(at);
        self.free_slots -= 1;
        self.free_bytes -= bytes;
        *self.slots_by_platform.entry(platform.clone()).or_default() += 1;
        let id = self.next_id;
        self.next_id += 1;
        let (revoke, revoked) = oneshot::channel();
        self.revocable.push(RevocableSlot {
            id,
            platform: platform.clone(),
            revoke,
        });
        let slot = Slot {
            slots: slots.clone(),
            id,
            platform,
            bytes,
            revocation: revoked,
        };
        Some((granted, slot))
    }

    fn revoke_for(&mut self, platform: &PlatformId, bytes: u64) {
        let own = self.slot_count(platform);
        if self.fits(platform, bytes) || own >= self.per_platform {
            return;
        }
        let mut counts: HashMap<&PlatformId, usize> = HashMap::new();
        for slot in &self.revocable {
            *counts.entry(&slot.platform).or_default() += 1;
        }
        let of = |slot: &RevocableSlot| counts.get(&slot.platform).copied().unwrap_or_default();
        let slots = self.revocable.iter().enumerate();
        let most = slots.max_by_key(|(at, slot)| (of(slot), *at));
        let Some((at, _)) = most.filter(|(_, slot)| of(slot) > own + 1) else {
            return;
        };
        // Sending fails if the slot was released in the meantime.
        let _ = self.revocable.remove(at).revoke.send(());
    }

    fn release(&mut self, slot: &Slot) {
        self.free_slots += 1;
        self.free_bytes += slot.bytes;
        if let Some(held) = self.slots_by_platform.get_mut(&slot.platform) {
            *held -= 1;
            if *held == 0 {
                self.slots_by_platform.remove(&slot.platform);
            }
        }
        self.revocable.retain(|other| other.id != slot.id);
    }
}

impl Slot {
    /// Completes when the slot must be released for a platform that has fewer slots.
    pub(super) async fn wait_for_revocation(&mut self) {
        if (&mut self.revocation).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Makes the slot permanent: it is no longer revoked.
    pub(super) fn make_permanent(&mut self) {
        let id = self.id;
        self.slots.state().revocable.retain(|slot| slot.id != id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.clone().release(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    fn slots(slots: usize, per_platform: usize, bytes: u64) -> FairSlots {
        FairSlots::new(Capacity {
            slots,
            per_platform,
            bytes,
        })
    }

    fn platform(name: &str) -> PlatformId {
        PlatformId::parse(name).unwrap()
    }

    async fn acquire(slots: &FairSlots, name: &str, bytes: u64) -> Option<Slot> {
        slots.acquire(&platform(name), bytes, SOON).await
    }

    async fn acquire_permanent(slots: &FairSlots, name: &str) -> Slot {
        let mut slot = acquire(slots, name, 0).await.unwrap();
        slot.make_permanent();
        slot
    }

    #[tokio::test(start_paused = true)]
    async fn slots_per_platform_are_limited_and_dropped_slots_are_free_again() {
        let slots = slots(4, 2, 0);
        let (first, second) = (acquire(&slots, "a", 0).await, acquire(&slots, "a", 0).await);
        assert!(first.is_some() && second.is_some());
        assert!(acquire(&slots, "a", 0).await.is_none());
        assert!(acquire(&slots, "b", 0).await.is_some());
        drop(first);
        assert!(acquire(&slots, "a", 0).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_over_all_slots() {
        let slots = slots(4, 4, 100);
        let first = acquire(&slots, "a", 70).await;
        assert!(first.is_some());
        assert!(acquire(&slots, "b", 31).await.is_none());
        assert!(acquire(&slots, "b", 30).await.is_some());
        drop(first);
        assert!(acquire(&slots, "b", 100).await.is_some());
    }

    #[tokio::test]
    async fn a_free_slot_goes_to_the_platform_with_the_fewest_slots() {
        let slots = slots(3, 3, 0);
        let one = acquire_permanent(&slots, "a").await;
        let _others = (
            acquire_permanent(&slots, "a").await,
            acquire_permanent(&slots, "b").await,
        );
        let mut first_in_line = slots.enqueue(&platform("a"), 0);
        let mut with_one = slots.enqueue(&platform("b"), 0);
        let mut with_none = slots.enqueue(&platform("c"), 0);
        drop(one);
        let slot = with_none.try_recv().unwrap();
        assert!(first_in_line.try_recv().is_err());
        drop(slot);
        // Both platforms hold one slot now.
        let _granted = first_in_line.try_recv().unwrap();
        assert!(with_one.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_platform_with_the_most_slots_loses_its_latest_one() {
        let slots = slots(3, 3, 0);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(acquire(&slots, "a", 0).await.unwrap());
        }
        let mut waiting = slots.enqueue(&platform("b"), 0);
        let mut latest = held.pop().unwrap();
        let revoked = tokio::time::timeout(SOON, latest.wait_for_revocation());
        revoked.await.unwrap();
        assert!(waiting.try_recv().is_err(), "not before it is released");
        drop(latest);
        let of_b = waiting.try_recv().unwrap();
        // The platforms hold two slots and one. Another slot for b would only reverse that.
        let _waiting = slots.enqueue(&platform("b"), 0);
        for slot in &mut held {
            assert!(slot.revocation.try_recv().is_err());
        }
        drop(of_b);
    }

    #[tokio::test(start_paused = true)]
    async fn a_settled_slot_is_not_revoked() {
        let slots = slots(2, 2, 0);
        let mut held = [
            acquire_permanent(&slots, "a").await,
            acquire_permanent(&slots, "a").await,
        ];
        assert!(acquire(&slots, "b", 0).await.is_none());
        for slot in &mut held {
            assert!(
                tokio::time::timeout(SOON, slot.wait_for_revocation())
                    .await
                    .is_err()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_dropped_leaks_no_slot() {
        let slots = slots(1, 1, 10);
        let held = acquire(&slots, "a", 10).await;
        for _ in 0..3 {
            assert!(acquire(&slots, "b", 10).await.is_none());
        }
        let waiting = slots.enqueue(&platform("c"), 10);
        drop(held);
        // The slot was granted, but is never received.
        drop(waiting);
        assert!(acquire(&slots, "d", 10).await.is_some());
        let state = slots.state();
        assert!(
            state.slots_by_platform.is_empty()
                && state.waiting.is_empty()
                && state.revocable.is_empty()
        );
    }
}
