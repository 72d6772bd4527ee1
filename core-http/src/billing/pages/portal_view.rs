//! The content of the portal.

use core_domain::billing::usage::{MeteredUsage, UsageSnapshot};
use core_domain::billing::{
    Customer, Interval, Invoice, PaymentMethod, PaymentProvider, Subscription, SubscriptionStatus,
};
use core_domain::kernel::{Error, Result, Stored};
use core_domain::registry::Tier;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::change::{ChangePreview, EffectiveAt};
use maud::{Markup, html};

use super::layout::{FORMS, PORTAL, alert, amount, capital_words, day, group_digits};
use super::pay::TEST_CARDS;

/// The records that the portal shows.
pub(super) struct Content {
    pub(super) subscription: Option<Stored<Subscription>>,
    pub(super) preview: Option<Result<ChangePreview>>,
    pub(super) usage: UsageSnapshot,
    pub(super) invoices: Vec<Stored<Invoice>>,
}

impl Content {
    /// Returns the subscription if it has not ended.
    pub(super) fn live(&self) -> Option<&Stored<Subscription>> {
        let subscription = self.subscription.as_ref();
        subscription.filter(|subscription| subscription.status.is_live())
    }
}

/// The values that the portal shows.
pub(super) struct PortalView<'a> {
    pub(super) billing: &'a Billing,
    pub(super) customer: &'a Customer,
    pub(super) return_url: &'a str,
    pub(super) content: &'a Content,
    pub(super) methods: &'a [PaymentMethod],
    /// The plan that the customer has chosen to see its cost, if any.
    pub(super) chosen_tier: Option<Tier>,
    /// The length of a period of that plan, if the customer has chosen one.
    pub(super) chosen_interval: Option<Interval>,
}

impl PortalView<'_> {
    pub(super) fn render(&self) -> Markup {
        html! {
            p.no-print { a href=(self.return_url) rel="noreferrer" { "Back" } }
            p.hint { (self.customer.email.as_str()) }
            (self.plan())
            (self.usage())
            (self.cards())
            (self.invoices())
        }
    }

    fn plan(&self) -> Markup {
        let Some(subscription) = self.content.live() else {
            return html! { h2 { "Plan" } p { "There is no subscription." } };
        };
        let price = amount(subscription.amount, subscription.currency);
        html! {
            h2 { "Plan" }
            dl {
                dt { "Plan" } dd { (capital_words(subscription.tier.as_str())) ", " (price) " per " (subscription.interval) }
                dt { "Status" } dd { (capital_words(subscription.status.as_str())) }
                dt { "Current period" }
                dd { (day(subscription.current_period_start)) " to " (day(subscription.current_period_end)) }
                @if let Some(change) = &subscription.pending_change {
                    dt { "Planned" } dd { (capital_words(change.tier.as_str())) " from " (day(change.effective_at)) }
                }
                @if let Some(migration) = &subscription.migration {
                    dt { "New terms" } dd { "with the first period that begins on " (day(migration.not_before)) " or later" }
                }
                @if let Some(at) = subscription.cancel_at { dt { "Ends" } dd { (day(at)) } }
            }
            @if let Some(preview) = &self.content.preview {
                (preview_part(preview, self.interval(subscription)))
            }
            @if is_changeable(subscription) { (self.plan_form(subscription)) }
            form.row method="post" action=(FORMS) {
                @if subscription.cancel_at_period_end || subscription.pending_change.is_some() {
                    button.quiet type="submit" name="action" value="keep" { "Keep the current plan" }
                } @else if is_changeable(subscription) {
                    button.quiet type="submit" name="action" value="cancel" { "Cancel at the end of the period" }
                } @else {
                    button.quiet type="submit" name="action" value="cancel" { "Cancel now" }
                }
            }
        }
    }

    /// Returns the length of the period whose cost is shown.
    fn interval(&self, subscription: &Subscription) -> Interval {
        self.chosen_interval.unwrap_or(subscription.interval)
    }

    fn plan_form(&self, subscription: &Subscription) -> Markup {
        let (current, chosen) = (subscription.tier.as_str(), self.chosen_tier);
        let interval = self.interval(subscription);
        html! {
            form method="get" action=(PORTAL) {
                label for="tier" { "Plan" }
                select id="tier" name="tier" {
                    @for tier in Tier::ALL {
                        @let is_selected = chosen.map_or(tier.as_str() == current, |chosen| chosen == *tier);
                        option value=(tier) selected[is_selected] { (capital_words(tier.as_str())) }
                    }
                }
                label for="interval" { "Period" }
                select id="interval" name="interval" {
                    @for each in Interval::ALL { option value=(each) selected[*each == interval] { "per " (each) } }
                }
                button.quiet type="submit" { "Show the cost" }
            }
        }
    }

    fn usage(&self) -> Markup {
        let usage = &self.content.usage;
        html! {
            h2 { "Usage" }
            p.hint { (day(usage.period_start)) " to " (day(usage.period_end)) }
            div.scroll tabindex="0" role="region" aria-label="Usage" {
                table {
                    thead { tr {
                        th scope="col" { "Metric" }
                        th.number scope="col" { "Used" }
                        th.number scope="col" { "Included" }
                        th.number scope="col" { "Price so far" }
                    } }
                    tbody { @for metric in &usage.metrics { tr {
                        td { (metric.metric.title()) (bar(metric)) }
                        td.number { (group_digits(metric.quantity)) }
                        td.number { (group_digits(metric.included)) }
                        td.number { (amount(metric.estimated_amount, usage.currency)) }
                    } } }
                }
            }
        }
    }

    fn cards(&self) -> Markup {
        let is_simulated = self.billing.payments.provider() == PaymentProvider::Ledger;
        html! {
            h2 { "Cards" }
            @if self.methods.is_empty() { p { "There is no card." } }
            @else { table {
                thead { tr { th scope="col" { "Card" } th.actions scope="col" { "Actions" } } }
                tbody { @for method in self.methods { tr {
                td { (card_text(method)) @if method.is_default { strong { " (default)" } } }
                td.actions {
                    @if !method.is_default {
                        form.row method="post" action=(FORMS) {
                            input type="hidden" name="method" value=(method.id);
                            button.quiet type="submit" name="action" value="choose" aria-label={ "Make default: card ending in " (method.card.last4) } { "Make default" }
                        }
                    }
                    form.row method="post" action=(FORMS) {
                        input type="hidden" name="method" value=(method.id);
                        button.quiet type="submit" name="action" value="remove" aria-label={ "Remove card ending in " (method.card.last4) } { "Remove" }
                    }
                }
            } } } } }
            @if is_simulated {
                form method="post" action=(FORMS) {
                    label for="card" { "Add a test card" }
                    select id="card" name="method" {
                        @for (id, text) in TEST_CARDS { option value=(id) { (text) } }
                    }
                    button.quiet type="submit" name="action" value="add" { "Add" }
                }
            }
        }
    }

    fn invoices(&self) -> Markup {
        html! {
            h2 { "Invoices" }
            @if self.content.invoices.is_empty() { p { "There is no invoice yet." } }
            @else { div.scroll tabindex="0" role="region" aria-label="Invoices" { table {
                thead { tr {
                    th scope="col" { "Number" }
                    th scope="col" { "Date" }
                    th scope="col" { "Status" }
                    th.number scope="col" { "Amount due" }
                } }
                tbody { @for invoice in &self.content.invoices { (self.invoice_row(invoice)) } }
            } } }
        }
    }

    fn invoice_row(&self, invoice: &Invoice) -> Markup {
        let path = format!("/pay/{}", self.billing.pages.pay_token(&invoice.id));
        let number = invoice.number.as_deref().unwrap_or("draft");
        html! { tr {
            td { a href=(path) { (number) } }
            td { (day(invoice.created_at)) }
            td { (capital_words(invoice.status.as_str())) }
            td.number { (amount(invoice.amount_due, invoice.currency)) }
        } }
    }
}

/// Renders the cost of a change to periods of this length, with the form that makes it, or the reason why there is none.
fn preview_part(preview: &Result<ChangePreview, Error>, interval: Interval) -> Markup {
    let preview = match preview {
        Ok(preview) => preview,
        Err(error) => return alert(&error.to_string()),
    };
    let show = |minor| amount(minor, preview.currency);
    html! {
        dl {
            dt { "New plan" } dd { (capital_words(preview.new_tier.as_str())) " per " (interval) }
            dt { "From" } dd { (day(preview.effective_at)) }
            dt { "To pay now" } dd { (show(preview.amount_due_now)) }
            dt { "Next invoice" } dd { (show(preview.next_invoice_amount)) " on " (day(preview.next_invoice_at)) }
        }
        @if !preview.lines.is_empty() { table {
            thead { tr { th scope="col" { "Description" } th.number scope="col" { "Amount" } } }
            tbody { @for line in &preview.lines { tr {
                td { (line.description) } td.number { (show(line.amount)) }
            } } }
            @if preview.tax_total != 0 { tfoot { tr {
                th scope="row" { "Tax" } td.number { (show(preview.tax_total)) }
            } } }
        } }
        form method="post" action=(FORMS) {
            input type="hidden" name="tier" value=(preview.new_tier);
            input type="hidden" name="interval" value=(interval);
            @if preview.effective == EffectiveAt::Immediate {
                input type="hidden" name="prorationDate" value=(preview.proration_date.to_rfc3339());
            }
            button type="submit" name="action" value="change" { "Change the plan" }
        }
    }
}

/// Draws how much of the included quantity is used.
fn bar(metric: &MeteredUsage) -> Markup {
    let percent = metric.percent_used.unwrap_or(0);
    let class = if percent > 100 { "over" } else { "used" };
    let width = percent.min(100);
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={ (percent) " percent of the included quantity" } {
            rect.all width="100" height="6" {}
            rect class=(class) width=(width) height="6" {}
        }
    }
}

/// Returns whether the plan of a subscription can be changed.
fn is_changeable(subscription: &Subscription) -> bool {
    matches!(
        subscription.status,
        SubscriptionStatus::Trialing | SubscriptionStatus::Active
    )
}

/// Returns the text for a payment method.
fn card_text(method: &PaymentMethod) -> String {
    let card = &method.card;
    format!(
        "{} ending in {}, expires {:02}/{}",
        capital_words(&card.brand),
        card.last4,
        card.exp_month,
        card.exp_year
    )
}
