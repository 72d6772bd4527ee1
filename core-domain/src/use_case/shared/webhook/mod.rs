//! Webhooks: managed by those whose changes they tell, filled by the sealer of the audit, and emptied by a dispatcher.
//!
//! A message is written in the unit of work that seals the change it tells of, once for each webhook. It is sent at least
//! once, after that unit and in no promised order, by [`claim_deliveries`] and [`settle_delivery`]: whoever claims a
//! message has it for a minute, so several nodes may send at once, and what one that died had claimed comes again.

mod claim;
mod deliveries;
mod fan_out;
mod manage;
mod remove;
mod scope;
mod settle;

pub use claim::{ClaimedDelivery, DispatchLimits, claim_deliveries};
pub use deliveries::{Recovered, get_delivery, list_deliveries, recover, replay, send_test};
pub use fan_out::fan_out;
pub use manage::{IssuedWebhook, create, delete, get, list, rotate_secret, update};
pub use remove::remove_ended_deliveries;
pub(in crate::use_case) use remove::remove_of_platform;
pub use scope::{ReadsWebhooks, WritesWebhooks};
pub use settle::{DeliveryResult, settle_delivery};
