//! Exports the journal: its postings in the order of their time, and the sums of debits and credits.

use crate::access::{Batches, OperatorScope};
use crate::billing::{
    Currency, Day, JournalEntry, JournalEntryQuery, JournalLine, TrialBalance, Turnover,
};
use crate::kernel::{Result, Timestamp};
use crate::port::{Mode, Store};

/// A range of days, in UTC. Both ends are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalRange {
    first: Option<Day>,
    last: Option<Day>,
}

/// The error for a range whose first day is after its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the first day is after the last one")]
pub struct JournalRangeError;

impl JournalRange {
    /// Creates a range. Without a first day it begins with the first entry, without a last day it has no end.
    ///
    /// # Errors
    /// [`JournalRangeError`] if the first day is after the last one.
    pub fn new(first: Option<Day>, last: Option<Day>) -> Result<Self, JournalRangeError> {
        match (first, last) {
            (Some(first), Some(last)) if first > last => Err(JournalRangeError),
            _ => Ok(Self { first, last }),
        }
    }

    fn query(self) -> JournalEntryQuery {
        JournalEntryQuery::Between {
            from: self.first.map_or(Timestamp::EPOCH, Day::start),
            before: self.last.map(Day::end),
        }
    }
}

/// An export in progress. It holds one page of entries, whatever the size of the journal.
///
/// Each page is read in a unit of work of its own, so that an export of any length does not keep a snapshot open. Entries
/// are ordered by their time and then by their id. An entry that is written while the export runs is part of it if its
/// time is after the last page. Entries of days that have ended are added only by changes that were due on these days,
/// such as a renewal while the server was down.
#[derive(Debug)]
pub struct JournalExport {
    entries: Batches<JournalEntry>,
    sums: TrialBalance,
}

impl JournalExport {
    /// Starts an export.
    #[must_use]
    pub fn new(range: JournalRange) -> Self {
        Self {
            entries: Batches::of(range.query()),
            sums: TrialBalance::default(),
        }
    }

    /// Returns the lines of the next entries; `None` after the last ones.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if an amount is too large, which `verify_journal` reports with the id of its entry.
    ///
    /// [`verify_journal`]: super::journal_check::verify_journal
    pub async fn next_page(
        &mut self,
        scope: &OperatorScope,
        store: &dyn Store,
    ) -> Result<Option<Vec<JournalLine>>> {
        let mut uow = store.begin(Mode::Read).await?;
        let page = self.entries.next(scope.records(uow.as_mut())).await;
        uow.rollback().await;
        let Some(page) = page? else {
            return Ok(None);
        };
        for entry in &page {
            let postings = entry.checked_postings()?;
            postings.iter().for_each(|posting| self.sums.add(posting));
        }
        let lines = page.iter().flat_map(|entry| JournalLine::of(entry));
        Ok(Some(lines.collect()))
    }

    /// Returns the sums of the lines so far, ordered by currency. After the last page, debits and credits are equal.
    pub fn trial_balance(&self) -> impl Iterator<Item = (Currency, Turnover)> {
        self.sums.turnovers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_days() {
        let day = |text: &str| text.parse::<Day>().ok();
        let range = JournalRange::new(day("2027-02-28"), day("2027-02-28")).unwrap();
        let expected = JournalEntryQuery::Between {
            from: Timestamp::parse_rfc3339("2027-02-28T00:00:00Z").unwrap(),
            before: Timestamp::parse_rfc3339("2027-03-01T00:00:00Z"),
        };
        assert_eq!(range.query(), expected);
        let everything = JournalEntryQuery::Between {
            from: Timestamp::EPOCH,
            before: None,
        };
        assert_eq!(JournalRange::default().query(), everything);
        let reversed = JournalRange::new(day("2027-03-01"), day("2027-02-28"));
        assert_eq!(reversed, Err(JournalRangeError));
    }
}
