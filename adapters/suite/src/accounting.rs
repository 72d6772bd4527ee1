//! The journal of billing for accountants: its export, and its comparison with the records.
//!
//! ```
//! # async fn print(suite: &core_suite::Suite) -> core_suite::units::Result<()> {
//! use core_suite::accounting::JournalRange;
//!
//! let accounting = suite.accounting();
//! let mut export = accounting.export(JournalRange::default());
//! while let Some(lines) = export.next_page().await? {
//!     for line in lines {
//!         println!("{} {} {} {}", line.date, line.account, line.debit, line.credit);
//!     }
//! }
//! for (currency, sums) in export.trial_balance() {
//!     println!("{currency}: {} {}", sums.debit, sums.credit);
//! }
//! let summary = accounting.verify(|difference| println!("{difference}")).await?;
//! assert_eq!(summary.differences, 0);
//! # Ok(()) }
//! ```
//!
//! Amounts are in minor units, such as cents. `core-server export-journal` writes the lines as CSV or JSON, and
//! `core-server verify-journal` prints the differences.

use std::sync::Arc;

use core_domain::access::authorize_operator;
use core_domain::kernel::{Context, Entropy, Result};
use core_domain::port::Store;
use core_domain::use_case::billing::journal_check::verify_journal;
use core_domain::use_case::billing::journal_export::JournalExport;

pub use core_domain::billing::{
    Account, Currency, Day, DayError, EntryKind, JournalDifference, JournalLine,
    JournalLineAccount, TrialBalance, Turnover,
};
pub use core_domain::kernel::{CustomerId, JournalEntryId};
pub use core_domain::use_case::billing::journal_check::JournalSummary;
pub use core_domain::use_case::billing::journal_export::{JournalRange, JournalRangeError};

/// Exports and verifies the journal of billing. It only reads, in pages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Accounting {
    store: Arc<dyn Store>,
    cx: Context,
}

impl Accounting {
    pub(crate) fn new(store: Arc<dyn Store>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            store,
            cx: Context::system(entropy),
        }
    }

    /// Starts an export of the journal.
    #[must_use]
    pub fn export(&self, range: JournalRange) -> JournalPages {
        JournalPages {
            accounting: self.clone(),
            export: JournalExport::new(range),
        }
    }

    /// Compares the journal with itself and with the records of all customers, and passes every difference to `report`;
    /// see [`verify_journal`].
    ///
    /// # Errors
    /// Only those of the store. A row that cannot be decoded is such an error: the rest is not verified.
    pub async fn verify(
        &self,
        mut report: impl FnMut(JournalDifference) + Send,
    ) -> Result<JournalSummary> {
        let scope = authorize_operator(&self.cx)?;
        verify_journal(&scope, self.store.as_ref(), &mut report).await
    }
}

/// An export of the journal in progress; see [`JournalExport`].
#[derive(Debug)]
pub struct JournalPages {
    accounting: Accounting,
    export: JournalExport,
}

impl JournalPages {
    /// Returns the next lines, ordered by the time of their entries; `None` after the last ones.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if an amount is too large, which [`Accounting::verify`] reports with the id of its entry.
    pub async fn next_page(&mut self) -> Result<Option<Vec<JournalLine>>> {
        let scope = authorize_operator(&self.accounting.cx)?;
        let store = self.accounting.store.as_ref();
        self.export.next_page(&scope, store).await
    }

    /// Returns the sums of the lines so far, ordered by currency.
    pub fn trial_balance(&self) -> impl Iterator<Item = (Currency, Turnover)> {
        self.export.trial_balance()
    }
}
