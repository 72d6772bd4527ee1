//! Sends the suite's webhooks over HTTP/1.1: one request a connection, with TLS and the certificates of the system, no
//! redirect followed, and to public addresses alone unless the installation allows others.
//!
//! A host is resolved once, and the connection goes to one of the addresses that were checked: a name that means another
//! address the next time, or an address of this machine's network, leads nowhere.

mod connect;
mod sender;

pub use connect::TlsError;
pub use sender::HttpSender;
