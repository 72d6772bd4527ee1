//! Events.

use core_domain::kernel::Timestamp;
use core_domain::port::ProviderEvent;
use serde::Deserialize;

use crate::call::Call;
use crate::error::CallError;
use crate::session::Session;

/// An event, as webhooks and the list of events have it.
#[derive(Deserialize)]
pub(crate) struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created: i64,
    pub(crate) livemode: bool,
    pub(crate) api_version: Option<String>,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

/// The members of the changed object that all objects have in the same form.
#[derive(Deserialize)]
struct Object {
    id: Option<String>,
    object: Option<String>,
    customer: Option<Reference>,
}

/// The id of another object, or the object itself.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Reference {
    Id(String),
    Object { id: String },
}

impl Reference {
    pub(crate) fn into_id(self) -> String {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

impl From<Event> for ProviderEvent {
    fn from(event: Event) -> Self {
        let object = event.data.object;
        let is_customer = object.object.as_deref() == Some("customer");
        let customer = object.customer.map(Reference::into_id);
        let own = object.id.clone().filter(|_| is_customer);
        Self {
            id: event.id,
            kind: event.kind,
            object_id: object.id,
            customer: customer.or(own),
            created_at: Timestamp::from_seconds(event.created),
        }
    }
}

/// Returns the events since an instant, oldest first. Stripe keeps them for 30 days.
pub(crate) async fn since(
    session: &Session<'_>,
    since: Timestamp,
) -> Result<Vec<ProviderEvent>, CallError> {
    let list = Call::get("event.list", &["events"]).param("created[gte]", since.seconds());
    let mut events: Vec<Event> = session.all(&list).await?;
    events.reverse();
    Ok(events.into_iter().map(ProviderEvent::from).collect())
}
