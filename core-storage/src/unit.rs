//! The port, on top of any engine: every repository, written once.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Page, PageRequest, Timestamp};
use core_domain::port::{
    Direction, Mode, Repository, Store, StoreError, Stored, UnitOfWork, for_each_record,
};

use crate::cursor::{CursorKey, Place};
use crate::filter::Filter;
use crate::guarded::{ended, leaves_unit_alive};
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::table::VERSION;
use crate::tabular::Tabular;
use crate::value::{Row, Value};

/// The store of the domain on top of a row engine.
#[derive(Clone, Debug)]
pub struct RecordStore {
    rows: Arc<dyn RowStore>,
    cursor_key: CursorKey,
}

impl RecordStore {
    /// Keeps records in the engine and seals cursors with the key.
    #[must_use]
    pub fn new(rows: Arc<dyn RowStore>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            rows,
            cursor_key: cursor_key.into(),
        }
    }
}

#[async_trait]
impl Store for RecordStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        let tx = self.rows.begin(mode).await?;
        Ok(Box::new(RowUnit {
            tx,
            dead: false,
            cursor_key: self.cursor_key.clone(),
        }))
    }
}

/// A unit of work of the domain on top of one on rows.
struct RowUnit {
    tx: Box<dyn RowTx>,
    /// Set by rows that make no sense; the engine keeps its own flag.
    dead: bool,
    cursor_key: CursorKey,
}

fn key_filter<R: Tabular>(key: &str) -> Filter {
    Filter::eq(R::TABLE.key(), key)
}

fn seen_filter<R: Tabular>(seen: &Stored<R>) -> Filter {
    key_filter::<R>(seen.key()).and(Filter::eq(VERSION, seen.version()))
}

impl RowUnit {
    fn alive(&self) -> Result<(), StoreError> {
        if self.dead { Err(ended()) } else { Ok(()) }
    }

    /// Ends the unit unless it may go on after the error.
    fn fail(&mut self, error: StoreError) -> StoreError {
        self.dead |= !leaves_unit_alive(&error);
        error
    }

    fn decode<R: Tabular>(&mut self, row: Row) -> Result<Stored<R>, StoreError> {
        R::from_row(row)
            .map(|(record, version)| Stored::new(record, version))
            .map_err(|error| self.fail(error))
    }

    async fn read<R: Tabular>(&mut self, select: &Select) -> Result<Vec<Stored<R>>, StoreError> {
        self.alive()?;
        let rows = self.tx.select(select).await?;
        rows.into_iter().map(|row| self.decode(row)).collect()
    }
}

#[async_trait]
impl<R: Tabular> Repository<R> for RowUnit {
    async fn insert(&mut self, record: R) -> Result<Stored<R>, StoreError> {
        self.alive()?;
        let mut row = record.to_row();
        row.push(Value::Int(1));
        self.tx.insert(R::TABLE, row).await?;
        Ok(Stored::new(record, 1))
    }

    async fn get(&mut self, key: &str) -> Result<Option<Stored<R>>, StoreError> {
        let select = Select::of(R::TABLE).only(key_filter::<R>(key)).limit(1);
        Ok(self.read(&select).await?.pop())
    }

    async fn first(&mut self, query: &R::Query) -> Result<Option<Stored<R>>, StoreError> {
        Ok(self.read(&R::select(query).limit(1)).await?.pop())
    }

    async fn replace(&mut self, seen: &Stored<R>, next: R) -> Result<Stored<R>, StoreError> {
        self.alive()?;
        if seen.key() != next.key() {
            return Err(self.fail(StoreError::Backend(format!(
                "{}: a key never changes",
                R::TABLE.name
            ))));
        }
        let version = seen.version() + 1;
        let (old, new) = (seen.to_row(), next.to_row());
        let changed = R::TABLE.columns.iter().zip(old.iter().zip(new));
        let mut set: Vec<(&'static str, Value)> = changed
            .filter(|(_, (old, new))| *old != new)
            .map(|(column, (_, new))| (column.name, new))
            .collect();
        set.push((VERSION, Value::Int(version)));
        match self.tx.update(R::TABLE, &seen_filter(seen), &set).await? {
            0 => Err(StoreError::Stale {
                table: R::TABLE.name,
            }),
            _ => Ok(Stored::new(next, version)),
        }
    }

    async fn remove(&mut self, seen: &Stored<R>) -> Result<(), StoreError> {
        self.alive()?;
        match self.tx.delete(R::TABLE, &seen_filter(seen)).await? {
            0 => Err(StoreError::Stale {
                table: R::TABLE.name,
            }),
            _ => Ok(()),
        }
    }

    async fn remove_all(&mut self, query: &R::Query) -> Result<u64, StoreError> {
        self.alive()?;
        self.tx.delete(R::TABLE, &R::select(query).filter).await
    }

    async fn list(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError> {
        self.read(&R::select(query).limit(limit)).await
    }

    async fn claim(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError> {
        self.alive()?;
        let rows = self.tx.claim(&R::select(query).limit(limit)).await?;
        rows.into_iter().map(|row| self.decode(row)).collect()
    }

    async fn page(
        &mut self,
        query: &R::Query,
        page: &PageRequest,
    ) -> Result<Page<Stored<R>>, StoreError> {
        self.alive()?;
        let mut select = R::select(query);
        let total = match &page.cursor {
            Some(cursor) => {
                let place = self.cursor_key.open(&select, cursor)?;
                select.after = Some(place.after);
                place.total
            }
            None => self.tx.count(R::TABLE, &select.filter).await?,
        };
        let limit = page.limit.max(1);
        // One more than asked for tells whether there is a next page.
        select.limit = Some(limit.saturating_add(1));
        let mut rows = self.tx.select(&select).await?;
        let size = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > size;
        rows.truncate(size);
        let next = match rows.last().filter(|_| more) {
            Some(last) => {
                let after = select.place_of(last);
                Some(self.cursor_key.seal(&select, &Place { after, total })?)
            }
            None => None,
        };
        let items = rows
            .into_iter()
            .map(|row| self.decode(row))
            .collect::<Result<_, _>>()?;
        Ok(Page { items, next, total })
    }

    async fn count(&mut self, query: &R::Query) -> Result<u64, StoreError> {
        self.alive()?;
        self.tx.count(R::TABLE, &R::select(query).filter).await
    }

    async fn walk(
        &mut self,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>, StoreError> {
        self.alive()?;
        let rows = self.tx.walk(R::TABLE, key, direction, depth).await?;
        rows.into_iter().map(|row| self.decode(row)).collect()
    }
}

macro_rules! row_unit {
    ($($accessor:ident: $record:ty),+ $(,)?) => {
        #[async_trait]
        impl UnitOfWork for RowUnit {
            async fn now(&mut self) -> Result<Timestamp, StoreError> {
                self.alive()?;
                self.tx.now().await
            }

            async fn commit(self: Box<Self>) -> Result<(), StoreError> {
                if self.dead {
                    self.tx.rollback().await;
                    return Err(ended());
                }
                self.tx.commit().await
            }

            async fn rollback(self: Box<Self>) {
                self.tx.rollback().await;
            }

            $(
                fn $accessor(&mut self) -> &mut dyn Repository<$record> {
                    self
                }
            )+
        }
    };
}
for_each_record!(row_unit);
