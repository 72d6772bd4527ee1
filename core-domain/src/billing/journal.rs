//! The journal: the double-entry book of billing (contract: "Ledger and arithmetic").
//!
//! Entries are only appended. The amounts of invoices, the balance and the credits of a customer are sums of postings.

use std::collections::BTreeMap;

use super::money::{Currency, Money, MoneyError};
use crate::kernel::text_enum;

text_enum! {
    /// An account of the journal. A positive sum is a debit, a negative sum is a credit.
    pub enum Account {
        /// What a customer owes for invoices that are open.
        Receivable = "receivable",
        /// What a customer owes (positive) or has paid in advance (negative), apart from invoices.
        Balance = "balance",
        /// The credits that were granted to a customer and are left.
        Credits = "credits",
        /// The payments of all customers.
        Cash = "cash",
        /// The net amount of all invoices.
        Revenue = "revenue",
        /// The tax on all invoices.
        Tax = "tax",
        /// The value of promotional credits.
        Promotions = "promotions",
        /// The amounts that were written off.
        BadDebt = "bad_debt",
    }
}

impl Account {
    /// Returns whether every customer has an account of this kind. The others are common to all customers.
    #[must_use]
    pub const fn is_of_customer(self) -> bool {
        matches!(self, Self::Receivable | Self::Balance | Self::Credits)
    }
}

text_enum! {
    /// The event that an entry records. A book has at most one entry for an event of a record, so a repeated entry has no
    /// effect.
    pub enum EntryKind {
        /// Credits were granted.
        CreditGranted = "credit_granted",
        /// The rest of a grant expired or was voided.
        CreditEnded = "credit_ended",
        /// An invoice was finalized.
        InvoiceFinalized = "invoice_finalized",
        /// Credits were applied to an invoice.
        CreditsApplied = "credits_applied",
        /// The balance of the customer was applied to an invoice, or an invoice to the balance.
        BalanceApplied = "balance_applied",
        /// An invoice was paid.
        InvoicePaid = "invoice_paid",
        /// An invoice was voided.
        InvoiceVoided = "invoice_voided",
        /// An invoice was written off.
        InvoiceWrittenOff = "invoice_written_off",
        /// An invoice was paid after it had been written off.
        WriteOffRecovered = "write_off_recovered",
        /// The provider refunded a payment, or lost a dispute about it.
        PaymentRefunded = "payment_refunded",
    }
}

/// The source of the value of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditSource {
    /// The operator gave it away.
    Promotional,
    /// The customer paid for it.
    Paid,
}

/// The reasons why an entry is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Debits and credits differ in this currency.
    #[error("the entry does not balance in {0}")]
    Unbalanced(Currency),
    /// An amount cannot be calculated.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

/// The change of one account by an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The account.
    pub account: Account,
    /// The amount: positive for a debit, negative for a credit. Never zero in an entry.
    pub amount: Money,
}

/// The postings of one event. In every currency, debits and credits are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    kind: EntryKind,
    postings: Vec<Posting>,
}

impl Entry {
    /// Creates an entry. Postings without an amount are left out.
    ///
    /// # Errors
    /// [`JournalError::Unbalanced`] if the postings do not add up to zero in each currency.
    pub fn new(
        kind: EntryKind,
        postings: impl IntoIterator<Item = Posting>,
    ) -> Result<Self, JournalError> {
        let is_change = |posting: &Posting| posting.amount.minor() != 0;
        let postings: Vec<_> = postings.into_iter().filter(is_change).collect();
        let mut trial = TrialBalance::default();
        postings.iter().for_each(|posting| trial.add(posting));
        if let Some(currency) = trial.find_unbalanced() {
            return Err(JournalError::Unbalanced(currency));
        }
        Ok(Self { kind, postings })
    }

    /// Records the grant of a credit.
    #[must_use]
    pub fn credit_granted(source: CreditSource, amount: Money) -> Self {
        let from = match source {
            CreditSource::Promotional => Account::Promotions,
            CreditSource::Paid => Account::Cash,
        };
        Self::transfer(EntryKind::CreditGranted, from, Account::Credits, amount)
    }

    /// Records that the rest of a grant expired or was voided.
    #[must_use]
    pub fn credit_ended(source: CreditSource, rest: Money) -> Self {
        let to = match source {
            CreditSource::Promotional => Account::Promotions,
            CreditSource::Paid => Account::Revenue,
        };
        Self::transfer(EntryKind::CreditEnded, Account::Credits, to, rest)
    }

    /// Records a finalized invoice. Both amounts may be negative.
    ///
    /// # Errors
    /// [`JournalError::Money`] if the currencies differ or the net amount is too large.
    pub fn invoice_finalized(total: Money, tax: Money) -> Result<Self, JournalError> {
        let net = total.minus(tax)?;
        let postings = [
            debit(Account::Receivable, total),
            credit(Account::Revenue, net),
            credit(Account::Tax, tax),
        ];
        Self::new(EntryKind::InvoiceFinalized, postings)
    }

    /// Records credits that were applied to an invoice.
    #[must_use]
    pub fn credits_applied(amount: Money) -> Self {
        let kind = EntryKind::CreditsApplied;
        Self::transfer(kind, Account::Credits, Account::Receivable, amount)
    }

    /// Records what the balance of the customer changed by: a positive amount moves from the invoice to the balance, a
    /// negative one from the balance to the invoice.
    #[must_use]
    pub fn balance_applied(amount: Money) -> Self {
        let kind = EntryKind::BalanceApplied;
        Self::transfer(kind, Account::Balance, Account::Receivable, amount)
    }

    /// Records the payment of an invoice.
    #[must_use]
    pub fn invoice_paid(amount: Money) -> Self {
        let kind = EntryKind::InvoicePaid;
        Self::transfer(kind, Account::Cash, Account::Receivable, amount)
    }

    /// Records that the rest of an invoice was written off.
    #[must_use]
    pub fn invoice_written_off(rest: Money) -> Self {
        let kind = EntryKind::InvoiceWrittenOff;
        Self::transfer(kind, Account::BadDebt, Account::Receivable, rest)
    }

    /// Records the payment of an invoice that was written off. The debt is there again for the moment of its payment.
    #[must_use]
    pub fn write_off_recovered(amount: Money) -> Self {
        let restored = pair(Account::Receivable, Account::BadDebt, amount);
        let paid = pair(Account::Cash, Account::Receivable, amount);
        Self::of_pairs(EntryKind::WriteOffRecovered, [restored, paid].concat())
    }

    /// Records a refund or a lost dispute.
    #[must_use]
    pub fn payment_refunded(amount: Money) -> Self {
        let kind = EntryKind::PaymentRefunded;
        Self::transfer(kind, Account::Revenue, Account::Cash, amount)
    }

    /// Records the void of an invoice: the mirror of all its entries so far.
    #[must_use]
    pub fn invoice_voided<'e>(entries: impl IntoIterator<Item = &'e Self>) -> Self {
        let postings = entries.into_iter().flat_map(|entry| &entry.postings);
        let mirrored = postings.map(|posting| credit(posting.account, posting.amount));
        Self::of_pairs(EntryKind::InvoiceVoided, mirrored.collect())
    }

    /// Returns the event.
    #[must_use]
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Returns the postings, in the order in which they are shown.
    #[must_use]
    pub fn postings(&self) -> &[Posting] {
        &self.postings
    }

    fn transfer(kind: EntryKind, debited: Account, credited: Account, amount: Money) -> Self {
        Self::of_pairs(kind, pair(debited, credited, amount).to_vec())
    }

    /// Creates an entry of postings that are known to balance.
    fn of_pairs(kind: EntryKind, mut postings: Vec<Posting>) -> Self {
        postings.retain(|posting| posting.amount.minor() != 0);
        Self { kind, postings }
    }
}

const fn debit(account: Account, amount: Money) -> Posting {
    Posting { account, amount }
}

const fn credit(account: Account, amount: Money) -> Posting {
    Posting {
        account,
        amount: amount.negate(),
    }
}

const fn pair(debited: Account, credited: Account, amount: Money) -> [Posting; 2] {
    [debit(debited, amount), credit(credited, amount)]
}

/// The sums of debits and of credits in one currency, in minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turnover {
    /// The sum of all debits.
    pub debit: i128,
    /// The sum of all credits, as a positive number.
    pub credit: i128,
}

impl Turnover {
    /// Returns whether debits and credits are equal.
    #[must_use]
    pub const fn is_balanced(self) -> bool {
        self.debit == self.credit
    }
}

/// The sum of every account in every currency. The sums of one currency add up to zero, whatever entries they contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialBalance {
    sums: BTreeMap<(Currency, Account), i128>,
    turnovers: BTreeMap<Currency, Turnover>,
}

impl TrialBalance {
    /// Adds a posting.
    pub fn add(&mut self, posting: &Posting) {
        let (currency, amount) = (posting.amount.currency(), posting.amount.minor().into());
        // A book would need 2^74 postings of the largest amount to exceed a sum.
        let sum = self.sums.entry((currency, posting.account)).or_default();
        *sum = sum.saturating_add(amount);
        let turnover = self.turnovers.entry(currency).or_default();
        let side = match amount {
            0.. => &mut turnover.debit,
            _ => &mut turnover.credit,
        };
        *side = side.saturating_add(amount.saturating_abs());
    }

    /// Adds the postings of an entry.
    pub fn add_entry(&mut self, entry: &Entry) {
        entry.postings.iter().for_each(|posting| self.add(posting));
    }

    /// Returns the sum of an account in minor units: positive for a debit, negative for a credit.
    #[must_use]
    pub fn sum(&self, currency: Currency, account: Account) -> i128 {
        self.sums
            .get(&(currency, account))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the sums, ordered by currency and account.
    pub fn sums(&self) -> impl Iterator<Item = (Currency, Account, i128)> {
        self.sums
            .iter()
            .map(|((currency, account), sum)| (*currency, *account, *sum))
    }

    /// Returns the sums of debits and credits, ordered by currency.
    pub fn turnovers(&self) -> impl Iterator<Item = (Currency, Turnover)> {
        let turnovers = self.turnovers.iter();
        turnovers.map(|(currency, turnover)| (*currency, *turnover))
    }

    /// Returns a currency in which the sums do not add up to zero. Returns `None` if there is none.
    #[must_use]
    pub fn find_unbalanced(&self) -> Option<Currency> {
        let mut unbalanced = self.turnovers().filter(|(_, sides)| !sides.is_balanced());
        unbalanced.next().map(|(currency, _)| currency)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(minor: i64) -> Money {
        Money::new(minor.into(), Currency::USD).unwrap()
    }

    /// Returns the sums of all accounts after some entries, without those that are zero.
    fn book(entries: &[Entry]) -> Vec<(Account, i128)> {
        let mut trial = TrialBalance::default();
        entries.iter().for_each(|entry| trial.add_entry(entry));
        assert_eq!(trial.find_unbalanced(), None);
        let sums = trial.sums().map(|(_, account, sum)| (account, sum));
        sums.filter(|(_, sum)| *sum != 0).collect()
    }

    #[test]
    fn an_entry_that_does_not_balance_is_refused() {
        let one_sided = [debit(Account::Cash, usd(5))];
        let refused = Entry::new(EntryKind::InvoicePaid, one_sided);
        assert_eq!(refused, Err(JournalError::Unbalanced(Currency::USD)));
        let yen = Money::new(5, Currency::parse("jpy").unwrap()).unwrap();
        let mixed = [
            debit(Account::Cash, usd(5)),
            credit(Account::Receivable, yen),
        ];
        assert!(Entry::new(EntryKind::InvoicePaid, mixed).is_err());
        assert!(Entry::invoice_finalized(usd(5), yen).is_err());
    }

    #[test]
    fn an_invoice_is_finalized_reduced_and_paid() {
        let entries = [
            Entry::credit_granted(CreditSource::Promotional, usd(500)),
            Entry::invoice_finalized(usd(3_480), usd(580)).unwrap(),
            Entry::credits_applied(usd(500)),
            Entry::balance_applied(usd(-20)),
            Entry::invoice_paid(usd(3_000)),
        ];
        assert_eq!(
            book(&entries),
            [
                (Account::Balance, -20),
                (Account::Cash, 3_000),
                (Account::Revenue, -2_900),
                (Account::Tax, -580),
                (Account::Promotions, 500),
            ]
        );
    }

    #[test]
    fn a_void_undoes_the_invoice_and_returns_credits_and_balance() {
        let invoice = [
            Entry::invoice_finalized(usd(3_480), usd(580)).unwrap(),
            Entry::credits_applied(usd(500)),
            Entry::balance_applied(usd(-20)),
            Entry::invoice_written_off(usd(3_000)),
        ];
        let granted = Entry::credit_granted(CreditSource::Paid, usd(500));
        let before = book(std::slice::from_ref(&granted));
        let voided = Entry::invoice_voided(&invoice);
        let all = [&[granted], &invoice[..], &[voided]].concat();
        assert_eq!(book(&all), before);
    }

    #[test]
    fn a_recovered_write_off_is_cash_and_no_bad_debt() {
        let entries = [
            Entry::invoice_finalized(usd(2_900), usd(0)).unwrap(),
            Entry::invoice_written_off(usd(2_900)),
            Entry::write_off_recovered(usd(2_900)),
        ];
        let expected = [(Account::Cash, 2_900), (Account::Revenue, -2_900)];
        assert_eq!(book(&entries), expected);
    }

    #[test]
    fn an_expired_credit_returns_to_its_source() {
        let ended = |source| {
            let granted = Entry::credit_granted(source, usd(500));
            book(&[granted, Entry::credit_ended(source, usd(500))])
        };
        assert_eq!(ended(CreditSource::Promotional), []);
        let expected = [(Account::Cash, 500), (Account::Revenue, -500)];
        assert_eq!(ended(CreditSource::Paid), expected);
    }

    #[test]
    fn an_entry_has_no_postings_without_an_amount() {
        let free = Entry::invoice_finalized(usd(0), usd(0)).unwrap();
        assert!(free.postings().is_empty());
        let untaxed = Entry::invoice_finalized(usd(5), usd(0)).unwrap();
        assert_eq!(untaxed.postings().len(), 2);
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let amount = || (-1_000_000..1_000_000_i64).prop_map(usd);
        prop_oneof![
            amount().prop_map(|amount| Entry::credit_granted(CreditSource::Promotional, amount)),
            amount().prop_map(|amount| Entry::credit_ended(CreditSource::Paid, amount)),
            (amount(), amount())
                .prop_map(|(total, tax)| Entry::invoice_finalized(total, tax).unwrap()),
            amount().prop_map(Entry::credits_applied),
            amount().prop_map(Entry::balance_applied),
            amount().prop_map(Entry::invoice_paid),
            amount().prop_map(Entry::invoice_written_off),
            amount().prop_map(Entry::write_off_recovered),
            amount().prop_map(Entry::payment_refunded),
        ]
    }

    proptest! {
        #[test]
        fn the_book_balances_after_every_entry(entries in proptest::collection::vec(entry(), 0..24)) {
            let mut trial = TrialBalance::default();
            for entry in &entries {
                trial.add_entry(entry);
                prop_assert_eq!(trial.find_unbalanced(), None);
                let checked = Entry::new(entry.kind(), entry.postings().iter().copied());
                prop_assert_eq!(checked.as_ref(), Ok(entry));
            }
            trial.add_entry(&Entry::invoice_voided(&entries));
            prop_assert!(trial.sums().all(|(_, _, sum)| sum == 0));
        }
    }
}
