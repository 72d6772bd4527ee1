//! Sessions of the customer portal.

use serde_json::json;

use crate::envelope::Reply;
use crate::params::Params;
use crate::state::State;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&["customer", "return_url", "configuration"])?;
    let customer = params.require("customer")?;
    state.customer(customer, "customer")?;
    let origin = state.origin("bps");
    Ok(json!({
        "id": origin.id,
        "object": "billing_portal.session",
        "configuration": params.text("configuration")?.unwrap_or("bpc_default"),
        "created": origin.created,
        "customer": customer,
        "customer_account": null,
        "flow": null,
        "livemode": origin.is_live,
        "locale": null,
        "on_behalf_of": null,
        "return_url": params.text("return_url")?,
        "url": format!("https://billing.stripe.example/p/session/{}", origin.id),
    }))
}
