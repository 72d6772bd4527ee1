//! An invoice as a document, for the screen and for print.

use core_domain::billing::{Customer, Invoice, InvoiceLine, InvoiceStatus};
use core_domain::use_case::billing::Billing;
use maud::{Markup, html};

use super::layout::{amount, day, html_page, words};
use crate::kernel::Html;

/// Renders an invoice as a page of its own, which a browser prints without the rest.
pub(crate) fn document_page(billing: &Billing, invoice: &Invoice, customer: &Customer) -> Html {
    let base = billing.pages.base_url().unwrap_or_default();
    html_page(
        Some(billing),
        base,
        &title(invoice),
        &document(invoice, customer),
    )
}

/// Returns the title of an invoice.
pub(super) fn title(invoice: &Invoice) -> String {
    match &invoice.number {
        Some(number) => format!("Invoice {number}"),
        None => "Draft of an invoice".to_owned(),
    }
}

/// Renders an invoice without its title.
pub(super) fn document(invoice: &Invoice, customer: &Customer) -> Markup {
    html! {
        dl {
            dt { "Status" }
            dd { (words(invoice.status.as_str())) }
            @if let Some(at) = invoice.finalized_at { dt { "Date" } dd { (day(at)) } }
            dt { "Service period" }
            dd { (day(invoice.period_start)) " to " (day(invoice.period_end)) }
            dt { "Customer" }
            dd {
                @if let Some(name) = &customer.name { (name.as_str()) br; }
                (customer.email.as_str())
            }
            @if let Some(at) = invoice.paid_at { dt { "Paid" } dd { (day(at)) } }
        }
        div.scroll tabindex="0" role="region" aria-label="Lines" {
            table {
                thead {
                    tr {
                        th scope="col" { "Description" }
                        th scope="col" { "Period" }
                        th.number scope="col" { "Quantity" }
                        th.number scope="col" { "Amount" }
                    }
                }
                tbody { @for line in &invoice.lines { (line_row(line)) } }
                tfoot { @for (label, minor) in sums(invoice) {
                    tr {
                        th scope="row" colspan="3" { (label) }
                        td.number { (amount(minor, invoice.currency)) }
                    }
                } }
            }
        }
        @if invoice.status == InvoiceStatus::Void {
            p { "This invoice was cancelled. Nothing has to be paid." }
        }
    }
}

fn line_row(line: &InvoiceLine) -> Markup {
    html! {
        tr {
            td {
                (line.description)
                @if let Some(part) = &line.proration {
                    div.hint {
                        (amount(part.full_amount, line.currency)) " for " (part.seconds_left)
                        " of " (part.seconds_total) " seconds"
                    }
                }
            }
            td { (day(line.period_start)) " to " (day(line.period_end)) }
            td.number { (line.quantity) }
            td.number { (amount(line.amount, line.currency)) }
        }
    }
}

/// Returns the sums below the lines. Those that are 0 are left out, except the last one.
fn sums(invoice: &Invoice) -> Vec<(&'static str, i64)> {
    let mut sums = vec![("Subtotal", invoice.subtotal)];
    let others = [
        ("Discount", -invoice.discount_total),
        ("Tax", invoice.tax_total),
        ("Credits", -invoice.credits_applied),
        ("Account balance", -invoice.balance_applied),
    ];
    sums.extend(others.into_iter().filter(|(_, minor)| *minor != 0));
    sums.push(("Amount due", invoice.amount_due));
    if invoice.amount_paid != 0 {
        sums.push(("Paid", -invoice.amount_paid));
        sums.push(("Still to pay", invoice.amount_remaining));
    }
    sums
}
