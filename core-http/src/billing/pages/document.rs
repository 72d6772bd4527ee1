//! An invoice as a document, for the screen and for print.

use core_domain::billing::{
    Invoice, InvoiceLine, InvoiceStatus, Party, REVERSE_CHARGE_NOTE, TaxSum, TaxTreatment,
};
use core_domain::kernel::Result;
use core_domain::use_case::billing::Billing;
use maud::{Markup, html};

use super::layout::{amount, capital_words, day, group_digits, standalone_page};
use crate::kernel::StandalonePage;

/// Renders an invoice as a page of its own, for print and for files.
///
/// # Errors
/// `INTERNAL_ERROR` if the stored amounts are too large.
pub(crate) fn document_page(billing: &Billing, invoice: &Invoice) -> Result<StandalonePage> {
    let content = html! {
        (document(invoice)?)
        (payment(invoice))
    };
    Ok(standalone_page(billing, &title(invoice), &content))
}

/// Returns the title of an invoice.
pub(super) fn title(invoice: &Invoice) -> String {
    match &invoice.number {
        Some(number) => format!("Invoice {number}"),
        None => "Draft of an invoice".to_owned(),
    }
}

/// Renders an invoice without its title. It depends on the stored invoice alone.
///
/// # Errors
/// `INTERNAL_ERROR` if the stored amounts are too large.
pub(super) fn document(invoice: &Invoice) -> Result<Markup> {
    let taxes = invoice.taxes()?;
    let is_reversed = |tax: &TaxSum| tax.rate.treatment() == TaxTreatment::ReverseCharge;
    Ok(html! {
        div.parties {
            @if let Some(issuer) = &invoice.issuer { (party("From", issuer)) }
            (party("To", &invoice.customer))
        }
        dl {
            dt { "Status" }
            dd { (capital_words(invoice.status.as_str())) }
            @if let Some(at) = invoice.finalized_at { dt { "Date" } dd { (day(at)) } }
            dt { "Service period" }
            dd { (day(invoice.period_start)) " to " (day(invoice.period_end)) }
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
                tfoot { @for (label, minor) in sums(invoice, &taxes) {
                    tr {
                        th scope="row" colspan="3" { (label) }
                        td.number { (amount(minor, invoice.currency)) }
                    }
                } }
            }
        }
        @if taxes.iter().any(is_reversed) { p { (REVERSE_CHARGE_NOTE) } }
    })
}

/// Renders the name, the address and the tax id of a party.
fn party(label: &str, party: &Party) -> Markup {
    let address = party.address.as_ref();
    let lines = address.map(|address| address.lines()).unwrap_or_default();
    html! {
        section {
            h2 { (label) }
            address {
                @if let Some(name) = &party.name { (name.as_str()) br; }
                @for line in &lines { (line) br; }
                @if let Some(address) = address { (address.country.name()) br; }
                @if let Some(email) = &party.email { (email.as_str()) br; }
                @if let Some(id) = &party.tax_id { "Tax id " (id.as_str()) }
            }
        }
    }
}

/// Renders how the invoice is paid.
fn payment(invoice: &Invoice) -> Markup {
    let text = match invoice.status {
        InvoiceStatus::Draft => "This is a draft. It is not an invoice yet.",
        InvoiceStatus::Open => {
            "The amount due is charged to your card. You can also pay it on the page of this invoice."
        }
        InvoiceStatus::Paid => "This invoice is settled. Nothing has to be paid.",
        InvoiceStatus::Void => "This invoice was cancelled. Nothing has to be paid.",
        InvoiceStatus::Uncollectible => {
            "This invoice could not be collected. Pay it on the page of this invoice."
        }
    };
    html! { p { (text) } }
}

fn line_row(line: &InvoiceLine) -> Markup {
    html! {
        tr {
            td {
                (line.description)
                @if let Some(part) = &line.proration {
                    div.hint {
                        (amount(part.full_amount, line.currency)) " for " (span(part.seconds_total))
                        ", of which " (span(part.seconds_left)) " are left"
                    }
                }
            }
            td { (day(line.period_start)) " to " (day(line.period_end)) }
            td.number { (group_digits(line.quantity)) }
            td.number { (amount(line.amount, line.currency)) }
        }
    }
}

/// Returns an exact span of time, for example `15 days` or `29 days 23:59:25`.
fn span(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60);
    let word = if days == 1 { "day" } else { "days" };
    match (days, rest) {
        (_, 0) => format!("{days} {word}"),
        (0, _) => time,
        _ => format!("{days} {word} {time}"),
    }
}

/// Returns the sums below the lines. Those that are 0 are left out, except the last one.
fn sums(invoice: &Invoice, taxes: &[TaxSum]) -> Vec<(String, i64)> {
    let mut sums = vec![("Subtotal".to_owned(), invoice.subtotal)];
    let optional = |label: &str, minor: i64| (minor != 0).then(|| (label.to_owned(), minor));
    sums.extend(optional("Discount", -invoice.discount_total));
    sums.extend(
        taxes
            .iter()
            .map(|tax| (tax_label(tax, invoice), tax.tax.minor())),
    );
    let total = (invoice.total != invoice.subtotal).then_some(invoice.total);
    sums.extend(total.map(|total| ("Total".to_owned(), total)));
    sums.extend(optional("Credits", -invoice.credits_applied));
    sums.extend(optional("Account balance", -invoice.balance_applied));
    sums.push(("Amount due".to_owned(), invoice.amount_due));
    if invoice.amount_paid != 0 {
        sums.push(("Paid".to_owned(), -invoice.amount_paid));
        sums.push(("Still to pay".to_owned(), invoice.amount_remaining));
    }
    sums
}

/// Returns the label of the tax of a rate, for example `Tax 19 % on 29.00 USD`.
fn tax_label(tax: &TaxSum, invoice: &Invoice) -> String {
    let net = amount(tax.net.minor(), invoice.currency);
    match tax.rate.treatment() {
        TaxTreatment::ReverseCharge => format!("Tax on {net}: reverse charge"),
        _ => format!("Tax {} % on {net}", tax.rate.percent()),
    }
}
