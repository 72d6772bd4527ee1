//! Counts of append-only lists. A count is remembered and extended by the rows that were added since, so its cost does
//! not grow with the list.
//!
//! Keys start with the time of creation. Nearly all rows are added to a list soon after their creation, so a remembered
//! count is divided at a key that is a minute old: the settled rows before it, and the new rows from it on. Only the new
//! rows are counted again. The version of a list has the number of rows that were ever added. It shows whether a row was
//! added late, with a key before the bound: then all rows are counted. They are also counted after rows were removed.

use std::time::Duration;

use core_domain::kernel::{ListVersion, StoreError, first_uuid};

use crate::counts::{self, ListCount, SettledRows};
use crate::filter::Filter;
use crate::query::Select;
use crate::table::Table;
use crate::total::MIN_REMEMBERED_COUNT;
use crate::unit::RowUnit;

/// The age of a key from which on rows count as settled.
const SETTLED_AGE: Duration = Duration::from_secs(60);

/// The number of new rows of a list that are counted again each time. If there are more, the bound moves forward.
const MAX_NEW_ROWS: u64 = 1_000;

impl SettledRows {
    /// Limits a filter to the rows that are not settled.
    fn without(&self, table: &Table, filter: &Filter) -> Filter {
        filter
            .clone()
            .and(Filter::ge(table.key(), self.before.as_str()))
    }
}

impl RowUnit {
    /// Returns the number of matching rows of a list at a version, which must be the one that the unit sees.
    pub(crate) async fn count_at_version(
        &mut self,
        select: &Select,
        version: ListVersion,
    ) -> Result<u64, StoreError> {
        let Some(key) = counts::key(select.table, &select.filter) else {
            return self.tx.count(select.table, &select.filter).await;
        };
        let known = self.counts.of_lists.get(&key);
        let next = match &known {
            Some(known) if known.version == version => return Ok(known.count),
            Some(known) => self.extend_count(select, version, known).await?,
            None => None,
        };
        let next = match next {
            Some(next) => next,
            None => self.count_list(select, version).await?,
        };
        let count = next.count;
        self.counts.of_lists.put(key, next);
        Ok(count)
    }

    /// Counts the rows that are not settled. Returns `None` if the settled rows have changed or are unknown.
    async fn extend_count(
        &mut self,
        select: &Select,
        version: ListVersion,
        known: &ListCount,
    ) -> Result<Option<ListCount>, StoreError> {
        let (Some(list), Some(settled)) = (&select.list, &known.settled) else {
            return Ok(None);
        };
        if known.version.removed != version.removed {
            return Ok(None);
        }
        let new = settled.without(select.table, list);
        let new_rows = self.tx.count(select.table, &new).await?;
        if settled.added + new_rows != version.added {
            return Ok(None);
        }
        let matching = settled.without(select.table, &select.filter);
        let count = settled.matching + self.tx.count(select.table, &matching).await?;
        let settled = if new_rows > MAX_NEW_ROWS {
            self.settle(select, version, count).await?
        } else {
            Some(settled.clone())
        };
        Ok(Some(ListCount {
            version,
            count,
            settled,
        }))
    }

    /// Counts all matching rows.
    async fn count_list(
        &mut self,
        select: &Select,
        version: ListVersion,
    ) -> Result<ListCount, StoreError> {
        let count = self.tx.count(select.table, &select.filter).await?;
        let settled = if count < MIN_REMEMBERED_COUNT {
            None
        } else {
            self.settle(select, version, count).await?
        };
        Ok(ListCount {
            version,
            count,
            settled,
        })
    }

    /// Divides a count. Returns the settled part.
    async fn settle(
        &mut self,
        select: &Select,
        version: ListVersion,
        count: u64,
    ) -> Result<Option<SettledRows>, StoreError> {
        let Some(list) = &select.list else {
            return Ok(None);
        };
        let now = self.tx.now().await?;
        let all = SettledRows {
            before: first_uuid(now.minus(SETTLED_AGE)),
            added: version.added,
            matching: count,
        };
        let new = all.without(select.table, list);
        let new_rows = self.tx.count(select.table, &new).await?;
        let matching = all.without(select.table, &select.filter);
        let new_matching = self.tx.count(select.table, &matching).await?;
        let added = version.added.checked_sub(new_rows);
        let matching = count.checked_sub(new_matching);
        Ok(added.zip(matching).map(|(added, matching)| SettledRows {
            added,
            matching,
            ..all
        }))
    }
}
