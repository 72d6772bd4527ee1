//! Charges of invoices.

use crate::card::ChargeEnd;
use crate::envelope::{Refusal, Reply};
use crate::params::Params;
use crate::state::State;

/// Charges an invoice, or records that it was paid in another way.
pub(crate) fn pay(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&["payment_method", "off_session", "paid_out_of_band"])?;
    params.flag("off_session")?;
    let is_elsewhere = params.flag("paid_out_of_band")?.unwrap_or_default();
    let invoice = state.invoice(id, "invoice")?;
    match invoice.status {
        "open" | "uncollectible" => {}
        "paid" => {
            return Err(Refusal::state("Invoice is already paid").code("invoice_already_paid"));
        }
        "draft" => {
            let message = "The invoice is a draft. Finalize it first.";
            return Err(Refusal::state(message).code("invoice_not_editable"));
        }
        _ => return Err(Refusal::state("This invoice can no longer be paid")),
    }
    if is_elsewhere {
        cancel_intent(state, id);
        mark_paid(state, id, true)?;
        return state.rendered_invoice(id);
    }
    let method = chosen_method(state, id, params)?;
    let intent = invoice_intent(state, id)?;
    if state.payment_intent(&intent, "payment_intent")?.status == "processing" {
        return Err(
            Refusal::state("The invoice has a payment that is still processing.")
                .code("payment_intent_unexpected_state"),
        );
    }
    let end = state
        .payment_method(&method, "payment_method")?
        .charge_end
        .clone();
    state.invoice_mut(id, "invoice")?.attempts += 1;
    settle(state, &intent, &method, &end)?;
    state.rendered_invoice(id)
}

/// Returns the id of the method that the request names, or of the customer's default.
fn chosen_method(state: &State, invoice: &str, params: &Params) -> Result<String, Refusal> {
    let customer = state.customer(&state.invoice(invoice, "invoice")?.customer, "customer")?;
    let chosen = params.text("payment_method")?;
    let Some(id) = chosen.or(customer.default_method.as_deref()) else {
        let message = "The customer has no default payment method.";
        return Err(Refusal::state(message).code("invoice_no_payment_method_types"));
    };
    let method = state.payment_method(id, "payment_method")?;
    if method.customer.as_ref() != Some(&customer.id) {
        let message = "The payment method does not belong to the customer of the invoice.";
        return Err(Refusal::state(message).member("param", "payment_method"));
    }
    Ok(method.id.clone())
}

fn invoice_intent(state: &State, invoice: &str) -> Result<String, Refusal> {
    let intent = state.invoice(invoice, "invoice")?.payment_intent.clone();
    intent.ok_or_else(|| Refusal::state("The invoice has no payment."))
}

/// Applies the end of a charge.
///
/// # Errors
/// The refusal of the issuer, with the payment intent.
pub(crate) fn settle(
    state: &mut State,
    intent: &str,
    method: &str,
    end: &ChargeEnd,
) -> Result<(), Refusal> {
    let own = state.payment_intent_mut(intent, "intent")?;
    own.method = Some(method.to_owned());
    let invoice = own.invoice.clone();
    match end {
        ChargeEnd::Paid => {
            own.status = "succeeded";
            own.error = None;
            let rendered = own.render();
            state.emit("payment_intent.succeeded", rendered);
            mark_paid(state, &invoice, false)
        }
        ChargeEnd::Processing => {
            own.status = "processing";
            own.error = None;
            let rendered = own.render();
            state.emit("payment_intent.processing", rendered);
            Ok(())
        }
        ChargeEnd::Declined { .. } | ChargeEnd::AuthenticationRequired => {
            let refusal = end.refusal();
            own.status = "requires_payment_method";
            own.error = refusal.as_ref().map(Refusal::error);
            let rendered = own.render();
            state.emit("payment_intent.payment_failed", rendered.clone());
            state.emit_invoice("invoice.payment_failed", &invoice);
            if *end == ChargeEnd::AuthenticationRequired {
                state.emit_invoice("invoice.payment_action_required", &invoice);
            }
            match refusal {
                Some(refusal) => Err(refusal.member("payment_intent", rendered)),
                None => Ok(()),
            }
        }
    }
}

/// Records that an invoice is paid.
pub(crate) fn mark_paid(state: &mut State, id: &str, is_elsewhere: bool) -> Result<(), Refusal> {
    let now = state.clock.now();
    let invoice = state.invoice_mut(id, "invoice")?;
    invoice.status = "paid";
    invoice.paid = invoice.amount_due(0);
    invoice.was_paid_elsewhere = is_elsewhere;
    invoice.paid_at = Some(now);
    state.emit_invoice("invoice.paid", id);
    state.emit_invoice("invoice.payment_succeeded", id);
    Ok(())
}

/// Cancels the payment of an invoice that ends without a charge.
pub(crate) fn cancel_intent(state: &mut State, invoice: &str) {
    let Ok(id) = invoice_intent(state, invoice) else {
        return;
    };
    if let Ok(intent) = state.payment_intent_mut(&id, "intent") {
        intent.status = "canceled";
        let rendered = intent.render();
        state.emit("payment_intent.canceled", rendered);
    }
}
