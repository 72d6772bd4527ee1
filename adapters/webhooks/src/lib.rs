//! Sends the suite's webhooks over HTTP/1.1. Each request uses a new connection. TLS uses the certificates of the
//! operating system, and redirects are not followed. Webhooks go only to public addresses, unless the installation
//! allows others.
//!
//! A host is resolved once, and the connection goes to one of the addresses that were checked. An attacker therefore
//! cannot reach the internal network with a name that later resolves to another address.

mod connect;
mod sender;

pub use connect::TlsError;
pub use sender::HttpSender;
