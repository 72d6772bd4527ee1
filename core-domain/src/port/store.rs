//! The storage port: records, repositories, units of work.
//!
//! A use case is given a [`UnitOfWork`] and never opens one; whoever calls it (the endpoint layer, the job worker)
//! commits. Everything a use case changes is in that one unit.

use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;

use async_trait::async_trait;

use crate::kernel::store_error::StoreError;
use crate::kernel::{Error, Page, PageRequest, Timestamp};

/// A thing a store keeps.
///
/// `Query` is a closed enum of the questions that can be asked of these records; each names its filter and order.
pub trait Record: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The questions that can be asked.
    type Query: Clone + std::fmt::Debug + Send + Sync + 'static;

    /// What people call it; the word of `NOT_FOUND`.
    const KIND: &'static str;

    /// The text that tells this record from all others of its kind.
    fn key(&self) -> &str;
}

/// A record as it stands in the store, with the version the store gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<R> {
    record: R,
    version: i64,
}

impl<R> Stored<R> {
    /// For stores alone: a record at a version.
    pub const fn new(record: R, version: i64) -> Self {
        Self { record, version }
    }

    /// The version: 1 for a new record, one more at every change. It is the `ETag`.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// The record alone.
    pub fn into_inner(self) -> R {
        self.record
    }
}

impl<R> Deref for Stored<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

/// Which way to walk a tree of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From parent to parent, root first.
    Ancestors,
    /// From child to child, breadth first.
    Descendants,
}

/// The records of one kind, inside one unit of work.
///
/// Every error but `Conflict`, `Stale` and `InvalidCursor` ends the unit: what follows is refused, commit too.
#[async_trait]
pub trait Repository<R: Record>: Send {
    /// Adds a record; it starts at version 1.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names the unique set that is taken (`key` for the key itself).
    async fn insert(&mut self, record: R) -> Result<Stored<R>, StoreError>;

    /// The record with this key.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn get(&mut self, key: &str) -> Result<Option<Stored<R>>, StoreError>;

    /// The first record that answers the query, in the query's order.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn first(&mut self, query: &R::Query) -> Result<Option<Stored<R>>, StoreError>;

    /// Puts `next` in the place of `seen`, provided nobody changed it in between. The key must be the same.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when somebody did; [`StoreError::Conflict`] when a unique set is taken.
    async fn replace(&mut self, seen: &Stored<R>, next: R) -> Result<Stored<R>, StoreError>;

    /// Removes the record, provided nobody changed it in between.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when somebody did.
    async fn remove(&mut self, seen: &Stored<R>) -> Result<(), StoreError>;

    /// Removes every record that answers the query; tells how many.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn remove_all(&mut self, query: &R::Query) -> Result<u64, StoreError>;

    /// The first records that answer the query, in the query's order. For bounded work inside use cases.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn list(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError>;

    /// As [`Repository::list`], but on a store with row locks the rows stay locked for this unit, and rows that another
    /// unit holds are left out instead of waited for. For claims; only in a write unit.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn claim(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError>;

    /// A page of the records that answer the query. The total is counted for the first page and carried in the cursor.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`] when the cursor is not one of this query.
    async fn page(
        &mut self,
        query: &R::Query,
        page: &PageRequest,
    ) -> Result<Page<Stored<R>>, StoreError>;

    /// How many records answer the query.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn count(&mut self, query: &R::Query) -> Result<u64, StoreError>;

    /// The records reached from the one with this key, itself left out, at most `depth` steps away. Empty for a record
    /// without parents; ends on a cycle.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn walk(
        &mut self,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>, StoreError>;
}

/// How a unit of work will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A single read; no transaction is opened.
    Auto,
    /// Reads that must agree with each other.
    Read,
    /// Reads and writes; units of this mode behave as if they ran one after the other.
    Write,
}

/// Where units of work come from.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. Dropping it undoes what it did.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError>;
}

/// Calls a macro with the list of all records: `accessor: Type`. The one list; adding a record starts here.
#[macro_export]
macro_rules! for_each_record {
    ($callback:ident) => {
        $callback! {
            // shared
            audit_entries: $crate::shared::AuditEntry,
            outbox_messages: $crate::shared::OutboxMessage,
            idempotency_keys: $crate::shared::IdempotencyKey,
            // iam
            users: $crate::iam::User,
            accounts: $crate::iam::Account,
            sessions: $crate::iam::Session,
            organizations: $crate::iam::Organization,
            members: $crate::iam::Member,
            platform_suspensions: $crate::iam::PlatformSuspension,
            // provisioning
            jobs: $crate::provisioning::Job,
            job_events: $crate::provisioning::JobEvent,
            job_lanes: $crate::provisioning::JobLane,
            job_leases: $crate::provisioning::JobLease,
            job_holds: $crate::provisioning::JobHold,
            dlq_entries: $crate::provisioning::DlqEntry,
            // registry
            platforms: $crate::registry::Platform,
            lifecycle_records: $crate::registry::LifecycleRecord,
            entities: $crate::registry::Entity,
            resources: $crate::registry::Resource,
            deployments: $crate::registry::Deployment,
            onboardings: $crate::registry::Onboarding,
            // stacks
            stack_templates: $crate::stacks::StackTemplate,
            stack_versions: $crate::stacks::StackVersion,
        }
    };
}
pub use for_each_record;

macro_rules! unit_of_work {
    ($($accessor:ident: $record:ty),+ $(,)?) => {
        /// One unit of work: everything in it happens, or nothing does.
        #[async_trait]
        pub trait UnitOfWork: Send {
            /// The instant of this unit: the same however often it is asked for. The database's on Postgres, the
            /// injected clock's elsewhere.
            ///
            /// # Errors
            /// [`StoreError`] when the store failed.
            async fn now(&mut self) -> Result<Timestamp, StoreError>;

            /// Makes everything permanent.
            ///
            /// # Errors
            /// [`StoreError::Retry`] when the unit lost a race and must be run again; nothing was changed.
            async fn commit(self: Box<Self>) -> Result<(), StoreError>;

            /// Undoes everything.
            async fn rollback(self: Box<Self>);

            $(
                #[doc = concat!("The repository of [`", stringify!($record), "`].")]
                fn $accessor(&mut self) -> &mut dyn Repository<$record>;
            )+
        }
    };
}
for_each_record!(unit_of_work);

/// How often a unit of work that lost a race is run again.
const MAX_RUNS: u32 = 50;

/// What the body of [`transact`] answers: `Box::pin(async move { .. })`.
pub type Work<'unit, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'unit>>;

/// Tells the compiler that what the body of [`transact`] borrows outlives the unit of work. Carries nothing.
pub type Scope<'unit, 'env> = PhantomData<&'unit &'env ()>;

/// Runs a write unit and commits it; runs it again from the start when it lost a race. The only way to open a write
/// unit outside the endpoint layer. The body must be fit to run again: no effect outside the unit.
///
/// ```
/// # use core_domain::{kernel::{Result, Timestamp}, port::{Store, transact}};
/// async fn time_of_the_store(store: &dyn Store) -> Result<Timestamp> {
///     transact(store, |unit, _| Box::pin(async move { Ok(unit.now().await?) })).await
/// }
/// ```
///
/// # Errors
/// What the body answers, or why the store could not commit.
pub async fn transact<'env, T, F>(store: &dyn Store, body: F) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Scope<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    let mut run = 1;
    loop {
        match run_once(store, &body).await {
            Err(Error::Store(StoreError::Retry(_))) if run < MAX_RUNS => run += 1,
            outcome => return outcome,
        }
    }
}

async fn run_once<'env, T, F>(store: &dyn Store, body: &F) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Scope<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    let mut unit = store.begin(Mode::Write).await?;
    match body(unit.as_mut(), PhantomData).await {
        Ok(value) => {
            unit.commit().await?;
            Ok(value)
        }
        Err(error) => {
            unit.rollback().await;
            Err(error)
        }
    }
}
