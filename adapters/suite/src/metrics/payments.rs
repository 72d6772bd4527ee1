//! The metrics of the payment provider, as a decorator.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::billing::PaymentProvider;
use core_domain::kernel::Timestamp;
use core_domain::port::{
    Close, CollectOutcome, InvoiceReference, LostDispute, OpKey, PayingCustomer, Payments,
    PaymentsError, ProviderEvent, ProviderInvoice, ProviderMethod, ProviderRefund,
    ProviderSetupIntent, PushedInvoice, WebhookError,
};
use core_http::kernel::metrics::{Buckets, Counter, Counters, Definition, Histograms, Metrics};
use tokio::time::Instant;

const CALLS: Definition<2> = Definition {
    name: "core_payment_calls_total",
    help: "Calls of the payment provider, by outcome.",
    labels: ["operation", "outcome"],
};

const DURATION: Definition<1> = Definition {
    name: "core_payment_call_duration_seconds",
    help: "Duration of a call of the payment provider.",
    labels: ["operation"],
};

const CHARGES: Definition<1> = Definition {
    name: "core_billing_charges_total",
    help: "Charges of invoices, by outcome. `failed`: the payment provider gave no usable response.",
    labels: ["outcome"],
};

/// The counters of charges.
#[derive(Debug)]
struct Charges {
    paid: Counter,
    declined: Counter,
    action_required: Counter,
    processing: Counter,
    failed: Counter,
}

impl Charges {
    fn count(&self, outcome: &Result<CollectOutcome, PaymentsError>) {
        let counter = match outcome {
            Ok(CollectOutcome::Paid) => &self.paid,
            Ok(CollectOutcome::Declined(_)) | Err(PaymentsError::Declined(_)) => &self.declined,
            Ok(CollectOutcome::ActionRequired { .. }) => &self.action_required,
            Ok(CollectOutcome::Processing) => &self.processing,
            Err(_) => &self.failed,
        };
        counter.increment();
    }
}

/// A payment provider whose calls are counted.
#[derive(Debug)]
pub(crate) struct MeteredPayments {
    payments: Arc<dyn Payments>,
    calls: Counters<2>,
    duration: Histograms<1>,
    charges: Charges,
}

/// Returns the value of the label `outcome` of a call.
const fn outcome_of<T>(result: &Result<T, PaymentsError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(PaymentsError::Unavailable(_)) => "unavailable",
        Err(PaymentsError::Throttled(_)) => "throttled",
        Err(PaymentsError::Unknown(_)) => "unknown",
        Err(PaymentsError::Conflict) => "conflict",
        Err(PaymentsError::Declined(_)) => "declined",
        Err(PaymentsError::Invalid(_)) => "invalid",
        Err(PaymentsError::Unauthorized(_)) => "unauthorized",
        Err(PaymentsError::Disabled(_)) => "disabled",
        Err(_) => "other",
    }
}

impl MeteredPayments {
    /// Creates a provider that counts the calls of `payments`.
    pub(crate) fn new(payments: Arc<dyn Payments>, metrics: &Metrics) -> Self {
        let charges = metrics.counters(&CHARGES);
        let charge = |outcome| charges.with([outcome]);
        Self {
            payments,
            calls: metrics.counters(&CALLS),
            duration: metrics.histograms(&DURATION, Buckets::BACKGROUND),
            charges: Charges {
                paid: charge("paid"),
                declined: charge("declined"),
                action_required: charge("action-required"),
                processing: charge("processing"),
                failed: charge("failed"),
            },
        }
    }

    /// Counts a call. A call to another system takes so long that the look-up of its series does not matter.
    async fn count<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, PaymentsError>> + Send,
    ) -> Result<T, PaymentsError> {
        let began = Instant::now();
        let result = call.await;
        self.duration.with([operation]).record(began.elapsed());
        self.calls
            .with([operation, outcome_of(&result)])
            .increment();
        result
    }
}

#[async_trait]
impl Payments for MeteredPayments {
    fn provider(&self) -> PaymentProvider {
        self.payments.provider()
    }

    fn is_live(&self) -> bool {
        self.payments.is_live()
    }

    fn publishable_key(&self) -> Option<String> {
        self.payments.publishable_key()
    }

    async fn ensure_customer(
        &self,
        key: &OpKey,
        customer: &PayingCustomer,
    ) -> Result<String, PaymentsError> {
        let call = self.payments.ensure_customer(key, customer);
        self.count("ensure-customer", call).await
    }

    async fn update_customer(
        &self,
        key: &OpKey,
        provider_id: &str,
        customer: &PayingCustomer,
    ) -> Result<(), PaymentsError> {
        let call = self.payments.update_customer(key, provider_id, customer);
        self.count("update-customer", call).await
    }

    async fn create_setup_intent(
        &self,
        key: &OpKey,
        customer: &str,
    ) -> Result<ProviderSetupIntent, PaymentsError> {
        let call = self.payments.create_setup_intent(key, customer);
        self.count("create-setup-intent", call).await
    }

    async fn methods(&self, customer: &str) -> Result<Vec<ProviderMethod>, PaymentsError> {
        self.count("methods", self.payments.methods(customer)).await
    }

    async fn method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError> {
        self.count("method", self.payments.method(id)).await
    }

    async fn attach(
        &self,
        key: &OpKey,
        method: &str,
        customer: &str,
    ) -> Result<ProviderMethod, PaymentsError> {
        let call = self.payments.attach(key, method, customer);
        self.count("attach", call).await
    }

    async fn detach(&self, key: &OpKey, method: &str) -> Result<ProviderMethod, PaymentsError> {
        self.count("detach", self.payments.detach(key, method))
            .await
    }

    async fn set_default(
        &self,
        key: &OpKey,
        customer: &str,
        method: &str,
    ) -> Result<(), PaymentsError> {
        let call = self.payments.set_default(key, customer, method);
        self.count("set-default", call).await
    }

    async fn push_invoice(
        &self,
        invoice: &PushedInvoice,
    ) -> Result<ProviderInvoice, PaymentsError> {
        self.count("push-invoice", self.payments.push_invoice(invoice))
            .await
    }

    async fn collect(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        method: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        let call = self.payments.collect(key, provider_invoice, method);
        let outcome = self.count("collect", call).await;
        self.charges.count(&outcome);
        outcome
    }

    async fn close(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        how: Close,
    ) -> Result<(), PaymentsError> {
        let call = self.payments.close(key, provider_invoice, how);
        self.count("close", call).await
    }

    async fn look_up(
        &self,
        invoice: &InvoiceReference,
    ) -> Result<Option<ProviderInvoice>, PaymentsError> {
        self.count("look-up", self.payments.look_up(invoice)).await
    }

    async fn invoice(&self, id: &str) -> Result<Option<ProviderInvoice>, PaymentsError> {
        self.count("invoice", self.payments.invoice(id)).await
    }

    async fn refunds(&self, id: &str) -> Result<Vec<ProviderRefund>, PaymentsError> {
        self.count("refunds", self.payments.refunds(id)).await
    }

    async fn lost_dispute(&self, event: &str) -> Result<Option<LostDispute>, PaymentsError> {
        self.count("lost-dispute", self.payments.lost_dispute(event))
            .await
    }

    async fn default_method(&self, customer: &str) -> Result<Option<String>, PaymentsError> {
        let call = self.payments.default_method(customer);
        self.count("default-method", call).await
    }

    async fn portal(
        &self,
        customer: &str,
        return_url: &str,
    ) -> Result<Option<String>, PaymentsError> {
        let call = self.payments.portal(customer, return_url);
        self.count("portal", call).await
    }

    async fn events_since(&self, since: Timestamp) -> Result<Vec<ProviderEvent>, PaymentsError> {
        self.count("events-since", self.payments.events_since(since))
            .await
    }

    fn verify_webhook(
        &self,
        body: &[u8],
        signature: &str,
        now: Timestamp,
    ) -> Result<ProviderEvent, WebhookError> {
        self.payments.verify_webhook(body, signature, now)
    }
}

#[cfg(test)]
mod tests {
    use core_domain::port::{Cause, Decline};
    use core_domain::testing::MockPayments;

    use super::*;

    fn decline() -> Decline {
        Decline {
            error_code: "card_declined".to_owned(),
            decline_code: None,
            is_hard: false,
        }
    }

    #[tokio::test]
    async fn charges_and_calls_are_counted_by_outcome() {
        let outcomes: Vec<(Result<CollectOutcome, PaymentsError>, &str, &str)> = vec![
            (Ok(CollectOutcome::Paid), "paid", "ok"),
            (Ok(CollectOutcome::Declined(decline())), "declined", "ok"),
            (Ok(CollectOutcome::Processing), "processing", "ok"),
            (
                Err(PaymentsError::Declined(decline())),
                "declined",
                "declined",
            ),
            (
                Err(PaymentsError::Unavailable(Cause::new("down"))),
                "failed",
                "unavailable",
            ),
            (
                Err(PaymentsError::Unknown(Cause::new("lost"))),
                "failed",
                "unknown",
            ),
        ];
        for (outcome, charge, call) in outcomes {
            let mut provider = MockPayments::new();
            provider
                .expect_collect()
                .return_once(move |_, _, _| outcome);
            let metrics = Metrics::new();
            let payments = MeteredPayments::new(Arc::new(provider), &metrics);
            let key = OpKey::new("invoice", "charge");
            let _ = payments.collect(&key, "invoice", "method").await;
            let text = metrics.render();
            for line in [
                format!("core_billing_charges_total{{outcome=\"{charge}\"}} 1"),
                format!("core_payment_calls_total{{operation=\"collect\",outcome=\"{call}\"}} 1"),
                "core_payment_call_duration_seconds_count{operation=\"collect\"} 1".to_owned(),
            ] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
        }
    }
}
