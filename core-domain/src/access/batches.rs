//! Reading all records that answer a query, some at a time.

use super::records::{Records, unowned};
use crate::kernel::{PageRequest, Record, Result, Stored, Total, Unowned};
use crate::port::{Persisted, UnitOfWork};

/// How many records are read at once.
const BATCH: u32 = 100;

/// The records that answer a query, in the query's order, a hundred at a time. What is done with a batch may take its
/// records out of the answer.
#[derive(Debug)]
pub(crate) struct Batches<R: Persisted> {
    query: R::Query,
    next: Option<PageRequest>,
}

impl<R: Persisted> Batches<R> {
    /// Those that answer this query.
    pub(crate) fn of(query: R::Query) -> Self {
        // Nobody asks for the total: nothing is counted.
        let first = PageRequest {
            total: Total::Known(0),
            ..PageRequest::first(BATCH)
        };
        Self {
            query,
            next: Some(first),
        }
    }

    /// The next batch of these records; `None` after the last one.
    ///
    /// # Errors
    /// When the store failed.
    pub(crate) async fn next(&mut self, records: Records<'_, R>) -> Result<Option<Vec<Stored<R>>>> {
        let Some(page) = self.next.take() else {
            return Ok(None);
        };
        let found = records.page(&self.query, &page).await?;
        self.next = found.next.map(|cursor| PageRequest {
            cursor: Some(cursor),
            ..page
        });
        Ok(Some(found.items))
    }
}

/// Returns all records that answer the query, in the query's order. For lists that a limit keeps short.
///
/// # Errors
/// When the store failed.
pub(crate) async fn all_unowned<R>(
    uow: &mut dyn UnitOfWork,
    query: R::Query,
) -> Result<Vec<Stored<R>>>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let mut batches = Batches::<R>::of(query);
    let mut all = Vec::new();
    while let Some(batch) = batches.next(unowned(uow)).await? {
        all.extend(batch);
    }
    Ok(all)
}
