//! The table of feature activations.

use core_domain::registry::{FeatureActivation, FeatureActivationQuery, FeatureStatus};

use crate::codec::{Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

table! {
    FeatureActivation in "feature_activations" {
        id: Text,
        platform_id: Text,
        entity_id: Text,
        feature_id: Text,
        feature_version: Text,
        environment: Text,
        status: Text,
        activated_at: Opt<Time>,
        deactivated_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
        provision_job_id: Opt<Text>,
        service_url: Opt<Text>,
        package: Text,
        stack_id: Opt<Text>,
        config: Opt<Json>,
    }
    unique { feature: [entity_id, environment, feature_id] }
    index { [platform_id, created_at], [platform_id, entity_id, created_at] }
    select feature_activations
}

fn feature_activations(query: &FeatureActivationQuery) -> Select {
    let features = Select::of(FeatureActivation::TABLE);
    let with = |wanted: fn(&FeatureStatus) -> bool| {
        let statuses = FeatureStatus::ALL.iter().filter(|status| wanted(status));
        Filter::one_of("status", statuses)
    };
    match query {
        FeatureActivationQuery::OfEntity { entity_id, in_use } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter_if(in_use.then(|| with(|status| status.is_in_use())))
            .order_by_desc("created_at"),
        FeatureActivationQuery::Exactly {
            entity_id,
            environment,
            feature_id,
        } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter(Filter::eq("environment", environment))
            .filter(Filter::eq("feature_id", feature_id)),
        FeatureActivationQuery::ByFeature {
            entity_id,
            environment,
            active,
        } => features
            .filter(Filter::eq("entity_id", entity_id))
            .filter(Filter::eq("environment", environment))
            .filter_if(active.then(|| Filter::eq("status", &FeatureStatus::Active)))
            .order_by("feature_id"),
        FeatureActivationQuery::OfPlatform {
            environment,
            inactive,
        } => features
            .filter_if(environment.as_ref().map(|e| Filter::eq("environment", e)))
            .filter_if((!inactive).then(|| with(|status| *status != FeatureStatus::Inactive)))
            .order_by_desc("created_at"),
    }
}
