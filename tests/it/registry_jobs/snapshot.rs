//! The state of a platform, at the provider and in the registry.

use std::collections::BTreeSet;

use core_domain::kernel::PlatformId;
use core_domain::port::Infrastructure;
use core_domain::registry::{
    CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, FeatureActivation,
    FeatureActivationQuery, WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery,
};

use super::others::{BY_HAND, Others, served_hostnames, target_of};
use crate::world::Platforms;

/// The state of a platform, at the provider and in the registry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    pub(super) objects: BTreeSet<String>,
    /// Names and statuses of the records that are not deleted.
    pub(super) entries: BTreeSet<(String, String)>,
    pub(super) features: BTreeSet<(String, String)>,
    pub(super) stacks: BTreeSet<(String, String)>,
    /// Hostnames and statuses of the custom domains.
    pub(super) domains: BTreeSet<(String, String)>,
    /// The hostnames that the provider serves.
    pub(super) served: BTreeSet<String>,
    /// Everything that does not belong to the platform.
    pub(super) others: Others,
    /// Hostnames and statuses of the DNS records.
    pub(super) records: BTreeSet<(String, String)>,
    /// The hostnames that the provider routes.
    pub(super) routed: BTreeSet<String>,
}

impl Snapshot {
    pub(super) async fn of(world: &Platforms, platform: &PlatformId) -> Self {
        let mut entries = world.entries(platform, false).await;
        entries.retain(|entry| entry.cf_name.as_str() != BY_HAND);
        let features = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: true,
        };
        let mut features: Vec<FeatureActivation> = world.list(features).await;
        features.retain(|feature| feature.platform_id == *platform);
        let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        let mut stacks: Vec<WorkspaceStack> = world.list(stacks).await;
        stacks.retain(|stack| stack.platform_id == *platform);
        let mut domains: Vec<CustomDomain> =
            world.list(CustomDomainQuery::All { deleted: true }).await;
        domains.retain(|domain| domain.platform_id == *platform);
        let mut records: Vec<DnsRecord> = world.list(DnsRecordQuery::All { deleted: true }).await;
        records.retain(|record| record.platform_id == *platform);
        let served = served_hostnames(world, &domains).await;
        let mut routed = BTreeSet::new();
        for record in &records {
            let hostname = record.hostname.as_str();
            let found = world.provider.get_route(hostname).await.unwrap();
            let target = target_of(world, record).await;
            let leads = |route: &str| target.as_ref().is_some_and(|target| target.name == route);
            let found = found.filter(|route| leads(&route.target));
            routed.extend(found.map(|_| hostname.to_owned()));
        }
        let told = |name: &str, status: &str| (name.to_owned(), status.to_owned());
        Self {
            objects: world.objects(platform).await,
            entries: entries
                .iter()
                .map(|entry| told(entry.cf_name.as_str(), entry.status.as_str()))
                .collect(),
            features: features
                .iter()
                .map(|feature| told(feature.feature_id.as_str(), feature.status.as_str()))
                .collect(),
            stacks: stacks
                .iter()
                .map(|stack| told(stack.id.as_str(), stack.status.as_str()))
                .collect(),
            domains: domains
                .iter()
                .map(|domain| told(domain.hostname.as_str(), domain.status.as_str()))
                .collect(),
            served,
            others: Others::beside(world, platform).await,
            records: records
                .iter()
                .map(|record| told(record.hostname.as_str(), record.status.as_str()))
                .collect(),
            routed,
        }
    }

    /// Returns whether the provider and the registry agree.
    pub(super) fn agrees(&self) -> bool {
        let active = |all: &BTreeSet<(String, String)>| -> BTreeSet<String> {
            let active = all.iter().filter(|(_, status)| status == "active");
            active.map(|(name, _)| name.clone()).collect()
        };
        let named = active(&self.entries);
        let all_there = named == self.objects && named.len() == self.entries.len();
        let all_served = active(&self.domains) == self.served;
        all_there && all_served && active(&self.records) == self.routed
    }
}
