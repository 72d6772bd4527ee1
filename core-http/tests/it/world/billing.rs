//! Records of billing, and the rules that hold for all of them at any time.

use std::sync::Arc;

use core_domain::access::authorize_operator;
use core_domain::billing::usage::{BilledMetric, UsagePeriod, UsagePeriodEvent};
use core_domain::billing::{
    CreditGrant, CreditGrantQuery, Currency, Customer, CustomerQuery, JournalDifference,
    LedgerCharge, LedgerChargeQuery, LedgerOutcome, Metric, Period, TrialBalance,
};
use core_domain::kernel::{
    Context, InvoiceId, PlatformId, Record, Stored, SubscriptionId, Timestamp, UsagePeriodId,
};
use core_domain::port::{Mode, Payments, Persisted, Within};
use core_domain::testing::RecordKey;
use core_domain::use_case::billing::advance_job::{DueCustomers, queue_due};
use core_domain::use_case::billing::follow::follow_changes;
use core_domain::use_case::billing::journal_check::verify_journal;
use core_domain::use_case::billing::usage_invoice::close_usage;
use serde_json::{Value, json};

use super::{Answer, World, operator, page_links};

/// The most records of a kind that a test creates.
const MAX_RECORDS: u32 = 10_000;

impl World {
    /// Creates the customer of a platform and returns its id.
    pub(crate) async fn customer(&self, platform: &str) -> String {
        let body = json!({ "platformId": platform, "email": "billing@example.org" });
        let created = self.billing.post(&operator(), "/customers", body).await;
        created.expect(201).id()
    }

    /// Attaches a test card to a customer and returns the id of the payment method.
    pub(crate) async fn attach_card(&self, customer: &str, card: &str) -> String {
        let path = format!("/payment-methods/{card}/attach");
        let body = json!({ "customerId": customer });
        let attached = self.billing.post(&operator(), &path, body).await;
        attached.expect(200).id()
    }

    /// Attaches a test card to a customer, makes it the default, and returns the id of the payment method.
    pub(crate) async fn use_card(&self, customer: &str, card: &str) -> String {
        let method = self.attach_card(customer, card).await;
        let path = format!("/payment-methods/{method}/set-default");
        let body = json!({ "customerId": customer });
        let set = self
            .billing
            .post(&operator(), &path, body)
            .await
            .expect(200);
        assert_eq!(set.json["isDefault"], true);
        method
    }

    /// Returns the ids of the payment methods of a platform, the default first.
    pub(crate) async fn attached_cards(&self, platform: &str) -> Vec<String> {
        let path = format!("/payment-methods?platformId={platform}");
        let listed = self.billing.get(&operator(), &path).await.expect(200);
        let methods = listed.json["data"].as_array().unwrap().iter();
        methods
            .map(|method| method["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Detaches a payment method.
    pub(crate) async fn detach(&self, method: &str) {
        let path = format!("/payment-methods/{method}/detach");
        let detached = self.billing.post(&operator(), &path, json!({})).await;
        let _ = detached.expect(200);
    }

    /// Subscribes a platform to a monthly plan without a trial.
    pub(crate) async fn subscribe(&self, platform: &str, tier: &str) -> Answer {
        let body = json!({ "platformId": platform, "tier": tier, "trialDays": 0,
            "billingEmail": "billing@example.org" });
        self.billing.post(&operator(), "/subscription", body).await
    }

    /// Changes the plan of a platform, as an operator.
    pub(crate) async fn change_tier(&self, platform: &str, tier: &str, more: Value) -> Answer {
        let mut body = json!({ "platformId": platform, "tier": tier });
        for (field, value) in more.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let path = "/subscription/change-tier";
        self.billing.post(&operator(), path, body).await
    }

    /// Returns the subscription of a platform.
    pub(crate) async fn subscription_of(&self, platform: &str) -> Value {
        let path = format!("/subscription?platformId={platform}");
        self.billing.get(&operator(), &path).await.expect(200).json
    }

    /// Returns the newest invoice of a platform's subscription with its lines.
    pub(crate) async fn last_invoice(&self, platform: &str) -> Value {
        let subscription = self.subscription_of(platform).await;
        let id = subscription["latestInvoiceId"].as_str().unwrap();
        let path = format!("/invoices/{id}");
        self.billing.get(&operator(), &path).await.expect(200).json
    }

    /// Sets the clock to an instant in RFC 3339 form.
    pub(crate) fn set_time(&self, at: &str) {
        self.clock.set(Timestamp::parse_rfc3339(at).unwrap());
    }

    /// Sets the clock to an instant in RFC 3339 form, and makes what is due in billing by then.
    pub(crate) async fn bill_until(&self, at: &str) -> DueCustomers {
        self.set_time(at);
        self.bill().await
    }

    /// Makes what is due in billing now. Returns the customers for whom something is still due.
    pub(crate) async fn bill(&self) -> DueCustomers {
        let cx = Context::system(Arc::clone(&self.app.entropy));
        let store = self.app.store.as_ref();
        self.seal().await;
        follow_changes(&cx, store, &self.billing_parts)
            .await
            .unwrap();
        close_usage(&cx, store, &self.billing_parts).await.unwrap();
        for _ in 0..100 {
            self.run_timers().await;
            self.run_jobs().await;
            let due = self.queue_billing().await;
            if due.running == 0 {
                return due;
            }
        }
        panic!("billing is still due after 100 runs");
    }

    /// Queues the jobs for what is due in billing now.
    pub(crate) async fn queue_billing(&self) -> DueCustomers {
        let cx = Context::system(Arc::clone(&self.app.entropy));
        let store = self.app.store.as_ref();
        queue_due(&cx, store, &self.billing_parts).await.unwrap()
    }

    /// Returns the invoices of a platform with their lines, the oldest first.
    pub(crate) async fn invoices(&self, platform: &str) -> Vec<Value> {
        let path = format!("/invoices?platformId={platform}&limit=100");
        let listed = self.billing.get(&operator(), &path).await.expect(200);
        let mut invoices = Vec::new();
        for invoice in listed.json["data"].as_array().unwrap().iter().rev() {
            let path = format!("/invoices/{}", invoice["id"].as_str().unwrap());
            invoices.push(self.billing.get(&operator(), &path).await.expect(200).json);
        }
        invoices
    }

    /// Returns how often the ledger has charged the invoices of a platform.
    pub(crate) async fn count_charges(&self, platform: &str) -> usize {
        let mut charges = 0;
        for invoice in self.invoices(platform).await {
            let id = InvoiceId::parse(invoice["id"].as_str().unwrap()).unwrap();
            let of_invoice = LedgerChargeQuery::Of(id);
            charges += self.all::<LedgerCharge>(&of_invoice).await.len();
        }
        charges
    }

    /// Returns the amounts that the payment provider has charged for an invoice: one if it is paid.
    pub(crate) async fn charged_amounts(&self, invoice: &Value) -> Vec<i64> {
        let Some(fake) = &self.stripe else {
            return self.charged_by_ledger(invoice).await;
        };
        let at_stripe = fake.invoices().into_iter();
        let own = at_stripe.filter(|other| other["metadata"]["invoiceId"] == invoice["id"]);
        let paid = own.map(|other| other["amount_paid"].as_i64().unwrap());
        paid.filter(|amount| *amount != 0).collect()
    }

    async fn charged_by_ledger(&self, invoice: &Value) -> Vec<i64> {
        let id = InvoiceId::parse(invoice["id"].as_str().unwrap()).unwrap();
        let charges = self.all::<LedgerCharge>(&LedgerChargeQuery::Of(id)).await;
        let is_paid = |charge: &Stored<LedgerCharge>| charge.outcome == LedgerOutcome::Paid;
        let count = charges.into_iter().filter(is_paid).count();
        let Some(id) = invoice["providerId"].as_str() else {
            return Vec::new();
        };
        let pushed = self.payments.invoice(id).await.unwrap().unwrap();
        vec![pushed.amount_due; count]
    }

    /// Returns the token in the address of the page of an invoice that can be paid.
    pub(crate) fn pay_token(&self, invoice: &Value) -> String {
        let url = invoice["hostedInvoiceUrl"].as_str().unwrap();
        url.rsplit_once('/').unwrap().1.to_owned()
    }

    /// Returns the token in the address of the page of an invoice.
    pub(crate) fn pay_token_of(&self, invoice: &str) -> String {
        let invoice = InvoiceId::parse(invoice).unwrap();
        page_links().pay_token(&invoice)
    }

    /// Opens the portal of a platform, and returns the secret in its address.
    pub(crate) async fn portal_link(&self, platform: &str) -> String {
        let body = json!({ "platformId": platform, "returnUrl": "https://app.example.org/" });
        let opened = self.billing.post(&operator(), "/portal", body).await;
        let url = opened.expect(201).text("url").to_owned();
        url.rsplit_once('/').unwrap().1.to_owned()
    }

    /// Follows a link to the portal, and returns the secret in the cookie.
    pub(crate) async fn enter_portal(&self, link: &str) -> String {
        let path = format!("/portal/{link}");
        let entered = self
            .billing
            .get(&core_domain::kernel::Caller::Anonymous, &path)
            .await
            .expect(303);
        let cookie = entered.header("set-cookie").to_owned();
        let (_, rest) = cookie.split_once('=').unwrap();
        rest.split_once(';').unwrap().0.to_owned()
    }

    /// Stores a closed usage period of October 2026, whose price no invoice has.
    pub(crate) async fn owe_usage(&self, platform: &str, subscription: &str, amount: i64) {
        let start = Timestamp::parse_rfc3339("2026-10-01T00:00:00Z").unwrap();
        let end = Timestamp::parse_rfc3339("2026-11-01T00:00:00Z").unwrap();
        let id = UsagePeriodId::parse(&format!("{platform}:{start}")).unwrap();
        let platform = PlatformId::parse(platform).unwrap();
        let usd = Currency::parse("usd").unwrap();
        let mut period = UsagePeriod::new(id, platform, Period::new(start, end).unwrap(), usd);
        period.subscription_id = SubscriptionId::parse(subscription);
        period.apply(UsagePeriodEvent::End).unwrap();
        period.apply(UsagePeriodEvent::Close).unwrap();
        period.is_invoice_due = true;
        period.billed = vec![BilledMetric {
            metric: Metric::Requests,
            quantity: 1_000_000,
            included: 0,
            overage: 1_000_000,
            amount,
        }];
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let periods = uow.repositories(RecordKey::for_tests()).usage_periods();
        periods.insert(period).await.unwrap();
        uow.commit().await.unwrap();
    }

    /// Returns the first records of a query, of any tenant.
    pub(crate) async fn all<R: Persisted + Record>(&self, query: &R::Query) -> Vec<Stored<R>> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let repository = R::repository(uow.repositories(RecordKey::for_tests()));
        let found = repository.list(Within::Installation, query, MAX_RECORDS);
        found.await.unwrap()
    }

    /// Asserts that the journal balances, and that balances, credits and invoices are projections of it. Returns the
    /// sums of all accounts.
    pub(crate) async fn assert_books_balance(&self) -> TrialBalance {
        let cx = Context::system(Arc::clone(&self.app.entropy));
        let scope = authorize_operator(&cx).unwrap();
        let mut report = |found: JournalDifference| panic!("{found}");
        let verified = verify_journal(&scope, self.app.store.as_ref(), &mut report).await;
        for customer in self.all::<Customer>(&CustomerQuery::All).await {
            let credits = CreditGrantQuery::Of(customer.id.clone());
            let credits = self.all::<CreditGrant>(&credits).await;
            assert!(credits.iter().all(|credit| credit.remaining >= 0));
        }
        verified.unwrap().sums
    }
}
