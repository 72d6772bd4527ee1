//! Operations on invoices, except charges.

use serde_json::json;

use crate::envelope::{Refusal, Reply};
use crate::page::{PAGE, TimeRange, page};
use crate::params::Params;
use crate::pay::{cancel_intent, mark_paid};
use crate::state::State;
use crate::state::invoice::{Invoice, Line};
use crate::state::object::{Metadata, merge};
use crate::state::payment_intent::PaymentIntent;

/// The smallest amount that is charged, in minor units.
const MIN_CHARGE: i64 = 50;

/// Maximum number of lines of an invoice.
const MAX_LINES: usize = 250;

/// Maximum number of lines that one request adds.
const MAX_ADDED_LINES: usize = 100;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&[
        "customer",
        "currency",
        "auto_advance",
        "collection_method",
        "pending_invoice_items_behavior",
        "number",
        "description",
        "metadata",
    ])?;
    params.one_of("collection_method", &["charge_automatically"])?;
    params.one_of("pending_invoice_items_behavior", &["exclude", "include"])?;
    refuse_automatic(params)?;
    let customer = params.require("customer")?;
    state.customer(customer, "customer")?;
    let currency = params.text("currency")?.unwrap_or("usd");
    let is_code = currency.len() == 3 && currency.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_code {
        let message = format!("Invalid currency: {currency}");
        return Err(Refusal::parameter("currency", message));
    }
    let origin = state.origin("in");
    let mut invoice = Invoice::new(origin, customer.to_owned(), currency.to_owned());
    invoice.number = params.text("number")?.map(str::to_owned);
    invoice.description = params.text("description")?.map(str::to_owned);
    merge(&mut invoice.metadata, params.pairs("metadata")?);
    let id = invoice.id.clone();
    state.invoices.push(invoice);
    state.emit_invoice("invoice.created", &id);
    state.rendered_invoice(&id)
}

/// The fake advances no invoice on its own.
fn refuse_automatic(params: &Params) -> Result<(), Refusal> {
    if params.flag("auto_advance")? == Some(true) {
        let message = "The fake does not advance invoices automatically.";
        return Err(Refusal::parameter("auto_advance", message));
    }
    Ok(())
}

pub(crate) fn list(state: &State, params: &Params) -> Reply {
    params.only(&[&PAGE[..], &["customer", "created", "status"]].concat())?;
    let statuses = ["draft", "open", "paid", "uncollectible", "void"];
    let status = params.one_of("status", &statuses)?;
    let (customer, created) = (params.text("customer")?, TimeRange::of_creation(params)?);
    let rows = state.invoices.iter().rev().filter(|own| {
        customer.is_none_or(|customer| own.customer == customer)
            && status.is_none_or(|status| own.status == status)
            && created.contains(own.origin.created)
    });
    let rows = rows.map(|own| state.rendered_invoice(&own.id));
    page(rows.collect::<Result<_, _>>()?, params, "/v1/invoices")
}

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    state.rendered_invoice(id)
}

pub(crate) fn delete(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    if state.invoice(id, "invoice")?.status != "draft" {
        return Err(not_draft("You can only delete draft invoices."));
    }
    let rendered = state.rendered_invoice(id)?;
    state.invoices.retain(|own| own.id != id);
    state.emit("invoice.deleted", rendered);
    Ok(json!({"id": id, "object": "invoice", "deleted": true}))
}

fn not_draft(message: &'static str) -> Refusal {
    Refusal::state(message).code("invoice_not_editable")
}

pub(crate) fn add_lines(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["lines"])?;
    let added = params.objects("lines")?;
    if added.is_empty() || added.len() > MAX_ADDED_LINES {
        let message = "An invoice takes 1 to 100 lines at a time.";
        return Err(Refusal::parameter("lines", message));
    }
    let mut lines = Vec::new();
    for line in &added {
        line.only(&["amount", "description", "metadata"])?;
        line.require("amount")?;
        let mut metadata = Metadata::new();
        merge(&mut metadata, line.pairs("metadata")?);
        lines.push(Line {
            id: state.ids.with_prefix("il"),
            amount: line.integer("amount")?.unwrap_or_default(),
            description: line.text("description")?.map(str::to_owned),
            metadata,
        });
    }
    let invoice = state.invoice_mut(id, "invoice")?;
    if invoice.status != "draft" {
        return Err(not_draft("Lines can be added only to a draft."));
    }
    if invoice.lines.len() + lines.len() > MAX_LINES {
        return Err(Refusal::state("An invoice has at most 250 lines."));
    }
    invoice.lines.append(&mut lines);
    state.emit_invoice("invoice.updated", id);
    state.rendered_invoice(id)
}

pub(crate) fn lines(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&PAGE)?;
    let invoice = state.invoice(id, "invoice")?;
    page(invoice.rendered_lines(), params, &invoice.lines_url())
}

/// Finalizes a draft. The balance of the customer is applied, and an amount below the minimum charge moves to it.
pub(crate) fn finalize(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["auto_advance"])?;
    refuse_automatic(params)?;
    let invoice = state.invoice(id, "invoice")?;
    if invoice.status != "draft" {
        return Err(not_draft("This invoice is already finalized."));
    }
    let customer_id = invoice.customer.clone();
    let total = invoice.total();
    let (now, has_number) = (state.clock.now(), invoice.number.is_some());
    let customer = state.customer_mut(&customer_id, "customer")?;
    let balance = customer.balance;
    let due = total + balance;
    let is_charged = due >= MIN_CHARGE;
    customer.balance = if is_charged { 0 } else { due };
    let mut number = None;
    if !has_number {
        customer.numbered_invoices += 1;
        number = Some(format!(
            "{}-{:04}",
            customer.invoice_prefix(),
            customer.numbered_invoices
        ));
    }
    let invoice = state.invoice_mut(id, "invoice")?;
    invoice.number = invoice.number.take().or(number);
    invoice.status = "open";
    invoice.finalized_at = Some(now);
    invoice.starting_balance = Some(balance);
    invoice.carried_over = if is_charged { 0 } else { due.max(0) };
    if is_charged {
        add_intent(state, id, due)?;
    }
    state.emit_invoice("invoice.finalized", id);
    if !is_charged {
        mark_paid(state, id, false)?;
    }
    state.rendered_invoice(id)
}

fn add_intent(state: &mut State, invoice: &str, amount: i64) -> Result<(), Refusal> {
    let secret = state.ids.with_prefix("secret");
    let origin = state.origin("pi");
    let intent = PaymentIntent::new(origin, secret, state.invoice(invoice, "invoice")?, amount);
    state.invoice_mut(invoice, "invoice")?.payment_intent = Some(intent.id.clone());
    state.payment_intents.push(intent);
    Ok(())
}

pub(crate) fn void(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    let now = state.clock.now();
    let invoice = state.invoice_mut(id, "invoice")?;
    if !["open", "uncollectible"].contains(&invoice.status) {
        let message = format!(
            "You can only void open invoices. This one is {}.",
            invoice.status
        );
        return Err(Refusal::state(message));
    }
    invoice.status = "void";
    invoice.voided_at = Some(now);
    cancel_intent(state, id);
    state.emit_invoice("invoice.voided", id);
    state.rendered_invoice(id)
}

pub(crate) fn mark_uncollectible(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    let now = state.clock.now();
    let invoice = state.invoice_mut(id, "invoice")?;
    if invoice.status != "open" {
        let message = format!(
            "You can only mark open invoices as uncollectible. This one is {}.",
            invoice.status
        );
        return Err(Refusal::state(message));
    }
    invoice.status = "uncollectible";
    invoice.uncollectible_at = Some(now);
    state.emit_invoice("invoice.marked_uncollectible", id);
    state.rendered_invoice(id)
}
