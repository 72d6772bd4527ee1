//! The transport of requests: connections, attempts, uploads and event streams.

pub(crate) mod connector;
pub(crate) mod event_stream;
pub(crate) mod random;
pub(crate) mod retry;
pub(crate) mod sse;
pub(crate) mod transport;
pub(crate) mod upload;
