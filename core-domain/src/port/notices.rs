//! Carries effects of commits to the other processes of the installation.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;

use crate::kernel::{Effects, Notice, NoticeSet, ProcessName};

/// A channel of notices between the processes of an installation. A notice can be late, or arrive twice. Notices that
/// are lost, for example with a connection, are reported as [`Notice::Missed`] once the connection is open again. Until
/// then nothing is reported, so receivers may cache data only for a short time.
#[async_trait]
pub trait Notices: Send + Sync + std::fmt::Debug {
    /// Sends those effects to the other processes that concern them, see
    /// [`Effect::concerns_other_processes`](crate::kernel::Effect::concerns_other_processes). Called after each commit.
    /// Returns immediately. The implementation buffers a limited number of effects, and
    /// replaces those that it cannot send by [`Notice::Missed`].
    fn publish(&self, effects: &Effects);

    /// Waits for the next notice of another process. Only one task may wait at a time.
    async fn receive(&self) -> Notice;
}

/// A buffer of notices between a task that must not wait and one that sends or processes them. It is limited, see
/// [`NoticeSet`].
#[derive(Debug, Default)]
pub struct NoticeBuffer(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    notices: NoticeSet,
    /// The task that waits for notices.
    waiter: Option<Waker>,
}

impl NoticeBuffer {
    /// Adds those effects that concern other processes.
    pub fn add_effects(&self, effects: &Effects) {
        let concerns_others = effects
            .iter()
            .filter(|effect| effect.concerns_other_processes());
        self.change(|notices| {
            for effect in concerns_others {
                notices.insert(Notice::Effect(effect.clone()));
            }
        });
    }

    /// Adds the notices of a message, unless `receiver` has sent it.
    pub fn add_message(&self, message: &str, receiver: &ProcessName) {
        self.change(|notices| notices.insert_message(message, receiver));
    }

    /// Adds [`Notice::Missed`].
    pub fn add_missed(&self) {
        self.change(|notices| notices.insert(Notice::Missed));
    }

    /// Waits until there is a notice, and takes one. Only one task may wait at a time.
    pub async fn next(&self) -> Notice {
        poll_fn(|context| self.poll(context, NoticeSet::pop)).await
    }

    /// Waits until there is a notice, and takes all. Only one task may wait at a time.
    pub async fn take(&self) -> NoticeSet {
        let take = |notices: &mut NoticeSet| match notices.is_empty() {
            true => None,
            false => Some(std::mem::take(notices)),
        };
        poll_fn(|context| self.poll(context, take)).await
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        take: impl FnOnce(&mut NoticeSet) -> Option<T>,
    ) -> Poll<T> {
        let mut state = self.lock();
        if let Some(taken) = take(&mut state.notices) {
            return Poll::Ready(taken);
        }
        state.waiter = Some(context.waker().clone());
        Poll::Pending
    }

    fn change(&self, change: impl FnOnce(&mut NoticeSet)) {
        let mut state = self.lock();
        change(&mut state.notices);
        if state.notices.is_empty() {
            return;
        }
        let waiter = state.waiter.take();
        drop(state);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::kernel::{Effect, JobId};

    #[derive(Default)]
    struct CountingWaker(AtomicU32);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_waiting_task_is_woken_by_effects_that_concern_other_processes() {
        let (buffer, wakes) = (NoticeBuffer::default(), Arc::new(CountingWaker::default()));
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        let mut next = pin!(buffer.next());
        assert!(next.as_mut().poll(&mut context).is_pending());

        let mut effects = Effects::default();
        effects.add(Effect::JobReady);
        effects.add(Effect::MailQueued);
        buffer.add_effects(&effects);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);

        let job = Effect::JobProgressed(JobId::parse("job-1").unwrap());
        effects.add(job.clone());
        buffer.add_effects(&effects);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        let taken = next.as_mut().poll(&mut context);
        assert_eq!(taken, Poll::Ready(Notice::Effect(job)));
        assert!(pin!(buffer.take()).poll(&mut context).is_pending());

        buffer.add_effects(&effects);
        buffer.add_missed();
        let taken = pin!(buffer.take()).poll(&mut context);
        assert_eq!(taken, Poll::Ready(NoticeSet::only_missed()));
    }
}
