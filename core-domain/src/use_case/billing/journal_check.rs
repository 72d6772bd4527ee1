//! Verifies the journal: that it balances, and that the records of every customer follow from it.

use std::collections::BTreeSet;

use crate::access::{Batches, OperatorScope};
use crate::billing::{
    CreditGrant, CreditGrantQuery, Customer, CustomerCheck, CustomerQuery, Invoice, InvoiceQuery,
    JournalDifference, JournalEntry, JournalEntryQuery, TrialBalance,
};
use crate::kernel::{CustomerId, Result};
use crate::port::{Mode, Store, UnitOfWork};

/// The numbers of records that were verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalSummary {
    /// The number of entries of the journal.
    pub entries: u64,
    /// The number of customers.
    pub customers: u64,
    /// The number of invoices.
    pub invoices: u64,
    /// The number of credits.
    pub credits: u64,
    /// The number of differences.
    pub differences: u64,
    /// The sums of all accounts.
    pub sums: TrialBalance,
}

/// Compares the journal with itself and with the records of all customers. Passes every difference to `report`.
///
/// It reads pages, and its memory grows only with the number of invoices and credits of one customer. It can run beside a
/// running server: a customer is compared in one unit of work, which sees one state of the store, and each page of the
/// whole journal in another one. Customers and entries that are created while it runs may be left out.
///
/// # Errors
/// Only those of the store. A row that cannot be decoded is such an error: the rest is not verified.
pub async fn verify_journal(
    scope: &OperatorScope,
    store: &dyn Store,
    report: &mut (dyn FnMut(JournalDifference) + Send),
) -> Result<JournalSummary> {
    let mut verification = Verification {
        scope: *scope,
        summary: JournalSummary::default(),
        report,
    };
    let mut entries = Batches::<JournalEntry>::of(JournalEntryQuery::All);
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let is_last = verification
            .verify_entries(uow.as_mut(), &mut entries)
            .await;
        uow.rollback().await;
        if is_last? {
            break;
        }
    }
    verification.verify_book();
    let mut customers = Batches::<Customer>::of(CustomerQuery::All);
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let page = customers.next(scope.records(uow.as_mut())).await;
        uow.rollback().await;
        let Some(page) = page? else {
            return Ok(verification.summary);
        };
        for customer in page {
            let mut uow = store.begin(Mode::Read).await?;
            let verified = verification
                .verify_customer(uow.as_mut(), &customer.id)
                .await;
            uow.rollback().await;
            verified?;
        }
    }
}

struct Verification<'r> {
    scope: OperatorScope,
    summary: JournalSummary,
    report: &'r mut (dyn FnMut(JournalDifference) + Send),
}

impl Verification<'_> {
    /// Verifies the next entries of the whole journal. Returns `true` after the last ones.
    async fn verify_entries(
        &mut self,
        uow: &mut dyn UnitOfWork,
        entries: &mut Batches<JournalEntry>,
    ) -> Result<bool> {
        let Some(page) = entries.next(self.scope.records(uow)).await? else {
            return Ok(true);
        };
        let ids: BTreeSet<&str> = page
            .iter()
            .map(|entry| entry.customer_id.as_str())
            .collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let found = self.scope.records::<Customer>(uow).get_many(&ids).await?;
        let known: BTreeSet<&CustomerId> = found.iter().map(|customer| &customer.id).collect();
        for entry in &page {
            self.summary.entries += 1;
            let (customer_id, entry_id) = (entry.customer_id.clone(), entry.id.clone());
            if !known.contains(&customer_id) {
                self.report(JournalDifference::UnknownCustomer {
                    customer_id: customer_id.clone(),
                    entry_id: entry_id.clone(),
                });
            }
            for posting in entry.checked_postings().unwrap_or_default() {
                self.summary.sums.add(&posting);
            }
            if let Err(problem) = entry.entry() {
                self.report(JournalDifference::Entry {
                    customer_id,
                    entry_id,
                    problem,
                });
            }
        }
        Ok(false)
    }

    fn verify_book(&mut self) {
        let turnovers: Vec<_> = self.summary.sums.turnovers().collect();
        for (currency, turnover) in turnovers {
            if !turnover.is_balanced() {
                self.report(JournalDifference::Book {
                    currency,
                    debit: turnover.debit,
                    credit: turnover.credit,
                });
            }
        }
    }

    /// Compares a customer with the journal. Does nothing if it does not exist any more.
    async fn verify_customer(&mut self, uow: &mut dyn UnitOfWork, id: &CustomerId) -> Result<()> {
        let Some(customer) = self.scope.records::<Customer>(uow).find(id).await? else {
            return Ok(());
        };
        self.summary.customers += 1;
        let mut check = CustomerCheck::new(customer.into_inner());
        let mut entries = Batches::of(JournalEntryQuery::Of(id.clone()));
        while let Some(page) = entries.next(self.scope.records(uow)).await? {
            page.iter().for_each(|entry| check.add_entry(entry));
        }
        let mut invoices = Batches::of(InvoiceQuery::Of {
            customer_id: id.clone(),
            status: None,
        });
        while let Some(page) = invoices.next(self.scope.records::<Invoice>(uow)).await? {
            self.summary.invoices += page.len() as u64;
            page.iter().for_each(|invoice| check.add_invoice(invoice));
        }
        let mut credits = Batches::of(CreditGrantQuery::Of(id.clone()));
        while let Some(page) = credits.next(self.scope.records::<CreditGrant>(uow)).await? {
            self.summary.credits += page.len() as u64;
            page.iter().for_each(|credit| check.add_credit(credit));
        }
        check
            .finish()
            .into_iter()
            .for_each(|found| self.report(found));
        Ok(())
    }

    fn report(&mut self, difference: JournalDifference) {
        self.summary.differences += 1;
        (self.report)(difference);
    }
}
