//! The accounts of one customer during a unit of work. Balance and credits of a customer change only by entries of the
//! journal.
//!
//! A unit that changes the billing of a customer opens the book, which locks the customer until the unit ends. So these
//! units run one after the other for a customer, also those of [`Mode::ReadCommitted`](crate::port::Mode). Such a unit
//! opens the book before it reads the records that it decides by.

use crate::access::{unaudited, unowned_records};
use crate::billing::{Account, Customer, Entry, JournalEntry, JournalEntryQuery};
use crate::kernel::{
    Context, CustomerId, Error, JournalEntryId, Record, Result, Stored, Timestamp,
};
use crate::port::UnitOfWork;

/// The most entries that one record has.
const MAX_ENTRIES: u32 = 20;

/// The accounts of a customer. Collects entries, and stores them together with the changed customer.
#[derive(Debug)]
pub(super) struct CustomerBook {
    seen: Stored<Customer>,
    /// The customer after the entries so far. Fields beside the amounts can be changed as well.
    pub(super) customer: Customer,
    entries: Vec<JournalEntry>,
    /// The instant of the changes that the entries are about.
    pub(super) now: Timestamp,
}

impl CustomerBook {
    /// Opens the accounts of a customer, for changes at an instant. It is now, or the earlier instant at which the change
    /// was due. Waits until no other unit has the book of this customer open.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is no such customer.
    pub(super) async fn open(
        uow: &mut dyn UnitOfWork,
        customer: &CustomerId,
        now: Timestamp,
    ) -> Result<Self> {
        let seen = unaudited::lock::<Customer>(uow, customer.as_str()).await?;
        Ok(Self::of(seen.ok_or(Error::NotFound(Customer::KIND))?, now))
    }

    /// Returns the accounts of a customer for a preview. They are not locked, and must not be stored.
    ///
    /// # Errors
    /// `NOT_FOUND` if there is no such customer.
    pub(super) async fn read(
        uow: &mut dyn UnitOfWork,
        customer: &CustomerId,
        now: Timestamp,
    ) -> Result<Self> {
        let seen = unowned_records::<Customer>(uow).get(customer).await?;
        Ok(Self::of(seen, now))
    }

    fn of(seen: Stored<Customer>, now: Timestamp) -> Self {
        Self {
            customer: seen.edit(),
            seen,
            entries: Vec::new(),
            now,
        }
    }

    /// Adds an entry about a record. An entry without postings is left out.
    pub(super) fn post(&mut self, cx: &Context, entry: &Entry, reference: &str) {
        for posting in entry.postings() {
            let amount = posting.amount.minor();
            match posting.account {
                Account::Balance => self.customer.balance += amount,
                Account::Credits => self.customer.credit_balance -= amount,
                _ => {}
            }
        }
        if !entry.postings().is_empty() {
            let id = JournalEntryId::generate(self.now, cx.entropy.as_ref());
            let customer = &self.customer.id;
            let entry = JournalEntry::of(id, entry, reference, customer, self.now);
            self.entries.push(entry);
        }
    }

    /// Stores the entries and the customer. The changes that cause the entries have audit entries of their own.
    ///
    /// # Errors
    /// Only those of the store.
    pub(super) async fn store(mut self, uow: &mut dyn UnitOfWork) -> Result<Stored<Customer>> {
        if !self.entries.is_empty() {
            unaudited::append_many(uow, self.entries).await?;
        }
        if self.customer == *self.seen {
            return Ok(self.seen);
        }
        self.customer.updated_at = self.now;
        let changed = vec![(self.seen.clone(), self.customer)];
        let stored = unaudited::replace_locked(uow, changed).await?;
        Ok(stored.into_iter().next().unwrap_or(self.seen))
    }
}

/// Returns the entries about a record.
pub(super) async fn entries_about(uow: &mut dyn UnitOfWork, reference: &str) -> Result<Vec<Entry>> {
    let about = JournalEntryQuery::About(reference.to_owned());
    let stored = unowned_records::<JournalEntry>(uow);
    let stored = stored.list(&about, MAX_ENTRIES).await?;
    let entries = stored.iter().map(|stored| stored.entry());
    Ok(entries.collect::<Result<Vec<_>, _>>()?)
}
