//! The writer with group commit: units take turns on one connection, and one disk commit makes several of them
//! permanent.
//!
//! The units of a group run one after the other in one transaction. Each unit after the first has a savepoint, so a
//! unit that is undone rolls back only its savepoint. A group ends when a unit commits while no other unit waits to
//! write. The transaction is then committed, and only after that every unit of the group gets its result. During the
//! disk commit the next units queue up and form the next group. A group also ends when a unit commits after
//! [`MAX_UNITS`] units or [`MAX_TIME`]. If the commit fails, every unit of the group fails.
//!
//! Readers see only committed units. A writer also sees the earlier units of its group: they are committed together or
//! not at all.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::{HostStatements, PoolState};
use rusqlite::Connection;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

use super::checkpoint::Checkpoints;
use super::commits::{Commits, RowSet};
use super::error::{CommitError, statement_error};
use super::host::HostGuard;
use super::readers::{acquire_timed_out, connection_lost_error};
use super::run::{OwnedStatement, control, execute, fetch, show_copies};
use crate::sql::{Change, Cost, Executor, Statement};
use crate::value::Visit;

/// Maximum number of units in a group. A disk commit costs as much as about ten units, so larger groups gain little.
const MAX_UNITS: usize = 64;
/// Maximum time that a unit waits for other units of its group.
const MAX_TIME: Duration = Duration::from_millis(5);

/// Sends the outcome of a unit to the task that waits for it.
type OutcomeSender = oneshot::Sender<Result<(), StoreError>>;

/// The connection, and the units whose group is not committed yet.
#[derive(Debug)]
struct Group {
    connection: Connection,
    /// The units that have finished and wait for the commit. A transaction is open while there are any, or while a unit
    /// runs.
    finished: Vec<OutcomeSender>,
    started_at: Instant,
    /// The rows that the units have changed. Includes units that were undone.
    changed_rows: HashSet<RowSet>,
    commits: Arc<Commits>,
    host: HostGuard,
}

/// A request to the commit thread.
enum CommitRequest {
    /// Commit the group in its current state.
    Commit(OwnedMutexGuard<Group>),
    /// Commit the group unless another unit will end it, because it has the turn or waits for it.
    CommitIfLeft,
    /// Panic, to simulate a defect.
    #[cfg(test)]
    Panic,
}

/// The writer of a store. Dropping it waits for its threads.
#[derive(Debug)]
pub(super) struct Writer {
    group: Arc<Mutex<Group>>,
    /// The number of units that wait for their turn.
    waiting: Arc<AtomicUsize>,
    orders: Option<mpsc::Sender<CommitRequest>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the commit thread has ended, so that no unit can be committed any more.
    has_thread_ended: Arc<AtomicBool>,
    acquire_timeout: Duration,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        checkpointing: Connection,
        commits: Arc<Commits>,
        acquire_timeout: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        let group = Arc::new(Mutex::new(Group {
            host: HostGuard::install(&connection).map_err(statement_error)?,
            connection,
            finished: Vec::new(),
            started_at: Instant::now(),
            changed_rows: HashSet::new(),
            commits,
        }));
        let waiting = Arc::new(AtomicUsize::new(0));
        let (orders, received) = mpsc::channel();
        let checkpoints = Checkpoints::start(checkpointing)?;
        let is_dead = Arc::new(AtomicBool::new(false));
        let end = ThreadEnd {
            orders: Some(received),
            is_dead: is_dead.clone(),
            group: group.clone(),
        };
        let others = waiting.clone();
        let thread = std::thread::Builder::new().name("core-sqlite-commit".to_owned());
        let run = move || commit_groups(&end, &others, checkpoints);
        let thread = thread.spawn(run).map_err(StoreError::unavailable)?;
        Ok(Arc::new(Self {
            group,
            waiting,
            orders: Some(orders),
            thread: Some(thread),
            has_thread_ended: is_dead,
            acquire_timeout,
        }))
    }

    /// Waits for its turn and starts a unit.
    pub(super) async fn begin(self: &Arc<Self>) -> Result<WriteTx, StoreError> {
        let waiting = Waiting::new(self);
        let group = timeout(self.acquire_timeout, self.group.clone().lock_owned()).await;
        let mut group = group.map_err(|_| acquire_timed_out("to write"))?;
        waiting.finish();
        if self.has_thread_ended.load(Ordering::SeqCst) {
            group.fail_without_thread();
            return Err(commit_thread_ended());
        }
        let unit = WriteTurn::begin(group, self.clone()).map_err(statement_error)?;
        Ok(WriteTx(Some(unit)))
    }

    /// Returns the number of units that wait for their turn. Whether a unit has the turn is not read: the commit thread
    /// must be able to take the group at any time.
    pub(super) fn state(&self) -> PoolState {
        let waiting = self.waiting.load(Ordering::Relaxed);
        PoolState {
            name: "sqlite-writer",
            limit: 1,
            in_use: None,
            idle: None,
            waiting: Some(u64::try_from(waiting).unwrap_or(u64::MAX)),
        }
    }

    fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn order(&self, order: CommitRequest) {
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        // Without the thread, the units of the group would wait forever.
        match sent {
            Some(Err(mpsc::SendError(CommitRequest::Commit(mut group)))) => {
                group.fail_without_thread()
            }
            Some(Err(mpsc::SendError(_))) => {
                if let Ok(mut group) = self.group.try_lock() {
                    group.fail_without_thread();
                }
            }
            Some(Ok(())) | None => {}
        }
    }

    /// Passes the turn to the next unit, or requests the commit of the group.
    fn pass_turn(&self, group: OwnedMutexGuard<Group>) {
        if group.finished.is_empty() {
            return;
        }
        if group.is_full() {
            self.order(CommitRequest::Commit(group));
            return;
        }
        // Release the group before the check: a unit that stops waiting after this point requests the commit itself.
        drop(group);
        if !self.has_waiting() {
            self.order(CommitRequest::CommitIfLeft);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends when the senders are dropped.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Group {
    fn is_full(&self) -> bool {
        self.finished.len() >= MAX_UNITS || self.started_at.elapsed() >= MAX_TIME
    }

    /// Commits the group and sends the outcome to its units.
    fn commit(&mut self) {
        let committed = self.commits.commit(self.changed_rows.drain(), || {
            control(&self.connection, "COMMIT").map_err(CommitError::new)
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            let _ = control(&self.connection, "ROLLBACK");
        }
        for answer in self.finished.drain(..) {
            let outcome = match &committed {
                Ok(()) => Ok(()),
                Err(error) => Err(error.failure()),
            };
            // The send fails if the task no longer waits.
            let _ = answer.send(outcome);
        }
    }

    /// Fails the units that have finished, because no thread will commit them.
    fn fail_without_thread(&mut self) {
        let is_undone =
            !self.connection.is_autocommit() && control(&self.connection, "ROLLBACK").is_ok();
        for answer in self.finished.drain(..) {
            let error = match is_undone {
                true => commit_thread_ended(),
                false => StoreError::commit_unknown("the commit thread ended during the commit"),
            };
            // The unit may have been dropped.
            let _ = answer.send(Err(error));
        }
    }

    /// Fails the finished units if SQLite has rolled back their transaction, for example because the disk is full.
    fn fail_if_rolled_back(&mut self) {
        if !self.connection.is_autocommit() {
            return;
        }
        for answer in self.finished.drain(..) {
            let failed = "SQLite rolled back the transaction after a disk or memory error";
            let _ = answer.send(Err(StoreError::unavailable(failed)));
        }
    }
}

/// Returns the error of a unit that cannot be committed any more.
fn commit_thread_ended() -> StoreError {
    StoreError::unavailable("the commit thread has ended; restart the process")
}

/// Fails the units of the group when the commit thread ends, even by a panic.
struct ThreadEnd {
    orders: Option<mpsc::Receiver<CommitRequest>>,
    is_dead: Arc<AtomicBool>,
    group: Arc<Mutex<Group>>,
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        self.is_dead.store(true, Ordering::SeqCst);
        // From here on requests fail. Dropping the queued requests releases the group.
        self.orders = None;
        self.group.blocking_lock().fail_without_thread();
    }
}

/// The main loop of the commit thread. It ends with the writer.
fn commit_groups(thread: &ThreadEnd, waiting: &AtomicUsize, mut checkpoints: Checkpoints) {
    let (Some(orders), group) = (&thread.orders, &thread.group) else {
        return;
    };
    while let Ok(order) = orders.recv() {
        let mut group = match order {
            CommitRequest::Commit(group) => group,
            CommitRequest::CommitIfLeft => match group.clone().try_lock_owned() {
                Ok(group) if !group.finished.is_empty() && waiting.load(Ordering::SeqCst) == 0 => {
                    group
                }
                // A wait for the turn could block forever, because the next request may own it.
                _ => continue,
            },
            #[cfg(test)]
            CommitRequest::Panic => panic!("the committing thread"),
        };
        group.commit();
        checkpoints.after_commit(&group.connection);
    }
}

/// A unit that waits for its turn. If it stops waiting, it must request the commit, because other units may have left
/// the commit to it.
struct Waiting<'w> {
    writer: &'w Writer,
    has_started: bool,
}

impl<'w> Waiting<'w> {
    fn new(writer: &'w Writer) -> Self {
        writer.waiting.fetch_add(1, Ordering::SeqCst);
        Self {
            writer,
            has_started: false,
        }
    }

    fn finish(mut self) {
        self.has_started = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.writer.waiting.fetch_sub(1, Ordering::SeqCst);
        if !self.has_started {
            self.writer.order(CommitRequest::CommitIfLeft);
        }
    }
}

/// A unit in progress. Dropping it undoes its changes, on any thread.
struct WriteTurn {
    /// `None` once the unit has ended.
    group: Option<OwnedMutexGuard<Group>>,
    /// Whether the unit has a savepoint. The first unit of a group has none; it uses the whole transaction.
    savepoint: bool,
    writer: Arc<Writer>,
}

impl WriteTurn {
    fn begin(
        mut group: OwnedMutexGuard<Group>,
        writer: Arc<Writer>,
    ) -> Result<Self, rusqlite::Error> {
        let savepoint = !group.finished.is_empty();
        let begin = if savepoint {
            "SAVEPOINT unit"
        } else {
            group.started_at = Instant::now();
            group.changed_rows.clear();
            // Takes the write lock at the start, so that a unit cannot fail at its end because another one wrote first.
            "BEGIN IMMEDIATE"
        };
        if let Err(error) = control(&group.connection, begin) {
            group.fail_if_rolled_back();
            writer.pass_turn(group);
            return Err(error);
        }
        Ok(Self {
            group: Some(group),
            savepoint,
            writer,
        })
    }

    fn connection(&self) -> Result<&Connection, StoreError> {
        let group = self.group.as_ref().ok_or_else(connection_lost_error)?;
        Ok(&group.connection)
    }

    /// Runs statements of the host program, in a savepoint of their own.
    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        let group = self
            .group
            .as_deref_mut()
            .ok_or_else(connection_lost_error)?;
        control(&group.connection, "SAVEPOINT host").map_err(statement_error)?;
        let host = group.host.enter();
        let outcome = statements.run(&mut group.connection).await;
        drop(host);
        outcome?;
        // Fails if SQLite has rolled the transaction back, for example because of `INSERT OR ROLLBACK`.
        control(&group.connection, "RELEASE host").map_err(statement_error)
    }

    fn note_change(&mut self, change: &Change<'_>) {
        if let Some(group) = &mut self.group {
            group.changed_rows.insert(RowSet::changed_by(change));
        }
    }

    /// Adds the unit to the finished ones. The receiver gets the outcome when the group is committed.
    fn finish(mut self) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        if self.savepoint {
            // If this fails, the unit is undone when it is dropped.
            control(self.connection()?, "RELEASE unit").map_err(statement_error)?;
        }
        let mut group = self.group.take().ok_or_else(connection_lost_error)?;
        let (answer, outcome) = oneshot::channel();
        group.finished.push(answer);
        self.writer.pass_turn(group);
        Ok(outcome)
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else {
            return;
        };
        if self.savepoint {
            let undone = control(&group.connection, "ROLLBACK TO unit");
            let released = undone.and_then(|()| control(&group.connection, "RELEASE unit"));
            if released.is_err() {
                // Its changes must not be committed with those of the others.
                let _ = control(&group.connection, "ROLLBACK");
            }
        } else {
            let _ = control(&group.connection, "ROLLBACK");
        }
        group.fail_if_rolled_back();
        self.writer.pass_turn(group);
    }
}

/// Lets all tasks run that are ready now. (`yield_now` of Tokio would also wait for tasks that become ready later.)
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if has_waited {
            return Poll::Ready(());
        }
        has_waited = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A unit of work that writes. `None` while a statement runs on a blocking thread.
pub(super) struct WriteTx(Option<WriteTurn>);

impl WriteTx {
    fn note_change(&mut self, statement: &Statement<'_>) -> Result<(), StoreError> {
        if let Some(change) = &statement.changes {
            let unit = self.0.as_mut().ok_or_else(connection_lost_error)?;
            unit.note_change(change);
        }
        Ok(())
    }

    /// Runs a statement on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &mut self,
        statement: &Statement<'_>,
        run: fn(&OwnedStatement, &Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let unit = self.0.take().ok_or_else(connection_lost_error)?;
        let detached = OwnedStatement::new(statement)?;
        let run = move || {
            let outcome = unit.connection().and_then(|c| run(&detached, c));
            (unit, outcome)
        };
        let done = tokio::task::spawn_blocking(run).await;
        let (unit, outcome) = done.map_err(StoreError::unavailable)?;
        self.0 = Some(unit);
        outcome
    }
}

impl Executor for WriteTx {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        self.note_change(statement)?;
        match statement.cost {
            Cost::Bounded => execute(
                self.0
                    .as_ref()
                    .ok_or_else(connection_lost_error)?
                    .connection()?,
                statement,
            ),
            Cost::Unbounded => self.run_blocking(statement, OwnedStatement::execute).await,
        }
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.note_change(statement)?;
        if statement.cost == Cost::Bounded {
            let unit = self.0.as_ref().ok_or_else(connection_lost_error)?;
            return fetch(unit.connection()?, statement, visit);
        }
        let rows = self.run_blocking(statement, OwnedStatement::fetch).await?;
        show_copies(&rows, visit)
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        let unit = self.0.as_mut().ok_or_else(connection_lost_error)?;
        unit.enlist(statements).await
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        let unit = self.0.take().ok_or_else(connection_lost_error)?;
        if !unit.writer.has_waiting() {
            // A task that was just notified of new work asks for its turn now.
            let_others_run().await;
        }
        let outcome = unit.finish()?;
        let lost =
            |_| StoreError::commit_unknown("the writer ended before it reported the outcome");
        outcome.await.map_err(lost)?
    }

    async fn rollback(self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(folder: &tempfile::TempDir) -> Connection {
        Connection::open(folder.path().join("core.db")).unwrap()
    }

    fn writer(folder: &tempfile::TempDir) -> Arc<Writer> {
        let commits = Arc::new(Commits::default());
        let timeout = Duration::from_secs(60);
        Writer::new(connection(folder), connection(folder), commits, timeout).unwrap()
    }

    /// Makes the commit thread panic.
    fn kill(writer: &Writer) {
        writer.order(CommitRequest::Panic);
        while !writer.has_thread_ended.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn units_fail_when_the_commit_thread_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&folder);
        let before = writer.begin().await.unwrap();
        let (dying, waits) = (writer.clone(), writer.clone());
        let killed = tokio::task::spawn_blocking(move || kill(&dying));
        let waits = tokio::spawn(async move { waits.begin().await.map(drop) });
        killed.await.unwrap();
        let committed = before.commit().await.unwrap_err();
        assert!(committed.is_certainly_not_applied(), "{committed:?}");
        let waited = waits.await.unwrap().unwrap_err();
        assert!(matches!(waited, StoreError::Unavailable(_)), "{waited:?}");
        let later = writer.begin().await.map(drop).unwrap_err();
        assert!(matches!(later, StoreError::Unavailable(_)), "{later:?}");
    }
}
