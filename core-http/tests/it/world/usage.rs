//! Metered usage: reports events, and moves usage periods as the billing jobs do.

use core_domain::billing::usage::UsagePeriod;
use core_domain::kernel::{Context, Stored, SubscriptionId};
use core_domain::port::transact;
use core_domain::use_case::billing::usage_period;
use serde_json::{Value, json};

use super::{Answer, World, billing_over, operator};

/// The most usage periods that one step moves.
const MAX_PERIODS: u32 = 1_000;

/// Returns an event of the source `test`, without a time.
pub(crate) fn usage_event(platform: &str, id: &str, metric: &str, quantity: i64) -> Value {
    json!({ "id": id, "source": "test", "platformId": platform, "metric": metric, "quantity": quantity })
}

/// Returns an object with the fields of another one.
pub(crate) fn merged(mut object: Value, fields: Value) -> Value {
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            object[name] = value;
        }
    }
    object
}

impl World {
    /// Reports events. An event without a time has the time of the clock.
    pub(crate) async fn report_usage(&self, events: Vec<Value>) -> Answer {
        let now = core_domain::kernel::Clock::now(self.clock.as_ref());
        let timed = |event| merged(json!({ "time": now }), event);
        let events: Vec<_> = events.into_iter().map(timed).collect();
        let body = json!({ "events": events });
        self.billing
            .post(&operator(), "/internal/usage/events", body)
            .await
    }

    /// Reports that a platform used this quantity now.
    pub(crate) async fn use_metric(&self, platform: &str, id: &str, metric: &str, quantity: i64) {
        let event = usage_event(platform, id, metric, quantity);
        let reported = self.report_usage(vec![event]).await.expect(200);
        assert_eq!(reported.json["accepted"], 1, "{}", reported.json);
    }

    /// Returns a resource of the usage of a platform.
    pub(crate) async fn usage_of(&self, platform: &str, path: &str) -> Value {
        let and = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{and}platformId={platform}");
        self.billing.get(&operator(), &path).await.expect(200).json
    }

    /// Ends the usage periods whose time has passed, and closes those that were collected for 24 hours. Returns the closed ones.
    pub(crate) async fn move_usage_periods(&self) -> Vec<Stored<UsagePeriod>> {
        let billing = billing_over(&self.app);
        let billing = billing.as_ref();
        let moved = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                usage_period::end_due(uow, MAX_PERIODS).await?;
                usage_period::close_due(uow, billing, MAX_PERIODS).await
            })
        });
        moved.await.unwrap()
    }

    /// Invoices the closed usage of a platform, as a boundary of its subscription does. Returns the types and amounts of the
    /// lines.
    pub(crate) async fn invoice_usage(&self, subscription: &str) -> Vec<(String, i64)> {
        let billing = billing_over(&self.app);
        let billing = billing.as_ref();
        let cx = &Context::system(self.app.entropy.clone());
        let id = &SubscriptionId::parse(subscription).unwrap();
        let invoice = &core_domain::kernel::InvoiceId::parse("an-invoice").unwrap();
        let invoiced = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let pending = usage_period::pending_lines(cx, uow, billing, id).await?;
                let lines = pending.lines.clone();
                usage_period::mark_invoiced(uow, pending, invoice).await?;
                Ok(lines)
            })
        });
        let lines = invoiced.await.unwrap();
        let line = |line: &core_domain::billing::InvoiceLine| (line.kind.to_string(), line.amount);
        lines.iter().map(line).collect()
    }
}
