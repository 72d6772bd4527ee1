//! The check of the infrastructure provider.

use core_domain::port::{Cause, Infrastructure};
use core_domain::registry::ResourceType;
use tokio::time::timeout;

use super::{CHECK_TIMEOUT, Finding};
use crate::SuiteBuilder;
use crate::infrastructure::infrastructure;

/// The owner of no object, for a question to the provider that has an empty answer.
const NOBODY: &str = "doctor";

impl SuiteBuilder {
    /// Asks the provider of infrastructure, unless it is this machine.
    pub(super) async fn infrastructure_finding(&self) -> Finding {
        let subject = "infrastructure";
        match infrastructure(self, None) {
            Ok(Some(provider)) => provider_finding(subject, provider.as_ref()).await,
            Ok(None) => Finding::fine(subject, "created on this machine, in the data folder"),
            Err(error) => Finding::failure(subject, Cause::new(error).to_string()),
        }
    }
}

/// Asks the provider for the objects of an unknown owner, which shows whether it accepts the credentials.
async fn provider_finding(subject: &'static str, provider: &dyn Infrastructure) -> Finding {
    let asked = provider.list_owned(NOBODY, ResourceType::Kv, None);
    match timeout(CHECK_TIMEOUT, asked).await {
        Ok(Ok(_)) => Finding::fine(subject, "the provider accepts the credentials"),
        Ok(Err(error)) => {
            let text = format!(
                "{}; check the network, the account and its token",
                Cause::new(error)
            );
            Finding::failure(subject, text)
        }
        Err(_) => Finding::failure(subject, "the provider does not respond; check the network"),
    }
}

#[cfg(test)]
mod tests {
    use core_domain::port::{OwnedObjects, ProviderError};
    use core_domain::testing::MockInfrastructure;

    use super::*;
    use crate::doctor::Severity;

    #[tokio::test]
    async fn a_provider_that_refuses_the_credentials_is_a_failure() {
        for (outcome, severity, part) in [
            (Ok(OwnedObjects::default()), Severity::Fine, "accepts"),
            (
                Err(ProviderError::Permanent("wrong token".to_owned())),
                Severity::Failure,
                "wrong token; check the network, the account and its token",
            ),
        ] {
            let mut provider = MockInfrastructure::new();
            let listed = provider.expect_list_owned();
            listed.return_once(move |_, _, _| outcome);
            let found = provider_finding("infrastructure", &provider).await;
            assert_eq!(found.severity, severity, "{found}");
            assert!(found.text.contains(part), "{found}");
        }
    }

    #[tokio::test]
    async fn without_an_account_infrastructure_is_created_on_this_machine() {
        let found = SuiteBuilder::default().infrastructure_finding().await;
        assert_eq!(found.severity, Severity::Fine, "{found}");
    }
}
