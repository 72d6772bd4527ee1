//! The journal as a list of lines, one for each posting, as accountants read it.

use std::fmt;

use super::journal::{Account, EntryKind};
use super::journal_entry::{JournalEntry, StoredPosting};
use super::{Currency, Day};
use crate::kernel::{CustomerId, JournalEntryId};

/// The account of a line. Its text form is the name of the account, for example `cash`. An account that every customer has
/// is followed by the id of the customer: `receivable:<customerId>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLineAccount {
    /// The kind of account.
    pub account: Account,
    /// The customer whose account it is. `None` for an account that is common to all customers.
    pub customer_id: Option<CustomerId>,
}

impl fmt::Display for JournalLineAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.account.as_str())?;
        match &self.customer_id {
            Some(customer) => write!(f, ":{customer}"),
            None => Ok(()),
        }
    }
}

/// One posting of an entry. Exactly one of its amounts is not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLine {
    /// The day of the event, in UTC.
    pub date: Day,
    /// The id of the entry. All lines of one event have the same.
    pub entry: JournalEntryId,
    /// The event that the entry records.
    pub event: EntryKind,
    /// The account that the posting changes.
    pub account: JournalLineAccount,
    /// The currency of the amounts.
    pub currency: Currency,
    /// The debit in minor units; 0 if the line is a credit.
    pub debit: u64,
    /// The credit in minor units; 0 if the line is a debit.
    pub credit: u64,
    /// The id of the record that the event is about, such as an invoice.
    pub reference: String,
}

impl JournalLine {
    /// Returns the lines of an entry, in the order of its postings.
    pub fn of(entry: &JournalEntry) -> impl Iterator<Item = Self> {
        let line = |posting: &StoredPosting| {
            let account = posting.account;
            let amount = posting.amount.unsigned_abs();
            let is_debit = posting.amount >= 0;
            Self {
                date: Day::of(entry.at),
                entry: entry.id.clone(),
                event: entry.kind,
                account: JournalLineAccount {
                    account,
                    customer_id: account.is_of_customer().then(|| entry.customer_id.clone()),
                },
                currency: posting.currency,
                debit: if is_debit { amount } else { 0 },
                credit: if is_debit { 0 } else { amount },
                reference: entry.reference.clone(),
            }
        };
        entry.postings.iter().map(line)
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::Entry;
    use super::super::money::Money;
    use super::*;
    use crate::kernel::Timestamp;
    use crate::kernel::strategy::fixed_sample;

    #[test]
    fn an_entry_has_a_line_for_each_posting() {
        let sample = fixed_sample::<JournalEntry>(1).remove(0);
        let amount = Money::new(2_900, Currency::USD).unwrap();
        let at = Timestamp::parse_rfc3339("2027-01-31T23:59:59.999Z").unwrap();
        let paid = Entry::invoice_paid(amount);
        let stored = JournalEntry::of(sample.id, &paid, "in-1", &sample.customer_id, at);
        let lines: Vec<_> = JournalLine::of(&stored).collect();
        let texts = lines.iter().map(|line| {
            let (date, account) = (line.date, &line.account);
            format!(
                "{date} {account} {} {} {}",
                line.debit, line.credit, line.reference
            )
        });
        let receivable = format!("2027-01-31 receivable:{} 0 2900 in-1", stored.customer_id);
        let expected = ["2027-01-31 cash 2900 0 in-1".to_owned(), receivable];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
    }
}
