//! The lines that wait to be written. Adding a line never blocks: if a queue is full, the line is omitted and counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core_domain::cli::LogContent;
use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::ResourceRef;
use tokio::sync::Notify;

/// Maximum memory of the waiting lines of one object, in bytes. One object cannot displace the lines of the others.
const MAX_OBJECT_BYTES: usize = 256 * 1024;
/// Maximum memory of all waiting lines, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of objects with waiting or omitted lines.
const MAX_OBJECTS: usize = 10_000;
/// Memory of a line without its texts, in bytes.
const LINE_BYTES: usize = 192;
/// Number of ids for each millisecond of the clock.
const IDS_PER_MILLISECOND: u64 = 1_000;

/// A line that waits to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingLine {
    pub(super) id: u64,
    pub(super) at: Timestamp,
    pub(super) content: LogContent,
}

/// The waiting lines of one object.
#[derive(Debug, Default)]
pub(super) struct ObjectLines {
    pub(super) lines: Vec<WaitingLine>,
    /// Number of lines after them that were omitted.
    omitted: u64,
    bytes: usize,
}

/// The waiting lines of all objects.
#[derive(Debug)]
pub(super) struct LogQueue {
    clock: Arc<dyn Clock>,
    state: Mutex<QueueState>,
    /// Is notified when a line was added or the queue was closed.
    added: Notify,
}

#[derive(Debug)]
struct QueueState {
    objects: HashMap<ResourceRef, ObjectLines>,
    bytes: usize,
    /// The id of the last line.
    last_id: u64,
    is_closed: bool,
}

/// The lines that [`LogQueue::take`] has removed from the queue.
#[derive(Debug)]
pub(super) struct TakenLines {
    pub(super) objects: HashMap<ResourceRef, ObjectLines>,
    /// The highest id of the lines.
    pub(super) last_id: u64,
}

impl LogQueue {
    /// Creates an empty queue. The ids of its lines follow `last_id`.
    pub(super) fn new(clock: Arc<dyn Clock>, last_id: u64) -> Self {
        Self {
            clock,
            state: Mutex::new(QueueState {
                objects: HashMap::new(),
                bytes: 0,
                last_id,
                is_closed: false,
            }),
            added: Notify::new(),
        }
    }

    /// Adds a line, or counts it as omitted if the queue is full.
    pub(super) fn push(&self, object: &ResourceRef, content: LogContent) {
        let now = self.clock.now();
        let mut state = self.state();
        let is_full = state.bytes >= MAX_BYTES;
        let id = state.next_id(now);
        let bytes = LINE_BYTES + content.text_bytes();
        let Some(waiting) = state.object(object) else {
            return;
        };
        // After an omission all lines are omitted until the queue is taken, so that the number of omitted lines has one
        // place.
        if is_full || waiting.omitted > 0 || waiting.bytes >= MAX_OBJECT_BYTES {
            waiting.omitted += 1;
        } else {
            waiting.bytes += bytes;
            waiting.lines.push(WaitingLine {
                id,
                at: now,
                content,
            });
            state.bytes += bytes;
        }
        drop(state);
        self.added.notify_one();
    }

    /// Counts lines that were omitted before they reached the queue.
    pub(super) fn omit(&self, object: &ResourceRef, count: u64) {
        let mut state = self.state();
        if let Some(waiting) = state.object(object) {
            waiting.omitted = waiting.omitted.saturating_add(count);
        }
        drop(state);
        self.added.notify_one();
    }

    /// Waits for lines and removes them. Returns `None` if the queue is empty and closed.
    pub(super) async fn take(&self) -> Option<TakenLines> {
        loop {
            {
                let mut state = self.state();
                if !state.objects.is_empty() {
                    return Some(state.take(self.clock.now()));
                }
                if state.is_closed {
                    return None;
                }
            }
            self.added.notified().await;
        }
    }

    /// Returns the id of the last line that was added or omitted.
    pub(super) fn last_id(&self) -> u64 {
        self.state().last_id
    }

    /// Makes [`Self::take`] return `None` when the queue is empty.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.added.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn next_id(&mut self, now: Timestamp) -> u64 {
        let by_time = u64::try_from(now.millis()).unwrap_or(0) * IDS_PER_MILLISECOND;
        self.last_id = by_time.max(self.last_id + 1);
        self.last_id
    }

    /// Returns the lines of an object; `None` if too many objects have lines.
    fn object(&mut self, object: &ResourceRef) -> Option<&mut ObjectLines> {
        if !self.objects.contains_key(object) {
            if self.objects.len() >= MAX_OBJECTS {
                return None;
            }
            self.objects.insert(object.clone(), ObjectLines::default());
        }
        self.objects.get_mut(object)
    }

    fn take(&mut self, now: Timestamp) -> TakenLines {
        let mut objects = std::mem::take(&mut self.objects);
        self.bytes = 0;
        for waiting in objects.values_mut() {
            if waiting.omitted > 0 {
                waiting.lines.push(WaitingLine {
                    id: self.next_id(now),
                    at: now,
                    content: LogContent::omission(waiting.omitted),
                });
            }
        }
        TakenLines {
            objects,
            last_id: self.last_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use core_domain::cli::LogLevel;
    use core_domain::registry::ResourceType;
    use core_domain::testing::ManualClock;

    use super::*;

    fn queue() -> LogQueue {
        let clock = ManualClock::at(Timestamp::from_millis(2));
        LogQueue::new(Arc::new(clock), 0)
    }

    fn object(name: &str) -> ResourceRef {
        ResourceRef {
            resource_type: ResourceType::Worker,
            name: name.to_owned(),
        }
    }

    fn console(text: &str) -> LogContent {
        LogContent::console(LogLevel::Log, text)
    }

    async fn take(queue: &LogQueue) -> HashMap<String, Vec<(u64, LogContent)>> {
        let taken = queue.take().await.unwrap();
        let lines =
            |lines: ObjectLines| lines.lines.into_iter().map(|line| (line.id, line.content));
        let objects = taken.objects.into_iter();
        objects
            .map(|(object, waiting)| (object.name, lines(waiting).collect()))
            .collect()
    }

    #[tokio::test]
    async fn ids_grow_with_the_time_and_within_a_millisecond() {
        let queue = queue();
        for (name, text) in [("one", "a"), ("two", "b"), ("one", "c")] {
            queue.push(&object(name), console(text));
        }
        let taken = take(&queue).await;
        assert_eq!(taken["one"], [(2_000, console("a")), (2_002, console("c"))]);
        assert_eq!(taken["two"], [(2_001, console("b"))]);

        let later = LogQueue::new(Arc::new(ManualClock::at(Timestamp::EPOCH)), 5_000);
        later.push(&object("one"), console("a"));
        assert_eq!(
            take(&later).await["one"][0].0,
            5_001,
            "the clock was set back"
        );
    }

    #[tokio::test]
    async fn lines_of_a_noisy_object_are_omitted_and_counted_without_loss_for_others() {
        let queue = queue();
        let long = "x".repeat(8 * 1024);
        for _ in 0..1_000 {
            queue.push(&object("noisy"), console(&long));
        }
        queue.push(&object("quiet"), console("here"));
        queue.omit(&object("quiet"), 2);
        let taken = take(&queue).await;
        let (omission, lines) = taken["noisy"].split_last().unwrap();
        assert!(lines.len() < 40, "{}", lines.len());
        let omitted = 1_000 - lines.len() as u64;
        assert_eq!(omission.1, LogContent::omission(omitted));
        let quiet: Vec<_> = taken["quiet"]
            .iter()
            .map(|(_, line)| line.clone())
            .collect();
        assert_eq!(quiet, [console("here"), LogContent::omission(2)]);
    }

    #[tokio::test]
    async fn memory_of_all_objects_is_bounded() {
        let queue = queue();
        let long = "x".repeat(8 * 1024);
        for number in 0..200 {
            for _ in 0..40 {
                queue.push(&object(&format!("worker-{number}")), console(&long));
            }
        }
        let bytes = queue.state().bytes;
        assert!(bytes <= MAX_BYTES + long.len() + LINE_BYTES, "{bytes}");
    }

    #[tokio::test]
    async fn closed_queue_ends_after_its_last_line() {
        let queue = queue();
        queue.push(&object("one"), console("last"));
        queue.close();
        assert_eq!(take(&queue).await["one"].len(), 1);
        assert!(queue.take().await.is_none());
    }
}
