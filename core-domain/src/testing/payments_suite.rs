//! The payments suite: cases that every payment provider must pass.
//!
//! Implement [`PaymentsWorld`] for the provider and call [`run`]. The cases share the provider; each case has a customer
//! of its own.

#![expect(
    clippy::unwrap_used,
    reason = "a case fails with the test that runs it"
)]

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

use crate::billing::{Currency, InvoiceStatus, Money, TestCard};
use crate::kernel::{CustomerId, Entropy, InvoiceId, Timestamp};
use crate::port::{
    Close, CollectOutcome, InvoiceReference, OpKey, PayingCustomer, Payments, PaymentsError,
    ProviderInvoice, PushedInvoice, PushedLine,
};

/// A payment provider in a test.
#[async_trait]
pub trait PaymentsWorld: Send + Sync {
    /// Returns the provider.
    fn payments(&self) -> &dyn Payments;

    /// Returns the source of ids.
    fn entropy(&self) -> &dyn Entropy;

    /// Returns the time of the provider.
    fn now(&self) -> Timestamp;

    /// Advances the time of the provider.
    fn advance(&self, by: Duration);

    /// Makes all further charges of an attached method fail, if the provider allows a test to do so. Returns whether it
    /// does.
    fn decline_charges(&self, method: &str) -> bool;
}

type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// One requirement that every provider must meet.
#[derive(Clone, Copy)]
pub struct Case {
    /// The requirement as a claim.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn PaymentsWorld) -> Running<'a>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        /// Returns all cases.
        #[must_use]
        pub fn cases() -> Vec<Case> {
            vec![$(Case {
                name: stringify!($case),
                run: |world| Box::pin($case(world)),
            }),+]
        }
    };
}

cases! {
    a_repeated_customer_is_the_same_customer,
    a_setup_intent_waits_for_a_card,
    a_card_is_attached_listed_and_detached,
    a_refused_card_cannot_be_attached,
    a_card_of_another_customer_cannot_be_attached,
    an_unknown_method_is_not_found,
    a_pushed_invoice_is_open_and_found_by_both_ids,
    lines_must_add_up_to_the_amount_due,
    a_charge_pays_the_invoice_once,
    a_declined_charge_leaves_the_invoice_open,
    a_charge_that_must_be_confirmed_returns_a_secret,
    a_paid_invoice_cannot_be_cancelled,
    a_cancelled_invoice_cannot_be_charged,
    a_written_off_invoice_can_still_be_paid,
    an_invoice_can_be_paid_in_another_way,
    an_invoice_that_is_pushed_again_after_two_days_is_the_same,
    a_card_can_be_declined_later,
    an_unsigned_webhook_is_refused,
}

/// Runs all cases, one after the other.
///
/// # Panics
/// If the provider fails a case. The name of each case is printed before it runs.
#[expect(
    clippy::print_stdout,
    reason = "shown by the test runner for a failed case"
)]
pub async fn run(world: &dyn PaymentsWorld) {
    for case in cases() {
        println!("case {}", case.name);
        (case.run)(world).await;
    }
}

/// A customer of a case.
struct Payer<'a> {
    world: &'a dyn PaymentsWorld,
    details: PayingCustomer,
    /// The id at the provider.
    id: String,
}

impl<'a> Payer<'a> {
    async fn new(world: &'a dyn PaymentsWorld) -> Self {
        let details = PayingCustomer {
            id: CustomerId::generate(world.now(), world.entropy()),
            platform_id: None,
            email: "ada@example.com".to_owned(),
            name: Some("Ada".to_owned()),
        };
        let key = OpKey::new("cus", details.id.as_str());
        let id = world.payments().ensure_customer(&key, &details).await;
        Self {
            world,
            details,
            id: id.unwrap(),
        }
    }

    fn payments(&self) -> &dyn Payments {
        self.world.payments()
    }

    /// Attaches a test card and returns the id of the method.
    async fn attach(&self, card: TestCard) -> Result<String, PaymentsError> {
        let key = OpKey::new(&self.id, card.method_id());
        let attached = self.payments().attach(&key, card.method_id(), &self.id);
        attached.await.map(|method| method.id)
    }

    fn invoice(&self, amounts: &[i64]) -> PushedInvoice {
        let lines = amounts
            .iter()
            .enumerate()
            .map(|(index, amount)| PushedLine {
                id: format!("line{index}"),
                description: "Growth, 1 to 30 November".to_owned(),
                amount: *amount,
            });
        let due: i64 = amounts.iter().sum();
        PushedInvoice {
            id: InvoiceId::generate(self.world.now(), self.world.entropy()),
            number: None,
            customer: self.id.clone(),
            lines: lines.collect(),
            amount_due: Money::new(due.into(), Currency::USD).unwrap(),
            created_at: self.world.now(),
        }
    }

    async fn push(&self) -> ProviderInvoice {
        let pushed = self.invoice(&[-1_450, 4_950]);
        self.payments().push_invoice(&pushed).await.unwrap()
    }

    async fn collect(
        &self,
        invoice: &ProviderInvoice,
        method: &str,
        attempt: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        let key = OpKey::new(&invoice.id, attempt);
        self.payments().collect(&key, &invoice.id, method).await
    }

    async fn close(&self, invoice: &ProviderInvoice, how: Close) -> Result<(), PaymentsError> {
        let key = OpKey::new(&invoice.id, &format!("{how:?}"));
        self.payments().close(&key, &invoice.id, how).await
    }

    /// Returns an invoice as it is now, found by our id.
    async fn look_up(&self, invoice: &ProviderInvoice) -> ProviderInvoice {
        let reference = InvoiceReference {
            id: invoice.invoice_id.clone().unwrap(),
            customer: self.id.clone(),
            provider_id: None,
            created_at: self.world.now(),
        };
        self.payments().look_up(&reference).await.unwrap().unwrap()
    }
}

fn is_invalid<T>(outcome: Result<T, PaymentsError>) -> bool {
    matches!(outcome, Err(PaymentsError::Invalid(_)))
}

async fn a_repeated_customer_is_the_same_customer(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let key = OpKey::new("cus", payer.details.id.as_str());
    let again = world.payments().ensure_customer(&key, &payer.details).await;
    assert_eq!(again.unwrap(), payer.id);
    let renamed = PayingCustomer {
        name: None,
        ..payer.details.clone()
    };
    let key = OpKey::new("cus", "update");
    let updated = world.payments().update_customer(&key, &payer.id, &renamed);
    updated.await.unwrap();
}

async fn a_setup_intent_waits_for_a_card(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let key = OpKey::new(&payer.id, "setup");
    let intent = world.payments().create_setup_intent(&key, &payer.id).await;
    let intent = intent.unwrap();
    assert_eq!(intent.status, "requires_payment_method");
    assert!(intent.client_secret.expose().starts_with(&intent.id));
}

async fn a_card_is_attached_listed_and_detached(world: &dyn PaymentsWorld) {
    let (payer, payments) = (Payer::new(world).await, world.payments());
    assert_eq!(payments.methods(&payer.id).await.unwrap(), []);
    let id = payer.attach(TestCard::Visa).await.unwrap();
    assert_eq!(payer.attach(TestCard::Visa).await.unwrap(), id);
    let listed = payments.methods(&payer.id).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(payments.method(&id).await.unwrap().as_ref(), listed.first());
    assert_eq!(listed[0].customer.as_deref(), Some(payer.id.as_str()));
    assert_eq!(
        (listed[0].card.brand.as_str(), listed[0].card.last4.as_str()),
        ("visa", "4242")
    );
    let key = OpKey::new(&id, "default");
    payments.set_default(&key, &payer.id, &id).await.unwrap();
    for step in ["detach", "detach again"] {
        let detached = payments.detach(&OpKey::new(&id, step), &id).await;
        assert_eq!(detached.unwrap().customer, None);
    }
    assert_eq!(payments.methods(&payer.id).await.unwrap(), []);
    let key = OpKey::new(&id, "attach");
    assert!(is_invalid(payments.attach(&key, &id, &payer.id).await));
}

async fn a_refused_card_cannot_be_attached(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    for (card, code) in [
        (TestCard::Declined, "generic_decline"),
        (TestCard::InsufficientFunds, "insufficient_funds"),
    ] {
        match payer.attach(card).await {
            Err(PaymentsError::Declined(decline)) => {
                assert_eq!(decline.error_code, "card_declined");
                assert_eq!(decline.decline_code.as_deref(), Some(code));
                assert!(!decline.is_hard);
            }
            other => panic!("{card}: {other:?}"),
        }
    }
}

async fn a_card_of_another_customer_cannot_be_attached(world: &dyn PaymentsWorld) {
    let (payer, other) = (Payer::new(world).await, Payer::new(world).await);
    let id = payer.attach(TestCard::Visa).await.unwrap();
    let key = OpKey::new(&other.id, &id);
    assert!(is_invalid(
        world.payments().attach(&key, &id, &other.id).await
    ));
    let key = OpKey::new(&payer.id, "again");
    let again = world.payments().attach(&key, &id, &payer.id).await;
    assert_eq!(again.unwrap().id, id);
}

async fn an_unknown_method_is_not_found(world: &dyn PaymentsWorld) {
    let payments = world.payments();
    assert_eq!(payments.method("pm_unknown").await.unwrap(), None);
    let key = OpKey::new("pm_unknown", "detach");
    assert!(is_invalid(payments.detach(&key, "pm_unknown").await));
}

async fn a_pushed_invoice_is_open_and_found_by_both_ids(world: &dyn PaymentsWorld) {
    let (payer, payments) = (Payer::new(world).await, world.payments());
    let invoice = payer.invoice(&[-1_450, 4_950]);
    let mut reference = InvoiceReference {
        id: invoice.id.clone(),
        customer: payer.id.clone(),
        provider_id: None,
        created_at: invoice.created_at,
    };
    assert_eq!(payments.look_up(&reference).await.unwrap(), None);
    let pushed = payments.push_invoice(&invoice).await.unwrap();
    assert_eq!(pushed.status, InvoiceStatus::Open);
    assert_eq!((pushed.amount_due, pushed.currency), (3_500, Currency::USD));
    assert_eq!(pushed.invoice_id.as_ref(), Some(&invoice.id));
    assert_eq!(payments.push_invoice(&invoice).await.unwrap(), pushed);
    assert_eq!(
        payments.look_up(&reference).await.unwrap().as_ref(),
        Some(&pushed)
    );
    reference.provider_id = Some(pushed.id.clone());
    assert_eq!(payments.look_up(&reference).await.unwrap(), Some(pushed));
}

async fn lines_must_add_up_to_the_amount_due(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let mut invoice = payer.invoice(&[4_950]);
    invoice.amount_due = Money::new(3_500, Currency::USD).unwrap();
    assert!(is_invalid(world.payments().push_invoice(&invoice).await));
}

async fn a_charge_pays_the_invoice_once(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::Visa).await.unwrap();
    let invoice = payer.push().await;
    for _ in 0..2 {
        let outcome = payer.collect(&invoice, &method, "pay:1").await.unwrap();
        assert_eq!(outcome, CollectOutcome::Paid);
    }
    assert!(is_invalid(payer.collect(&invoice, &method, "pay:2").await));
    let paid = payer.look_up(&invoice).await;
    assert_eq!(paid.status, InvoiceStatus::Paid);
    assert_eq!(paid.last_charge, Some(CollectOutcome::Paid));
}

async fn a_declined_charge_leaves_the_invoice_open(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let declined = payer.attach(TestCard::DeclinedLater).await.unwrap();
    let valid = payer.attach(TestCard::Visa).await.unwrap();
    let invoice = payer.push().await;
    for _ in 0..2 {
        let outcome = payer.collect(&invoice, &declined, "pay:1").await.unwrap();
        let CollectOutcome::Declined(decline) = &outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(decline.decline_code.as_deref(), Some("generic_decline"));
    }
    let open = payer.look_up(&invoice).await;
    assert_eq!(open.status, InvoiceStatus::Open);
    assert!(matches!(
        open.last_charge,
        Some(CollectOutcome::Declined(_))
    ));
    let outcome = payer.collect(&invoice, &valid, "pay:2").await.unwrap();
    assert_eq!(outcome, CollectOutcome::Paid);
}

async fn a_charge_that_must_be_confirmed_returns_a_secret(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::AuthenticationRequired).await;
    let (method, invoice) = (method.unwrap(), payer.push().await);
    let outcome = payer.collect(&invoice, &method, "pay:1").await.unwrap();
    let CollectOutcome::ActionRequired { client_secret } = &outcome else {
        panic!("{outcome:?}");
    };
    assert!(client_secret.expose().starts_with("pi_"));
    let open = payer.look_up(&invoice).await;
    assert_eq!(open.status, InvoiceStatus::Open);
    let is_pending = matches!(
        open.last_charge,
        Some(CollectOutcome::ActionRequired { .. })
    );
    assert!(is_pending, "{open:?}");
}

async fn a_paid_invoice_cannot_be_cancelled(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::Visa).await.unwrap();
    let invoice = payer.push().await;
    payer.collect(&invoice, &method, "pay:1").await.unwrap();
    assert!(is_invalid(payer.close(&invoice, Close::Void).await));
    assert!(is_invalid(
        payer.close(&invoice, Close::Uncollectible).await
    ));
}

async fn a_cancelled_invoice_cannot_be_charged(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::Visa).await.unwrap();
    let invoice = payer.push().await;
    payer.close(&invoice, Close::Void).await.unwrap();
    payer.close(&invoice, Close::Void).await.unwrap();
    assert!(is_invalid(payer.collect(&invoice, &method, "pay:1").await));
    let void = payer.look_up(&invoice).await;
    assert_eq!((void.status, void.last_charge), (InvoiceStatus::Void, None));
}

async fn a_written_off_invoice_can_still_be_paid(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::Visa).await.unwrap();
    let invoice = payer.push().await;
    payer.close(&invoice, Close::Uncollectible).await.unwrap();
    let status = payer.look_up(&invoice).await.status;
    assert_eq!(status, InvoiceStatus::Uncollectible);
    let outcome = payer.collect(&invoice, &method, "pay:1").await.unwrap();
    assert_eq!(outcome, CollectOutcome::Paid);
}

async fn an_invoice_can_be_paid_in_another_way(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let invoice = payer.push().await;
    payer.close(&invoice, Close::PaidOutOfBand).await.unwrap();
    payer.close(&invoice, Close::PaidOutOfBand).await.unwrap();
    let paid = payer.look_up(&invoice).await;
    assert_eq!(paid.status, InvoiceStatus::Paid);
}

async fn an_invoice_that_is_pushed_again_after_two_days_is_the_same(world: &dyn PaymentsWorld) {
    let (payer, payments) = (Payer::new(world).await, world.payments());
    let invoice = payer.invoice(&[2_900]);
    let pushed = payments.push_invoice(&invoice).await.unwrap();
    world.advance(Duration::from_hours(48));
    assert_eq!(payments.push_invoice(&invoice).await.unwrap(), pushed);
}

async fn a_card_can_be_declined_later(world: &dyn PaymentsWorld) {
    let payer = Payer::new(world).await;
    let method = payer.attach(TestCard::Visa).await.unwrap();
    if !world.decline_charges(&method) {
        return;
    }
    let invoice = payer.push().await;
    let outcome = payer.collect(&invoice, &method, "pay:1").await.unwrap();
    assert!(
        matches!(outcome, CollectOutcome::Declined(_)),
        "{outcome:?}"
    );
}

async fn an_unsigned_webhook_is_refused(world: &dyn PaymentsWorld) {
    let verified = world.payments().verify_webhook(b"{}", "", world.now());
    assert!(verified.is_err());
}
