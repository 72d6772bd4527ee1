//! Chooses the sender of webhooks: the one set on the builder, or HTTP.

use std::sync::Arc;

use core_domain::port::WebhookSender;

use crate::{SuiteBuilder, SuiteError};

/// Returns the sender that was chosen.
pub(crate) fn webhook_sender(builder: &SuiteBuilder) -> Result<Arc<dyn WebhookSender>, SuiteError> {
    match &builder.webhook_sender {
        Some(sender) => Ok(Arc::clone(sender)),
        None => built_in(builder),
    }
}

#[cfg(feature = "webhooks")]
fn built_in(builder: &SuiteBuilder) -> Result<Arc<dyn WebhookSender>, SuiteError> {
    let options = &builder.settings.webhooks;
    let sender = core_webhooks::HttpSender::new(options.targets(), options.timeout)?;
    Ok(Arc::new(sender))
}

#[cfg(not(feature = "webhooks"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn built_in(_: &SuiteBuilder) -> Result<Arc<dyn WebhookSender>, SuiteError> {
    Ok(Arc::new(crate::absent::MissingPart::WEBHOOKS))
}
