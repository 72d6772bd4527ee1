//! Implements the ports of the domain on any engine. All repositories are implemented once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout};

use core_domain::access::RecordKey;
use core_domain::kernel::{
    Bounded, Effects, Page, PageQuery, PlatformId, StoreError, Stored, Timestamp, Total,
    for_each_record,
};
use core_domain::port::{
    CellState, Direction, FieldValue, HostStatements, Mode, PoolState, RecordGroup, Repositories,
    Repository, Staged, StatementTime, Store, UnitOfWork, Within,
};

use crate::back_off::BackOff;
use crate::checked_tx::{aborted_error, is_recoverable};
use crate::counts::Counts;
use crate::cursor::{CursorKey, KeysetPosition};
use crate::filter::Filter;
use crate::identity_map::IdentityMap;
use crate::join::{Join, VisitJoined};
use crate::page::{DEFAULT_PAGE_BYTES, PageRows, PageSize};
use crate::query::Select;
use crate::row_store::{GroupSum, Replacement, RowStore, RowTx};
use crate::table::{PLATFORM, Table, VERSION};
use crate::tabular::{Tabular, decode};
use crate::value::{ReadRow, Row, Value};

/// Implements the store of the domain on a row engine.
#[derive(Clone, Debug)]
pub struct RecordStore {
    rows: Arc<dyn RowStore>,
    cursor_key: CursorKey,
    page_bytes: usize,
    counts: Arc<Counts>,
    back_off: BackOff,
    retry_timeout: Duration,
    opened_at: Instant,
}

/// Maximum duration of a check of the store. Probes wait 2 s.
const CHECK_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long a unit that meets conflicts is run again by default.
const DEFAULT_RETRY_TIMEOUT: Duration = Duration::from_secs(10);

impl RecordStore {
    /// Creates a store on the engine. The key signs cursors.
    #[must_use]
    pub fn new(rows: Arc<dyn RowStore>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            rows,
            cursor_key: cursor_key.into(),
            page_bytes: DEFAULT_PAGE_BYTES,
            counts: Arc::default(),
            back_off: BackOff::default(),
            retry_timeout: DEFAULT_RETRY_TIMEOUT,
            opened_at: Instant::now(),
        }
    }

    /// Sets the time after which a unit that meets conflicts is not run again, see [`Store::retry_timeout`]. Default:
    /// 10 s.
    #[must_use]
    pub const fn with_retry_timeout(mut self, limit: Duration) -> Self {
        self.retry_timeout = limit;
        self
    }

    /// Sets the byte budget of a page. A page that reaches it has fewer records than requested, and a cursor. A page
    /// has at least one record. Default: [`DEFAULT_PAGE_BYTES`].
    #[must_use]
    pub const fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes;
        self
    }
}

impl RecordStore {
    fn unit(&self, tx: Box<dyn RowTx>, mode: Mode) -> Box<dyn UnitOfWork> {
        Box::new(RowUnit {
            tx,
            is_snapshot: mode == Mode::Read,
            aborted: false,
            cursor_key: self.cursor_key.clone(),
            page_bytes: self.page_bytes,
            counts: self.counts.clone(),
            identity_map: IdentityMap::of(mode),
            effects: Effects::default(),
        })
    }
}

#[async_trait]
impl Store for RecordStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        Ok(self.unit(self.rows.begin(mode).await?, mode))
    }

    async fn begin_stale(&self) -> Option<Box<dyn UnitOfWork>> {
        let tx = self.rows.begin_stale().await?;
        Some(self.unit(tx, Mode::Read))
    }

    async fn back_off(&self, run: u32) {
        self.back_off.pause(run).await;
    }

    async fn check(&self) -> Result<(), StoreError> {
        let answered = timeout(CHECK_TIMEOUT, async {
            self.begin(Mode::Auto).await?.now().await?;
            Ok(())
        });
        let late = |_| StoreError::unavailable("the store does not respond in time");
        answered.await.map_err(late)?
    }

    fn uptime(&self) -> Duration {
        self.opened_at.elapsed()
    }

    fn retry_timeout(&self) -> Duration {
        self.retry_timeout
    }

    fn pools(&self) -> Vec<PoolState> {
        self.rows.pools()
    }

    fn cells(&self) -> Vec<CellState> {
        self.rows.cells()
    }
}

/// A unit of work of the domain on a unit of work of the engine.
pub(crate) struct RowUnit {
    pub(crate) tx: Box<dyn RowTx>,
    /// `true` if all reads see one state of the store, which this unit does not change.
    pub(crate) is_snapshot: bool,
    /// Set if a record was replaced by one with another key. The engine has a separate flag.
    aborted: bool,
    cursor_key: CursorKey,
    page_bytes: usize,
    pub(crate) counts: Arc<Counts>,
    identity_map: IdentityMap,
    effects: Effects,
}

/// Returns a filter for the row of a record at its version. It names the platform, so that the engine knows whose rows
/// are changed.
fn version_filter<R: Tabular>(seen: &Stored<R>, row: &Row) -> Filter {
    let by_key = Filter::eq(R::TABLE.key(), seen.key());
    let of_version = by_key.and(Filter::eq(VERSION, seen.version()));
    of_version.and_platform(R::TABLE.platform_of(row))
}

/// Returns the filter that limits a statement to the records of one platform.
fn platform_filter(within: Within<'_>) -> Option<Filter> {
    match within {
        Within::Installation => None,
        Within::Platform(platform) => Some(Filter::eq(PLATFORM, platform)),
    }
}

/// Returns the table of new records.
fn table_of_new<R: Tabular>() -> &'static Table {
    R::STAGING.unwrap_or(R::TABLE)
}

fn select_within<R: Tabular>(within: Within<'_>, query: &R::Query) -> Select {
    R::select(query).filter_if(platform_filter(within))
}

pub(crate) fn push_decoded<R: Tabular>(
    records: &mut Vec<Stored<R>>,
    row: &dyn ReadRow,
) -> Result<(), StoreError> {
    records.push(decode(row)?);
    Ok(())
}

/// Returns the complete row of a record at a version.
fn row_of<R: Tabular>(record: &R, version: i64) -> Row {
    let mut row = record.to_row();
    row.push(Value::Int(version));
    row
}

/// Returns the rows of a record before and after a change.
fn replacement<R: Tabular>((seen, next): &(Stored<R>, R)) -> Replacement {
    Replacement {
        old: row_of::<R>(seen, seen.version()),
        new: row_of(next, seen.version() + 1),
    }
}

/// Converts a group of rows. No group column is nullable.
fn record_group(group: GroupSum) -> Result<RecordGroup, StoreError> {
    let GroupSum { values, count, sum } = group;
    let values = values.into_iter().map(|value| match value {
        Value::Bool(value) => Ok(FieldValue::Bool(value)),
        Value::Int(number) => Ok(FieldValue::Int(number)),
        Value::Text(text) => Ok(FieldValue::Text(text.to_string())),
        Value::Null => Err(StoreError::backend("a group column is NULL")),
    });
    let values = values.collect::<Result<_, _>>()?;
    Ok(RecordGroup { values, count, sum })
}

impl RowUnit {
    pub(crate) fn ensure_active(&self) -> Result<(), StoreError> {
        if self.aborted {
            Err(aborted_error())
        } else {
            Ok(())
        }
    }

    /// Aborts the unit unless the error is recoverable.
    fn track_error(&mut self, error: StoreError) -> StoreError {
        self.aborted |= !is_recoverable(&error);
        error
    }

    /// Passes the rows of a query to the visitor, each with the rows joined to it.
    pub(crate) async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        self.ensure_active()?;
        self.tx.select_joined(select, joins, visit).await
    }
}

#[async_trait]
impl<R: Tabular> Repository<R> for RowUnit {
    async fn insert(&mut self, record: R) -> Result<Stored<R>, StoreError> {
        self.ensure_active()?;
        let table = table_of_new::<R>();
        self.tx.insert(table, row_of(&record, 1)).await?;
        Ok(Stored::new(record, 1))
    }

    async fn insert_many(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let rows = records.iter().map(|record| row_of(record, 1)).collect();
        self.tx.insert_many(table_of_new::<R>(), rows).await?;
        let stored = |record| Stored::new(record, 1);
        Ok(records.into_iter().map(stored).collect())
    }

    async fn append_many(&mut self, records: Vec<R>) -> Result<(), StoreError> {
        self.ensure_active()?;
        let rows = records.iter().map(|record| row_of(record, 1)).collect();
        self.tx.append(table_of_new::<R>(), rows).await
    }

    async fn insert_or_lock(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let mut stored = Vec::with_capacity(records.len());
        let rows = records.iter().map(|record| {
            self.identity_map.evict::<R>(record.key());
            row_of(record, 1)
        });
        let rows = rows.collect();
        let mut visit = |row: &dyn ReadRow| push_decoded(&mut stored, row);
        self.tx.insert_or_lock(R::TABLE, rows, &mut visit).await?;
        Ok(stored)
    }

    async fn lock(&mut self, key: &str) -> Result<Option<Stored<R>>, StoreError> {
        self.ensure_active()?;
        self.identity_map.evict::<R>(key);
        let mut locked = Vec::with_capacity(1);
        let mut visit = |row: &dyn ReadRow| push_decoded(&mut locked, row);
        self.tx
            .lock(R::TABLE, &Value::text(key), &mut visit)
            .await?;
        Ok(locked.pop())
    }

    async fn insert_new(&mut self, records: Vec<R>) -> Result<BTreeSet<String>, StoreError> {
        self.ensure_active()?;
        let rows = records.iter().map(|record| row_of(record, 1)).collect();
        let keys = self.tx.insert_new(R::TABLE, rows).await?;
        let text = |key: Value| key.as_text().map(str::to_owned);
        Ok(keys.into_iter().filter_map(text).collect())
    }

    async fn replace_locked(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let rows = changes.iter().map(replacement).collect();
        self.tx.replace_locked(R::TABLE, rows).await?;
        let stored = |(seen, next): (Stored<R>, R)| {
            self.identity_map.evict::<R>(seen.key());
            Stored::new(next, seen.version() + 1)
        };
        Ok(changes.into_iter().map(stored).collect())
    }

    async fn list_staged(&mut self, limit: u32) -> Result<Vec<Staged<R>>, StoreError> {
        self.ensure_active()?;
        self.read_staged(limit).await
    }

    async fn staged_keys(&mut self, among: &[&str]) -> Result<BTreeSet<String>, StoreError> {
        self.ensure_active()?;
        let mut keys = BTreeSet::new();
        let mut visit = |row: &dyn ReadRow| {
            keys.extend(row.read(0)?.as_text().map(str::to_owned));
            Ok(())
        };
        if let Some(staging) = R::STAGING {
            let among = Filter::one_of(staging.key(), among.iter().copied());
            let select = Select::of(staging).filter(among);
            self.tx.select(&select, &mut visit).await?;
        }
        Ok(keys)
    }

    async fn promote(&mut self, keys: &[&str]) -> Result<u64, StoreError> {
        self.ensure_active()?;
        let Some(staging) = R::STAGING else {
            return Ok(0);
        };
        let keys: Vec<Value> = keys.iter().map(|key| Value::text(key)).collect();
        self.tx.promote(staging, R::TABLE, &keys).await
    }

    async fn remove_archived(&mut self, keys: &[&str]) -> Result<u64, StoreError> {
        self.ensure_active()?;
        self.identity_map.evict_all::<R>();
        let keys: Vec<Value> = keys.iter().map(|key| Value::text(key)).collect();
        self.tx.remove_archived(R::TABLE, &keys).await
    }

    async fn get_many(
        &mut self,
        within: Within<'_>,
        keys: &[&str],
    ) -> Result<Vec<Stored<R>>, StoreError> {
        let filter = Filter::one_of(R::TABLE.key(), keys.iter().copied());
        let select = Select::of(R::TABLE).filter(filter);
        self.read(&select.filter_if(platform_filter(within))).await
    }

    async fn get(
        &mut self,
        within: Within<'_>,
        key: &str,
    ) -> Result<Option<Stored<R>>, StoreError> {
        self.ensure_active()?;
        if let Some(known) = self.identity_map.get::<R>(within, key) {
            return Ok(Some(known));
        }
        let filter = platform_filter(within).unwrap_or_else(Filter::all);
        let found = self.read_one(key, &filter).await?;
        if let Some(found) = &found {
            self.identity_map.insert::<R>(within, found);
        }
        Ok(found)
    }

    async fn first(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
    ) -> Result<Option<Stored<R>>, StoreError> {
        let select = select_within::<R>(within, query).limit(1);
        let found = self.read(&select).await?.pop();
        if let Some(found) = &found {
            self.identity_map.insert::<R>(within, found);
        }
        Ok(found)
    }

    async fn replace(&mut self, seen: &Stored<R>, next: R) -> Result<Stored<R>, StoreError> {
        self.ensure_active()?;
        if seen.key() != next.key() {
            return Err(self.track_error(StoreError::backend(format!(
                "{}: the key of a record cannot be changed",
                R::TABLE.name
            ))));
        }
        let version = seen.version() + 1;
        let (old, new) = (seen.to_row(), next.to_row());
        let filter = version_filter(seen, &old);
        let changed = R::TABLE.columns.iter().zip(old.iter().zip(new));
        let mut set: Vec<(&'static str, Value)> = changed
            .filter(|(_, (old, new))| *old != new)
            .map(|(column, (_, new))| (column.name, new))
            .collect();
        set.push((VERSION, Value::Int(version)));
        if self.tx.update(R::TABLE, &filter, &set).await? == 0 {
            self.identity_map.evict::<R>(seen.key());
            return Err(StoreError::Stale {
                table: R::TABLE.name,
            });
        }
        let stored = Stored::new(next, version);
        self.identity_map.replace(&stored);
        Ok(stored)
    }

    async fn replace_many(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let rows = changes.iter().map(replacement).collect();
        self.tx.replace_many(R::TABLE, rows).await?;
        let stored = |(seen, next): (Stored<R>, R)| {
            self.identity_map.evict::<R>(seen.key());
            Stored::new(next, seen.version() + 1)
        };
        Ok(changes.into_iter().map(stored).collect())
    }

    async fn remove(&mut self, seen: &Stored<R>) -> Result<(), StoreError> {
        self.ensure_active()?;
        self.identity_map.evict::<R>(seen.key());
        let filter = version_filter(seen, &seen.to_row());
        match self.tx.delete(R::TABLE, &filter).await? {
            0 => Err(StoreError::Stale {
                table: R::TABLE.name,
            }),
            _ => Ok(()),
        }
    }

    async fn remove_all(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
    ) -> Result<u64, StoreError> {
        self.ensure_active()?;
        self.identity_map.evict_all::<R>();
        let filter = select_within::<R>(within, query).filter;
        self.tx.delete(R::TABLE, &filter).await
    }

    async fn remove_first(&mut self, query: &R::Query, limit: u32) -> Result<u64, StoreError> {
        self.ensure_active()?;
        self.identity_map.evict_all::<R>();
        let mut keys = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            keys.push(row.read(0)?.to_value());
            Ok(())
        };
        let select = R::select(query).limit(limit);
        self.tx.claim(&select, &mut visit).await?;
        if keys.is_empty() {
            return Ok(0);
        }
        self.tx
            .delete(R::TABLE, &Filter::In(R::TABLE.key(), keys))
            .await
    }

    async fn remove_of_platform(&mut self, platform: &PlatformId) -> Result<u64, StoreError> {
        self.ensure_active()?;
        self.identity_map.evict_all::<R>();
        let filter = Filter::eq(PLATFORM, platform);
        self.tx.delete(R::TABLE, &filter).await
    }

    async fn list(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        limit: u32,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        let select = select_within::<R>(within, query).limit(limit);
        self.read(&select).await
    }

    async fn claim(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let mut records = Vec::new();
        let mut visit = |row: &dyn ReadRow| push_decoded(&mut records, row);
        let select = R::select(query).limit(limit);
        self.tx.claim(&select, &mut visit).await?;
        Ok(records)
    }

    async fn page(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        page: &PageQuery,
    ) -> Result<Page<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let mut select = select_within::<R>(within, query);
        let total = if let Some(cursor) = &page.cursor {
            let position = self.cursor_key.verify(&select, cursor)?;
            select.after = Some(position.after);
            position.total
        } else {
            self.total::<R>(within, &select, page.total).await?
        };
        let size = PageSize {
            rows: usize::try_from(page.limit.max(1)).unwrap_or(usize::MAX),
            bytes: self.page_bytes,
        };
        let (items, next) = self.read_page(&select, size).await?;
        let next = next.map(|after| {
            let position = KeysetPosition { after, total };
            self.cursor_key.sign(&select, &position)
        });
        Ok(Page { items, next, total })
    }

    async fn count(&mut self, within: Within<'_>, query: &R::Query) -> Result<u64, StoreError> {
        self.ensure_active()?;
        let select = select_within::<R>(within, query);
        self.total::<R>(within, &select, Total::Unknown).await
    }

    async fn sum_by(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        sum: &'static str,
        by: &[&'static str],
    ) -> Result<Vec<RecordGroup>, StoreError> {
        self.ensure_active()?;
        let filter = select_within::<R>(within, query).filter;
        let groups = self.tx.sum(R::TABLE, sum, by, &filter).await?;
        groups.into_iter().map(record_group).collect()
    }

    async fn walk(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let filter = platform_filter(within).unwrap_or_else(Filter::all);
        let mut records = Vec::new();
        let mut visit = |row: &dyn ReadRow| push_decoded(&mut records, row);
        let walk = self
            .tx
            .walk(R::TABLE, key, direction, depth, &filter, &mut visit);
        walk.await?;
        Ok(records)
    }

    async fn walk_bounded(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Bounded<Stored<R>>, StoreError> {
        self.ensure_active()?;
        let filter = platform_filter(within).unwrap_or_else(Filter::all);
        let mut rows = PageRows::new(PageSize {
            rows: usize::MAX,
            bytes: self.page_bytes,
        });
        let mut visit = |row: &dyn ReadRow| rows.push(R::TABLE, row);
        let walk = self
            .tx
            .walk(R::TABLE, key, direction, depth, &filter, &mut visit);
        walk.await?;
        Ok(Bounded {
            items: rows.items,
            has_more: rows.has_more,
        })
    }
}

#[async_trait]
impl UnitOfWork for RowUnit {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.ensure_active()?;
        self.tx.now().await
    }

    fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    fn repositories(&mut self, _key: RecordKey) -> &mut dyn Repositories {
        self
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.ensure_active()?;
        self.tx.enlist(statements).await
    }

    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        self.tx.take_slowest_statements()
    }

    async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
        if self.aborted {
            self.tx.rollback().await;
            return Err(aborted_error());
        }
        self.tx.commit().await?;
        Ok(self.effects)
    }

    async fn rollback(self: Box<Self>) {
        self.tx.rollback().await;
    }
}

macro_rules! repositories {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        impl Repositories for RowUnit {
            $(
                fn $accessor(&mut self) -> &mut dyn Repository<$record> {
                    self
                }
            )+
        }
    };
}
for_each_record!(repositories);
