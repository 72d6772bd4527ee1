//! Operations on customers.

use crate::envelope::{Refusal, Reply};
use crate::page::{PAGE, TimeRange, page};
use crate::params::Params;
use crate::state::State;
use crate::state::customer::Customer;
use crate::state::object::merge;

const FIELDS: [&str; 5] = [
    "email",
    "name",
    "description",
    "metadata",
    "invoice_settings",
];

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&FIELDS)?;
    let mut customer = Customer::new(state.origin("cus"));
    change(state, &mut customer, params)?;
    let rendered = customer.render();
    state.customers.push(customer);
    state.emit("customer.created", rendered.clone());
    Ok(rendered)
}

pub(crate) fn list(state: &State, params: &Params) -> Reply {
    params.only(&[&PAGE[..], &["email", "created"]].concat())?;
    let (email, created) = (params.text("email")?, TimeRange::of_creation(params)?);
    let has_email = |own: &&Customer| email.is_none_or(|email| own.email.as_deref() == Some(email));
    let rows = state.customers.iter().rev().filter(has_email);
    let rows = rows.filter(|own| created.contains(own.created_at()));
    page(
        rows.map(Customer::render).collect(),
        params,
        "/v1/customers",
    )
}

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    Ok(state.customer(id, "id")?.render())
}

pub(crate) fn update(state: &mut State, id: &str, params: &Params) -> Reply {
    params.only(&FIELDS)?;
    let at = state.customers.iter().position(|own| own.id == id);
    let at = at.ok_or_else(|| Refusal::missing("customer", id, "id"))?;
    let mut customer = state.customers.remove(at);
    let changed = change(state, &mut customer, params);
    let rendered = customer.render();
    state.customers.insert(at, customer);
    changed?;
    state.emit("customer.updated", rendered.clone());
    Ok(rendered)
}

/// Changes a customer as the parameters ask, or not at all.
fn change(state: &State, customer: &mut Customer, params: &Params) -> Result<(), Refusal> {
    let settings = params.object("invoice_settings")?;
    settings.only(&["default_payment_method"])?;
    let (email, name) = (params.text("email")?, params.text("name")?);
    let metadata = params.pairs("metadata")?;
    params.text("description")?;
    if let Some(method) = settings.text("default_payment_method")? {
        let param = settings.full("default_payment_method");
        let method = state.payment_method(method, &param)?;
        if method.customer.as_ref() != Some(&customer.id) {
            let message = format!(
                "The customer does not have a payment method with the ID {}. The payment method must be attached to the customer.",
                method.id
            );
            return Err(Refusal::state(message)
                .code("resource_missing")
                .member("param", param));
        }
        customer.default_method = Some(method.id.clone());
    }
    // An empty text removes the value.
    let value = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    if let Some(email) = email {
        customer.email = value(email);
    }
    if let Some(name) = name {
        customer.name = value(name);
    }
    merge(&mut customer.metadata, metadata);
    Ok(())
}
