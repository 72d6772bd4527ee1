//! Compares the records of a customer with the journal: its balance, its credits, its open invoices and their numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::credit_grant::CreditGrant;
use super::customer::Customer;
use super::invoice::{Invoice, InvoiceStatus};
use super::journal::{Account, EntryKind, JournalError, Posting, TrialBalance};
use super::journal_entry::JournalEntry;
use super::money::Currency;
use crate::kernel::{CustomerId, InvoiceId, JournalEntryId};

/// A difference inside the journal, or between the journal and a record. Amounts are in minor units.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalDifference {
    /// An entry does not balance, or one of its amounts is too large.
    #[error("customer {customer_id}: journal entry {entry_id}: {problem}")]
    Entry {
        /// The id of the customer whose accounts the entry changes.
        customer_id: CustomerId,
        /// The id of the entry.
        entry_id: JournalEntryId,
        /// The reason why it is invalid.
        problem: JournalError,
    },
    /// An entry belongs to a customer that does not exist.
    #[error("customer {customer_id}: journal entry {entry_id}: there is no such customer")]
    UnknownCustomer {
        /// The id of the customer whose accounts the entry changes.
        customer_id: CustomerId,
        /// The id of the entry.
        entry_id: JournalEntryId,
    },
    /// The debits and the credits of all entries differ.
    #[error("the journal does not balance in {currency}: debit {debit}, credit {credit}")]
    Book {
        /// The currency of the amounts.
        currency: Currency,
        /// The sum of all debits.
        debit: i128,
        /// The sum of all credits.
        credit: i128,
    },
    /// An account of a customer differs from the customer's records: `receivable` from the open invoices, `balance` and
    /// `credits` from the amounts of the customer.
    #[error(
        "customer {customer_id}: {account} is {journal} {currency} in the journal and {record} in the records"
    )]
    Account {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The account whose amounts differ.
        account: Account,
        /// The currency of the amounts.
        currency: Currency,
        /// The amount that the journal yields.
        journal: i128,
        /// The stored amount.
        record: i128,
    },
    /// The unpaid amount of an invoice differs from the journal.
    #[error(
        "customer {customer_id}: invoice {invoice_id}: {journal} is unpaid in the journal and {record} in the record"
    )]
    Invoice {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The invoice, or the record that the journal names instead of one.
        invoice_id: String,
        /// The amount that the journal yields.
        journal: i128,
        /// The stored amount; 0 if the invoice is not open or does not exist.
        record: i128,
    },
    /// The amounts of an invoice do not add up.
    #[error("customer {customer_id}: invoice {invoice_id}: the amounts do not add up")]
    InvoiceAmounts {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The id of the invoice.
        invoice_id: InvoiceId,
    },
    /// The rest of a credit differs from the journal.
    #[error(
        "customer {customer_id}: credit {credit_id}: {journal} is left in the journal and {record} in the record"
    )]
    Credit {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The credit, or the record that the journal names instead of one.
        credit_id: String,
        /// The amount that the journal yields.
        journal: i128,
        /// The stored amount; 0 if the credit does not exist.
        record: i128,
    },
    /// An invoice has a number that is not the customer's, was not given, or belongs to another invoice.
    #[error(
        "customer {customer_id}: invoice {invoice_id}: the number {number} is wrong or used twice"
    )]
    Number {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The id of the invoice.
        invoice_id: InvoiceId,
        /// The number of the invoice.
        number: String,
    },
    /// No invoice has these numbers of a customer.
    #[error("customer {customer_id}: no invoice has a number from {first} to {last}")]
    MissingNumbers {
        /// The id of the customer.
        customer_id: CustomerId,
        /// The first missing number.
        first: String,
        /// The last missing number, which may be the first one.
        last: String,
    },
}

/// Compares one customer with the journal. Add all entries of the customer first, then all invoices, then all credits.
///
/// It keeps one number for each unpaid invoice, for each credit with a remaining amount, and for each invoice number.
#[derive(Debug)]
pub struct CustomerCheck {
    customer: Customer,
    accounts: TrialBalance,
    /// The unpaid amounts by the reference of the entries, without those that are zero.
    unpaid: BTreeMap<String, i128>,
    /// The remaining amounts of credits by the reference of the entries, without those that are zero.
    left: BTreeMap<String, i128>,
    /// The sums of `amountRemaining` of the open invoices.
    open: BTreeMap<Currency, i128>,
    positions: BTreeSet<i64>,
    differences: Vec<JournalDifference>,
}

impl CustomerCheck {
    /// Creates the check of a customer.
    #[must_use]
    pub fn new(customer: Customer) -> Self {
        Self {
            customer,
            accounts: TrialBalance::default(),
            unpaid: BTreeMap::new(),
            left: BTreeMap::new(),
            open: BTreeMap::new(),
            positions: BTreeSet::new(),
            differences: Vec::new(),
        }
    }

    /// Adds an entry of the customer. Entries with amounts that are too large are left out.
    pub fn add_entry(&mut self, entry: &JournalEntry) {
        for posting in entry.checked_postings().unwrap_or_default() {
            self.accounts.add(&posting);
            self.add_posting(entry, &posting);
        }
    }

    fn add_posting(&mut self, entry: &JournalEntry, posting: &Posting) {
        if posting.amount.currency() != self.customer.currency {
            return;
        }
        let amount = i128::from(posting.amount.minor());
        let is_about_credit = matches!(
            entry.kind,
            EntryKind::CreditGranted | EntryKind::CreditEnded
        );
        match posting.account {
            Account::Receivable => change(&mut self.unpaid, &entry.reference, amount),
            Account::Credits if is_about_credit => {
                change(&mut self.left, &entry.reference, -amount);
            }
            _ => {}
        }
    }

    /// Adds an invoice of the customer.
    pub fn add_invoice(&mut self, invoice: &Invoice) {
        if !invoice.adds_up() {
            let invoice_id = invoice.id.clone();
            self.report(|customer_id| JournalDifference::InvoiceAmounts {
                customer_id,
                invoice_id,
            });
        }
        let record = match invoice.status {
            InvoiceStatus::Open => i128::from(invoice.amount_remaining),
            _ => 0,
        };
        let sum = self.open.entry(invoice.currency).or_default();
        *sum = sum.saturating_add(record);
        let journal = self.unpaid.remove(invoice.id.as_str()).unwrap_or(0);
        self.compare_invoice(invoice.id.as_str(), journal, record);
        for applied in &invoice.applied_credits {
            let credit = &applied.credit_id;
            let change_of_credit = match invoice.status {
                // A cancelled invoice has returned its credits. Those that had ended before have ended again.
                InvoiceStatus::Void => {
                    let reference = CreditGrant::return_reference(credit, &invoice.id);
                    self.left.remove(&reference).unwrap_or(0)
                }
                _ => -i128::from(applied.amount),
            };
            change(&mut self.left, credit.as_str(), change_of_credit);
        }
        if let Some(number) = &invoice.number {
            self.add_number(&invoice.id, number);
        }
    }

    fn add_number(&mut self, invoice_id: &InvoiceId, number: &str) {
        let position = self.customer.invoice_position(number);
        let position = position.filter(|position| *position <= self.customer.invoice_count);
        if position.is_some_and(|position| self.positions.insert(position)) {
            return;
        }
        let (invoice_id, number) = (invoice_id.clone(), number.to_owned());
        self.report(|customer_id| JournalDifference::Number {
            customer_id,
            invoice_id,
            number,
        });
    }

    /// Adds a credit of the customer.
    pub fn add_credit(&mut self, credit: &CreditGrant) {
        let journal = self.left.remove(credit.id.as_str()).unwrap_or(0);
        self.compare_credit(credit.id.as_str(), journal, credit.remaining.into());
    }

    /// Returns the differences, in the order in which they were found.
    #[must_use]
    pub fn finish(mut self) -> Vec<JournalDifference> {
        for (reference, journal) in std::mem::take(&mut self.unpaid) {
            self.compare_invoice(&reference, journal, 0);
        }
        for (reference, journal) in std::mem::take(&mut self.left) {
            self.compare_credit(&reference, journal, 0);
        }
        self.compare_accounts();
        self.report_missing_numbers();
        self.differences
    }

    fn compare_accounts(&mut self) {
        let own = self.customer.currency;
        let in_journal = self.accounts.sums().map(|(currency, ..)| currency);
        let currencies = in_journal.chain(self.open.keys().copied()).chain([own]);
        for currency in currencies.collect::<BTreeSet<_>>() {
            let of_own = |amount: i64| if currency == own { amount.into() } else { 0 };
            let open = self.open.get(&currency).copied().unwrap_or(0);
            let balance = of_own(self.customer.balance);
            let credits = of_own(self.customer.credit_balance);
            let sum = |account| self.accounts.sum(currency, account);
            // Credits are a debt to the customer: the remaining amount is on the credit side.
            let compared = [
                (Account::Receivable, sum(Account::Receivable), open),
                (Account::Balance, sum(Account::Balance), balance),
                (Account::Credits, -sum(Account::Credits), credits),
            ];
            for (account, journal, record) in compared {
                if journal != record {
                    self.report(|customer_id| JournalDifference::Account {
                        customer_id,
                        account,
                        currency,
                        journal,
                        record,
                    });
                }
            }
        }
    }

    fn compare_invoice(&mut self, invoice: &str, journal: i128, record: i128) {
        if journal != record {
            self.report(|customer_id| JournalDifference::Invoice {
                customer_id,
                invoice_id: invoice.to_owned(),
                journal,
                record,
            });
        }
    }

    fn compare_credit(&mut self, credit: &str, journal: i128, record: i128) {
        if journal != record {
            self.report(|customer_id| JournalDifference::Credit {
                customer_id,
                credit_id: credit.to_owned(),
                journal,
                record,
            });
        }
    }

    fn report_missing_numbers(&mut self) {
        let end = self.customer.invoice_count.saturating_add(1);
        let mut expected = 1;
        for position in std::mem::take(&mut self.positions).into_iter().chain([end]) {
            if expected < position {
                let first = self.customer.invoice_number(expected);
                let last = self.customer.invoice_number(position - 1);
                self.report(|customer_id| JournalDifference::MissingNumbers {
                    customer_id,
                    first,
                    last,
                });
            }
            expected = position.saturating_add(1);
        }
    }

    fn report(&mut self, difference: impl FnOnce(CustomerId) -> JournalDifference) {
        self.differences.push(difference(self.customer.id.clone()));
    }
}

/// Changes a sum. Sums that become zero are removed.
fn change(sums: &mut BTreeMap<String, i128>, key: &str, amount: i128) {
    let sum = sums.get(key).copied().unwrap_or(0).saturating_add(amount);
    if sum == 0 {
        sums.remove(key);
    } else {
        sums.insert(key.to_owned(), sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::{AppliedCredit, CreditSource, Entry, InvoiceLine, Money};
    use crate::kernel::strategy::fixed_sample;

    /// A customer with one credit of 500, of which an open invoice of 2,900 has used 300.
    struct Records {
        customer: Customer,
        entries: Vec<JournalEntry>,
        invoice: Invoice,
        credit: CreditGrant,
    }

    impl Records {
        fn sample() -> Self {
            let mut customer = fixed_sample::<Customer>(1).remove(0);
            let mut credit = fixed_sample::<CreditGrant>(1).remove(0);
            let mut invoice = fixed_sample::<Invoice>(1).remove(0);
            // Sampled ids are equal.
            invoice.id = InvoiceId::parse("0192f3ab-7c20-7d3e-9b4a-5f6c7d8e9f01").unwrap();
            customer.currency = Currency::USD;
            (customer.balance, customer.credit_balance) = (0, 200);
            (customer.invoice_prefix, customer.invoice_count) = ("AB".to_owned(), 1);
            (credit.currency, credit.remaining) = (Currency::USD, 200);
            invoice.status = InvoiceStatus::Open;
            invoice.currency = Currency::USD;
            invoice.number = Some("AB-000001".to_owned());
            let mut line = fixed_sample::<InvoiceLine>(1).remove(0);
            (line.amount, line.tax.amount) = (2_500, 400);
            invoice.lines = vec![line];
            (invoice.subtotal, invoice.tax_total, invoice.discount_total) = (2_500, 400, 0);
            (
                invoice.total,
                invoice.credits_applied,
                invoice.balance_applied,
            ) = (2_900, 300, 0);
            (
                invoice.amount_due,
                invoice.amount_paid,
                invoice.amount_remaining,
            ) = (2_600, 0, 2_600);
            invoice.applied_credits = vec![AppliedCredit {
                credit_id: credit.id.clone(),
                amount: 300,
            }];
            let mut records = Self {
                customer,
                entries: Vec::new(),
                invoice,
                credit,
            };
            let (invoice, credit) = (records.invoice.id.clone(), records.credit.id.clone());
            records.post(
                &Entry::credit_granted(CreditSource::Promotional, usd(500)),
                credit.as_str(),
            );
            records.post(
                &Entry::invoice_finalized(usd(2_900), usd(400)).unwrap(),
                invoice.as_str(),
            );
            records.post(&Entry::credits_applied(usd(300)), invoice.as_str());
            records
        }

        fn post(&mut self, entry: &Entry, reference: &str) {
            let sample = fixed_sample::<JournalEntry>(1).remove(0);
            let customer = &self.customer.id;
            let stored = JournalEntry::of(sample.id, entry, reference, customer, sample.at);
            self.entries.push(stored);
        }

        fn differences(&self) -> Vec<JournalDifference> {
            let mut check = CustomerCheck::new(self.customer.clone());
            self.entries.iter().for_each(|entry| check.add_entry(entry));
            check.add_invoice(&self.invoice);
            check.add_credit(&self.credit);
            check.finish()
        }
    }

    fn usd(minor: i64) -> Money {
        Money::new(minor.into(), Currency::USD).unwrap()
    }

    #[test]
    fn records_that_follow_from_the_journal_have_no_difference() {
        assert_eq!(Records::sample().differences(), []);
    }

    #[test]
    fn a_tax_that_is_not_that_of_the_lines_is_a_difference() {
        let mut records = Records::sample();
        records.invoice.lines[0].tax.amount += 1;
        let found = records.differences();
        assert!(
            matches!(found.as_slice(), [JournalDifference::InvoiceAmounts { .. }]),
            "{found:?}"
        );
    }

    #[test]
    fn a_cancelled_invoice_has_returned_its_credits_also_to_a_credit_that_has_ended() {
        let mut records = Records::sample();
        let id = records.credit.id.clone();
        let reference = CreditGrant::return_reference(&id, &records.invoice.id);
        let ended = |amount| Entry::credit_ended(CreditSource::Promotional, usd(amount));
        records.post(&ended(200), id.as_str());
        records.credit.remaining = 0;
        records.customer.credit_balance = 0;
        assert_eq!(records.differences(), []);
        let invoice = records.invoice.id.clone();
        let about = records
            .entries
            .iter()
            .filter(|e| e.reference == invoice.as_str());
        let entries: Vec<_> = about.map(|entry| entry.entry().unwrap()).collect();
        records.post(&Entry::invoice_voided(&entries), invoice.as_str());
        records.post(&ended(300), &reference);
        records.invoice.status = InvoiceStatus::Void;
        records.invoice.amount_remaining = 0;
        assert_eq!(records.differences(), []);
    }

    #[test]
    fn amounts_in_another_currency_are_differences_of_the_accounts() {
        let mut records = Records::sample();
        let euro = Money::new(5, Currency::parse("eur").unwrap()).unwrap();
        records.post(&Entry::balance_applied(euro), "in-1");
        let accounts = records.differences().into_iter().map(|found| match found {
            JournalDifference::Account {
                account, journal, ..
            } => (account, journal),
            other => panic!("{other}"),
        });
        let expected = [(Account::Receivable, -5), (Account::Balance, 5)];
        assert_eq!(accounts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn entries_about_missing_records_are_differences() {
        let mut records = Records::sample();
        records.post(&Entry::invoice_paid(usd(1)), "in-1");
        records.post(&Entry::credit_granted(CreditSource::Paid, usd(2)), "cr-1");
        let found = records.differences();
        assert!(found.iter().any(|found| matches!(found,
            JournalDifference::Invoice { invoice_id, journal: -1, record: 0, .. } if invoice_id == "in-1")));
        assert!(found.iter().any(|found| matches!(found,
            JournalDifference::Credit { credit_id, journal: 2, record: 0, .. } if credit_id == "cr-1")));
        // The accounts `receivable` and `credits` differ as well.
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn missing_numbers_are_reported_as_ranges() {
        let mut records = Records::sample();
        records.customer.invoice_count = 9;
        records.invoice.number = Some("AB-000004".to_owned());
        let texts: Vec<_> = records
            .differences()
            .iter()
            .map(ToString::to_string)
            .collect();
        let range = |first, last| {
            let id = &records.customer.id;
            format!("customer {id}: no invoice has a number from AB-00000{first} to AB-00000{last}")
        };
        assert_eq!(texts, [range(1, 3), range(5, 9)]);
    }
}
