//! Webhooks: managing them, queueing messages to them, and delivering these messages.
//!
//! The unit of work that seals a change queues one message per webhook. [`claim_deliveries`] and
//! [`store_delivery_result`] deliver it afterwards, at least once and in no particular order. A claim lasts one minute.
//! So several nodes can deliver concurrently, and the messages of a crashed node become due again.

mod delivery;
mod manage;

pub use delivery::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, RecoveryResult, claim_deliveries, fan_out,
    get_delivery, list_deliveries, recover, replay, send_test, store_delivery_result,
};
pub(in crate::use_case) use manage::remove_of_platform;
pub use manage::{
    IssuedWebhook, ReadsWebhooks, WritesWebhooks, create, delete, get, list,
    remove_ended_deliveries, rotate_secret, update,
};
