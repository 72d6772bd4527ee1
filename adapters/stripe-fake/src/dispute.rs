//! Disputes. The fake keeps none: they exist only in their events.

use serde_json::json;

use crate::envelope::Refusal;
use crate::state::State;

/// Records the event that a dispute about a payment is lost. Returns the id of the dispute.
pub(crate) fn lose(state: &mut State, intent: &str) -> Result<String, Refusal> {
    let origin = state.origin("dp");
    let intent = state.payment_intent(intent, "payment_intent")?;
    if intent.status != "succeeded" {
        let message = "This PaymentIntent does not have a successful charge to dispute.";
        return Err(Refusal::state(message));
    }
    let dispute = json!({
        "id": origin.id,
        "object": "dispute",
        "amount": intent.amount,
        "charge": intent.charge_id(),
        "created": origin.created,
        "currency": intent.currency,
        "livemode": origin.is_live,
        "metadata": {},
        "payment_intent": intent.id,
        "reason": "fraudulent",
        "status": "lost",
    });
    state.emit("charge.dispute.closed", dispute);
    Ok(origin.id)
}
