//! Payment methods.

use core_domain::billing::Card;
use core_domain::kernel::Timestamp;
use core_domain::port::{OpKey, ProviderMethod};
use serde::Deserialize;

use crate::call::Call;
use crate::error::CallError;
use crate::event::Reference;
use crate::session::{Lookup, Session};

#[derive(Deserialize)]
struct Method {
    id: String,
    customer: Option<Reference>,
    card: Option<MethodCard>,
    created: i64,
}

#[derive(Deserialize)]
struct MethodCard {
    brand: String,
    last4: String,
    exp_month: u8,
    exp_year: u16,
    country: Option<String>,
    funding: String,
}

impl Method {
    /// Returns the method for the port. Returns `None` if it is no card.
    fn into_card(self) -> Option<ProviderMethod> {
        let card = self.card?;
        Some(ProviderMethod {
            id: self.id,
            customer: self.customer.map(Reference::into_id),
            card: Card {
                brand: card.brand,
                last4: card.last4,
                exp_month: card.exp_month,
                exp_year: card.exp_year,
                country: card.country,
                funding: card.funding,
            },
            created_at: Timestamp::from_seconds(self.created),
        })
    }

    fn is_attached_to(&self, customer: &str) -> bool {
        match &self.customer {
            Some(Reference::Id(id) | Reference::Object { id }) => id == customer,
            None => false,
        }
    }

    fn require_card(self) -> Result<ProviderMethod, CallError> {
        let id = self.id.clone();
        let why = || CallError::Impossible(format!("the payment method {id} is no card"));
        self.into_card().ok_or_else(why)
    }
}

/// Returns the cards of a customer, newest first.
pub(crate) async fn list(
    session: &Session<'_>,
    customer: &str,
) -> Result<Vec<ProviderMethod>, CallError> {
    let list = Call::get("method.list", &["payment_methods"])
        .param("customer", customer)
        .param("type", "card");
    let methods: Vec<Method> = session.all(&list).await?;
    Ok(methods.into_iter().filter_map(Method::into_card).collect())
}

async fn find(session: &Session<'_>, id: &str) -> Result<Option<Method>, CallError> {
    let get = Call::get("method.find", &["payment_methods", id]);
    session.find(&get).await
}

/// Returns the card with an id. Returns `None` if there is none.
pub(crate) async fn get(
    session: &Session<'_>,
    id: &str,
) -> Result<Option<ProviderMethod>, CallError> {
    Ok(find(session, id).await?.and_then(Method::into_card))
}

pub(crate) async fn attach(
    session: &Session<'_>,
    key: &OpKey,
    id: &str,
    customer: &str,
) -> Result<ProviderMethod, CallError> {
    let attach = Call::post("method.attach", &["payment_methods", id, "attach"])
        .param("customer", customer)
        .key(key.as_str());
    let find_attached = || -> Lookup<'_, Method> {
        Box::pin(async move {
            let found = find(session, id).await?;
            Ok(found.filter(|own| own.is_attached_to(customer)))
        })
    };
    let attached = session.change(&attach, find_attached);
    attached.await?.require_card()
}

/// Detaches a method. A method that is not attached is returned as it is.
pub(crate) async fn detach(
    session: &Session<'_>,
    key: &OpKey,
    id: &str,
) -> Result<ProviderMethod, CallError> {
    let detach = Call::post("method.detach", &["payment_methods", id, "detach"]);
    let detach = detach.key(key.as_str());
    let find_detached = || -> Lookup<'_, Method> {
        Box::pin(async move {
            let found = find(session, id).await?;
            Ok(found.filter(|own| own.customer.is_none()))
        })
    };
    match session.change(&detach, find_detached).await {
        Err(error) if error.is_state() => match find_detached().await? {
            Some(method) => method.require_card(),
            None => Err(error),
        },
        detached => detached?.require_card(),
    }
}
