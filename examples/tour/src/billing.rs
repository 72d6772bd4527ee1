//! The chapter about billing: subscribes the platform, meters it, upgrades it, and shows the invoice.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::tour::{Tour, text};

/// Maximum number of polls for the usage of the gateway, which reports it every ten seconds.
const MAX_POLLS: u32 = 60;

/// The time between two polls.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

impl Tour<'_> {
    /// Subscribes the platform without a trial, so that there is something to pay. Only operators can skip the trial.
    pub(crate) async fn subscribe(&self) -> Result<(), Failure> {
        let body = json!({ "platformId": self.platform, "tier": "starter", "trialDays": 0,
            "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
        let path = "/api/v1/billing/subscription";
        let created = self.post_as(&self.at.service_key, path, &body, 201).await?;
        let created = created.json();
        let (tier, status) = (text(&created, "tier")?, text(&created, "status")?);
        self.show.line(&format!("{tier}: {status}"));
        if status != "active" {
            return Err(Failure(format!("the subscription is {status}")));
        }
        self.show_invoice(&created).await.map(drop)
    }

    /// Waits until the gateway has reported the requests of the tour.
    pub(crate) async fn show_usage(&self) -> Result<(), Failure> {
        let path = format!("/api/v1/billing/usage/current?platformId={}", self.platform);
        for _ in 0..MAX_POLLS {
            let usage = self.get(&path, 200).await?.json();
            let metrics = usage["metrics"].as_array().into_iter().flatten();
            let used: Vec<_> = metrics.filter(|metric| metric["quantity"] != 0).collect();
            if used.iter().any(|metric| metric["metric"] == "requests") {
                for metric in used {
                    let (name, unit) = (text(metric, "metric")?, text(metric, "unit")?);
                    let (quantity, included) = (&metric["quantity"], &metric["included"]);
                    self.show
                        .line(&format!("{name}: {quantity} of {included} ({unit})"));
                }
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Failure("the gateway has reported no requests".to_owned()))
    }

    /// Shows the cost of an upgrade, and pays exactly that.
    pub(crate) async fn upgrade(&self) -> Result<(), Failure> {
        let path = format!(
            "/api/v1/billing/subscription/proration-preview?tier=growth&platformId={}",
            self.platform
        );
        let preview = self.get(&path, 200).await?.json();
        let due = preview["amountDueNow"].clone();
        self.show.line(&format!("to pay now: {}", amount(&due)));
        let body = json!({ "platformId": self.platform, "tier": "growth",
            "prorationDate": preview["prorationDate"] });
        let path = "/api/v1/billing/subscription/change-tier";
        let changed = self.post_as(&self.session, path, &body, 200).await?.json();
        self.show
            .line(&format!("tier: {}", text(&changed, "tier")?));
        let invoice = self.show_invoice(&changed).await?;
        if invoice["amountPaid"] != due {
            return Err(Failure(format!("paid {}", invoice["amountPaid"])));
        }
        Ok(())
    }

    /// Shows the newest invoice of a subscription, and returns it.
    async fn show_invoice(&self, subscription: &Value) -> Result<Value, Failure> {
        let id = text(subscription, "latestInvoiceId")?;
        let path = format!("/api/v1/billing/invoices/{id}");
        let invoice = self.get(&path, 200).await?.json();
        let (number, status) = (text(&invoice, "number")?, text(&invoice, "status")?);
        let total = amount(&invoice["total"]);
        self.show
            .line(&format!("invoice {number}: {total}, {status}"));
        for line in invoice["lines"].as_array().into_iter().flatten() {
            let (description, amount) = (text(line, "description")?, amount(&line["amount"]));
            self.show.line(&format!("  {amount:>10}  {description}"));
        }
        Ok(invoice)
    }
}

/// Returns an amount in minor units of the standard plans' currency for people.
fn amount(minor: &Value) -> String {
    let minor = minor.as_i64().unwrap_or_default();
    let sign = if minor < 0 { "-" } else { "" };
    let minor = minor.unsigned_abs();
    format!("{sign}{}.{:02} USD", minor / 100, minor % 100)
}
