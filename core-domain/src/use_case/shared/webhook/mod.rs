//! Webhooks: managed by those whose changes they tell, filled by the sealer of the audit, and emptied by a dispatcher.
//!
//! A message is written in the unit of work that seals the change it tells of, once for each webhook. It is sent at least
//! once, after that unit and in no promised order, by [`claim_deliveries`] and [`settle_delivery`]: whoever claims a
//! message has it for a minute, so several nodes may send at once, and what one that died had claimed comes again.

mod delivery;
mod manage;

pub use delivery::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, Recovered, claim_deliveries, fan_out,
    get_delivery, list_deliveries, recover, replay, send_test, settle_delivery,
};
pub(in crate::use_case) use manage::remove_of_platform;
pub use manage::{
    IssuedWebhook, ReadsWebhooks, WritesWebhooks, create, delete, get, list,
    remove_ended_deliveries, rotate_secret, update,
};
