//! A stateful fake of the part of Stripe's API that the suite uses, for tests of API clients.
//!
//! It listens on the loopback interface, keeps one account in memory and responds like the API: with its objects, error
//! bodies, lists, idempotency keys and signed webhooks. Faults are scripted for matching requests, or random with a
//! seed. Its clock and its ids are deterministic.
//!
//! # Operations
//! The fake supports the operations that the adapter and its tests call. It refuses all other requests, and parameters
//! that it does not simulate. Requests must be encoded as forms.
//!
//! ```text
//! POST /v1/customers
//! GET /v1/customers
//! GET /v1/customers/{id}
//! POST /v1/customers/{id}
//!
//! POST /v1/setup_intents
//! GET /v1/setup_intents/{id}
//! POST /v1/setup_intents/{id}/confirm
//!
//! GET /v1/payment_methods
//! POST /v1/payment_methods
//! GET /v1/payment_methods/{id}
//! POST /v1/payment_methods/{id}/attach
//! POST /v1/payment_methods/{id}/detach
//!
//! POST /v1/invoices
//! GET /v1/invoices
//! GET /v1/invoices/{id}
//! DELETE /v1/invoices/{id}
//! POST /v1/invoices/{id}/add_lines
//! GET /v1/invoices/{id}/lines
//! POST /v1/invoices/{id}/finalize
//! POST /v1/invoices/{id}/pay
//! POST /v1/invoices/{id}/void
//! POST /v1/invoices/{id}/mark_uncollectible
//!
//! GET /v1/payment_intents/{id}
//! POST /v1/payment_intents/{id}/confirm
//!
//! POST /v1/refunds
//! GET /v1/refunds
//! GET /v1/refunds/{id}
//!
//! POST /v1/billing_portal/sessions
//! GET /v1/events
//! GET /v1/events/{id}
//! POST /v1/webhook_endpoints
//! ```
//!
//! # Cards
//! Only Stripe's test cards exist, by number or by the id of the payment method that stands for the card:
//!
//! ```text
//! number            payment method                            attaching             charging
//! 4242424242424242  pm_card_visa                              succeeds              succeeds
//! 5555555555554444  pm_card_mastercard                        succeeds              succeeds
//! 4000000000000002  pm_card_chargeDeclined                    generic_decline
//! 4000000000009995  pm_card_chargeDeclinedInsufficientFunds   insufficient_funds
//! 4000000000009987  pm_card_chargeDeclinedLostCard            lost_card
//! 4000000000009979  pm_card_chargeDeclinedStolenCard          stolen_card
//! 4000000000000069  pm_card_chargeDeclinedExpiredCard         expired_card
//! 4000000000000341  pm_card_chargeCustomerFail                succeeds              generic_decline
//! 4000002760003184  pm_card_authenticationRequired            succeeds              must be confirmed
//! ```

#![recursion_limit = "256"]

mod card;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod customer;
mod dispute;
mod endpoint;
mod envelope;
mod event;
mod expand;
mod fault;
mod handle;
mod idempotency;
mod invoice;
mod journal;
mod limit;
mod page;
mod params;
mod pay;
mod payment_intent;
mod payment_method;
mod portal;
mod refund;
mod request;
mod router;
mod server;
mod settings;
mod setup_intent;
mod shared;
mod state;
mod webhook;

pub use card::ChargeEnd;
pub use fault::{Fault, Matcher, Pace, Silence};
pub use handle::FakeStripe;
pub use journal::{Exchange, RecordedRequest};
pub use limit::RateLimit;
pub use settings::{API_VERSION, Settings};
pub use webhook::SignedEvent;
