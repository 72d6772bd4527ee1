//! The Stripe payment provider: [`StripePayments`] implements the payments port with Stripe's API.
//!
//! The suite decides about subscriptions and amounts. Stripe knows customers, their cards, and one invoice for each
//! invoice of the suite, with the same lines and the same amount due. Stripe advances no invoice on its own, and sends no
//! mails about them.
//!
//! # The key
//! A restricted key needs these permissions: Customers, Setup Intents, Payment Methods, Invoices and Customer portal, all
//! *Write*, Charges and Refunds, Payment Intents and Events *Read*. The prefix of the key decides the mode, test or live;
//! objects and events of the other mode are refused. Neither the key nor any other secret appears in logs, errors or `Debug`
//! output.
//!
//! # Changes
//! Every change has an idempotency key, so that a repeated change has one effect. Stripe knows a key for a day: an older
//! invoice is looked up before it is created. A failure of the server can be stored under a key and then repeats for
//! ever. The effect of the change is looked up in this case, and without one the change is sent with a new key. A lost
//! connection, a conflict and a failure of the server are retried with the same key.
//!
//! # Requests
//! All calls of a process share one rate limiter: [`StripeOptions::requests`] for the account and
//! [`StripeOptions::endpoint_requests`] for each endpoint. Requests of callers who wait go before those of jobs
//! ([`StripePayments::for_jobs`]). After a response with status 429, no request is sent until the time in it has passed.
//! After several failures in a row, no request is sent for some time. Logs contain the `request_id` of each request.
//!
//! # Amounts
//! Stripe's minor units are not always those of ISO 4217. Amounts are converted, and refused if Stripe cannot charge
//! exactly the same amount, for example 0.001 dinars.
//!
//! # Webhooks
//! The version of the webhook endpoint must have the same name as that of the adapter, `endive`. Two secrets can be valid
//! at once while one is replaced.

mod breaker;
mod call;
mod client;
mod currency;
mod customer;
mod dispute;
mod error;
mod event;
mod invoice;
mod method;
mod options;
mod payments;
mod rate;
mod refund;
mod session;
mod webhook;

pub use client::TlsError;
pub use options::{API_BASE_URL, OptionError, StripeAccount, StripeOptions};
pub use payments::{StripeError, StripePayments};
