//! Service tokens: issued for services, checked by services, and the keys behind them.

mod issue;
mod keys;
mod verify;

pub use issue::{IssuedServiceToken, NewServiceToken, issue};
pub use keys::{look_after_keys, make_next_key, next_key_is_due, published};
pub use verify::verify;
