//! `platform.reconcile`: compares what the registry knows of a platform with what the provider has, a step for every type
//! of resource, one for DNS records and one for custom domains; mends what differs when asked to. What holds data is never removed unless that
//! was asked for, and what nobody knows is only reported.

use super::reconcile_dns::CompareRecords;
use super::reconcile_domains::CompareDomains;
use super::reconcile_input::{ComparesResources, Reconciliation};
use super::reconcile_resources::CompareResources;
use crate::registry::DEFAULT_RESOURCES;
use crate::use_case::provisioning::{JobKind, Steps};

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct Reconcile {
    /// Where auth workers reach IAM.
    pub(in crate::use_case::registry) iam_url: String,
}

impl ComparesResources for Reconcile {
    fn iam_url(&self) -> &str {
        &self.iam_url
    }
}

impl JobKind for Reconcile {
    const HOOKS: bool = false;
    const NAME: &'static str = "platform.reconcile";
    const VERSION: i64 = 2;
    type Input = Reconciliation;

    fn steps() -> Steps<Self> {
        let in_order = DEFAULT_RESOURCES.map(|(of_type, _)| CompareResources(of_type));
        let resources = Steps::new().then_all(in_order);
        resources.then(CompareRecords).then(CompareDomains)
    }
}
