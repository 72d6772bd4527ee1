//! The logs of workers and sites, from the tails of Cloudflare: WebSockets that report each request after it has ended.
//! There are no earlier lines.

mod lines;
mod message;
mod reader;
mod tail;
