//! The inbox of events from the payment provider (contract: "Webhook").

use crate::kernel::{CustomerId, Timestamp, record, text_enum};

text_enum! {
    /// The status of an event from the payment provider.
    pub enum ReceivedEventStatus {
        /// A job will apply the state of the changed object.
        Received = "received",
        /// The state of the changed object was applied.
        Applied = "applied",
        /// The event changes nothing here: its type is not handled, or its customer is unknown.
        Ignored = "ignored",
    }
}

/// An event from the payment provider. It is stored so that repeated deliveries are recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ReceivedEvent {
    /// The id of the event at the provider.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The type of the event, for example `invoice.paid`.
    pub kind: String,
    /// The id of the changed object at the provider. `None` if the object has none.
    pub object_id: Option<String>,
    /// The customer that the event is about. `None` if it is unknown.
    pub customer_id: Option<CustomerId>,
    /// When the event happened, on the clock of the provider.
    pub happened_at: Timestamp,
    /// When the event was received.
    pub received_at: Timestamp,
    /// Whether the state of the object was applied.
    pub status: ReceivedEventStatus,
}

record! {
    ReceivedEvent as "provider event" by id, asked ReceivedEventQuery;
}

/// Queries for events from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedEventQuery {
    /// All events, the last one to be received first.
    Latest,
    /// The events that were received before an instant and not applied yet.
    UnappliedSince(Timestamp),
    /// The events that were received before an instant, oldest first.
    ReceivedBefore(Timestamp),
}
