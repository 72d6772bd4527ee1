//! Customers, setup intents and the portal.

use core_domain::port::{OpKey, PayingCustomer, ProviderSetupIntent};
use serde::Deserialize;

use crate::call::Call;
use crate::error::{CallError, SecretText};
use crate::event::Reference;
use crate::session::{Session, no_lookup};

/// The member of a customer's metadata that contains our id.
const CUSTOMER_ID: &str = "customerId";

#[derive(Deserialize)]
struct Customer {
    id: String,
    #[serde(default)]
    metadata: std::collections::BTreeMap<String, String>,
    invoice_settings: Option<InvoiceSettings>,
}

#[derive(Deserialize)]
struct InvoiceSettings {
    default_payment_method: Option<Reference>,
}

/// An object of which only the existence matters.
#[derive(Deserialize)]
pub(crate) struct AnyObject {}

fn details(call: Call, customer: &PayingCustomer) -> Call {
    let platform = customer.platform_id.as_ref();
    call.param("email", &customer.email)
        // An empty text removes the name.
        .param("name", customer.name.as_deref().unwrap_or_default())
        .param(&format!("metadata[{CUSTOMER_ID}]"), customer.id.as_str())
        .optional("metadata[platformId]", platform.map(|id| id.as_str()))
}

/// Creates a customer, unless there is one with our id: a key is known only for a day.
pub(crate) async fn ensure(
    session: &Session<'_>,
    key: &OpKey,
    customer: &PayingCustomer,
) -> Result<String, CallError> {
    if let Some(found) = find(session, customer).await? {
        return Ok(found.id);
    }
    let create = Call::post("customer.create", &["customers"]);
    let create = details(create, customer).key(key.as_str());
    let created = session.change(&create, || Box::pin(find(session, customer)));
    Ok(created.await?.id)
}

/// Finds a customer by our id.
async fn find(
    session: &Session<'_>,
    customer: &PayingCustomer,
) -> Result<Option<Customer>, CallError> {
    let list = Call::get("customer.list", &["customers"]).param("email", &customer.email);
    let id = customer.id.as_str();
    let is_own = |own: Customer| {
        (own.metadata.get(CUSTOMER_ID).map(String::as_str) == Some(id)).then_some(own)
    };
    session.search(&list, is_own).await
}

pub(crate) async fn update(
    session: &Session<'_>,
    key: &OpKey,
    id: &str,
    customer: &PayingCustomer,
) -> Result<(), CallError> {
    let update = Call::post("customer.update", &["customers", id]);
    change(session, &details(update, customer).key(key.as_str())).await
}

pub(crate) async fn set_default(
    session: &Session<'_>,
    key: &OpKey,
    customer: &str,
    method: &str,
) -> Result<(), CallError> {
    let update = Call::post("customer.update", &["customers", customer])
        .param("invoice_settings[default_payment_method]", method)
        .key(key.as_str());
    change(session, &update).await
}

/// Returns the default payment method of a customer. Returns `None` if it has none, or there is no such customer.
pub(crate) async fn default_method(
    session: &Session<'_>,
    id: &str,
) -> Result<Option<String>, CallError> {
    let get = Call::get("customer.find", &["customers", id]);
    let found: Option<Customer> = session.find(&get).await?;
    let settings = found.and_then(|customer| customer.invoice_settings);
    let method = settings.and_then(|settings| settings.default_payment_method);
    Ok(method.map(Reference::into_id))
}

/// Sends a change whose repetition has no further effect.
async fn change(session: &Session<'_>, call: &Call) -> Result<(), CallError> {
    let changed = session.change::<AnyObject>(call, no_lookup);
    changed.await.map(drop)
}

#[derive(Deserialize)]
struct SetupIntent {
    id: String,
    client_secret: SecretText,
    status: String,
}

pub(crate) async fn create_setup_intent(
    session: &Session<'_>,
    key: &OpKey,
    customer: &str,
) -> Result<ProviderSetupIntent, CallError> {
    let create = Call::post("setup_intent.create", &["setup_intents"])
        .param("customer", customer)
        .param("usage", "off_session")
        .param("allowed_payment_method_types[0]", "card")
        .key(key.as_str());
    // An intent that is never confirmed has no effect.
    let created = session.change::<SetupIntent>(&create, no_lookup);
    let intent = created.await?;
    Ok(ProviderSetupIntent {
        id: intent.id,
        client_secret: intent.client_secret.0,
        status: intent.status,
    })
}

#[derive(Deserialize)]
struct PortalSession {
    url: String,
}

/// Opens a page of the portal and returns its URL.
pub(crate) async fn portal(
    session: &Session<'_>,
    customer: &str,
    return_url: &str,
) -> Result<String, CallError> {
    let configuration = session.client.options().portal_configuration.as_ref();
    let create = Call::post("portal.create", &["billing_portal", "sessions"])
        .param("customer", customer)
        .param("return_url", return_url)
        .optional("configuration", configuration);
    let session: PortalSession = session.fetch(&create).await?;
    Ok(session.url)
}
