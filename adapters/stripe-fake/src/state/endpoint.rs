//! Webhook endpoints.

/// A receiver of webhooks.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    /// The types of events. `*` stands for all.
    pub(crate) kinds: Vec<String>,
}
