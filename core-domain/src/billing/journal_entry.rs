//! Stored entries of the journal.

use serde::{Deserialize, Serialize};

use super::journal::{Account, Entry, EntryKind, JournalError, Posting};
use super::money::{Currency, Money};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{CustomerId, JournalEntryId, Timestamp, record};

/// An entry of the journal as it is stored. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JournalEntry {
    /// The id of the entry, which sorts by time.
    pub id: JournalEntryId,
    /// The event that the entry records.
    pub kind: EntryKind,
    /// The id of the record that the event is about. There is one entry for an event of a record.
    pub reference: String,
    /// The customer whose accounts the postings change.
    pub customer_id: CustomerId,
    /// The postings.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub postings: Vec<StoredPosting>,
    /// When the event happened.
    pub at: Timestamp,
}

/// A posting as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StoredPosting {
    /// The account.
    pub account: Account,
    /// The currency.
    pub currency: Currency,
    /// The amount in minor units: positive for a debit, negative for a credit.
    pub amount: i64,
}

record! {
    JournalEntry as "journal entry" by id, asked JournalEntryQuery;
}

impl JournalEntry {
    /// Creates the stored form of an entry.
    #[must_use]
    pub fn of(
        id: JournalEntryId,
        entry: &Entry,
        reference: &str,
        customer_id: &CustomerId,
        at: Timestamp,
    ) -> Self {
        let postings = entry.postings().iter().map(|posting| StoredPosting {
            account: posting.account,
            currency: posting.amount.currency(),
            amount: posting.amount.minor(),
        });
        Self {
            id,
            kind: entry.kind(),
            reference: reference.to_owned(),
            customer_id: customer_id.clone(),
            postings: postings.collect(),
            at,
        }
    }

    /// Returns what the entry adds to the revenue, in minor units. Negative if the entry takes revenue back.
    #[must_use]
    pub fn revenue(&self) -> i64 {
        let postings = self.postings.iter();
        let of_revenue = postings.filter(|posting| posting.account == Account::Revenue);
        // Credits are negative, and credits of the account are revenue.
        of_revenue.fold(0, |revenue: i64, posting| {
            revenue.saturating_sub(posting.amount)
        })
    }

    /// Returns the entry, checked again.
    ///
    /// # Errors
    /// [`JournalError`] if the stored postings do not balance.
    pub fn entry(&self) -> Result<Entry, JournalError> {
        Entry::new(self.kind, self.checked_postings()?)
    }

    /// Returns the postings. They may not balance.
    ///
    /// # Errors
    /// [`JournalError::Money`] if a stored amount is too large.
    pub fn checked_postings(&self) -> Result<Vec<Posting>, JournalError> {
        let postings = self.postings.iter().map(|stored| {
            Ok(Posting {
                account: stored.account,
                amount: Money::new(stored.amount.into(), stored.currency)?,
            })
        });
        postings.collect()
    }
}

/// Queries for entries of the journal, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntryQuery {
    /// All entries.
    All,
    /// The entries of a time.
    Between {
        /// The first instant.
        from: Timestamp,
        /// The first instant after it; `None` for no end.
        before: Option<Timestamp>,
    },
    /// The entries at or after an instant that change the revenue.
    RevenueSince(Timestamp),
    /// The entries of a record.
    About(String),
    /// The entries of a customer.
    Of(CustomerId),
}
