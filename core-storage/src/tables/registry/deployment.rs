//! The table of deployments.

use core_domain::registry::{Deployment, DeploymentQuery, DeploymentStatus};

use crate::codec::{Int, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::value::Value;
use crate::{IndexPredicate, Tabular, table};

const IN_FLIGHT: IndexPredicate =
    IndexPredicate::OneOf("status", &["queued", "uploading", "deploying"]);

table! {
    Deployment in "deployments" {
        id: Text,
        idempotency_key: Text,
        platform_id: Text,
        user_id: Text,
        cf_deployment_id: Opt<Text>,
        project_name: Text,
        branch: Text,
        url: Opt<Text>,
        error_message: Opt<Text>,
        status: Text,
        file_count: Opt<Int>,
        total_bytes: Opt<Int>,
        started_at: Opt<Time>,
        completed_at: Opt<Time>,
        created_at: Time,
        updated_at: Time,
        content_hash: Opt<Text>,
        job_id: Opt<Text>,
        message: Opt<Text>,
        permalink: Opt<Text>,
        source_id: Opt<Text>,
        pinned_at: Opt<Time>,
    }
    unique {
        idempotency_key: [platform_id, idempotency_key, user_id],
        pinned: [platform_id] where [IndexPredicate::NotNull("pinned_at")]
    }
    index {
        [platform_id, created_at],
        [platform_id, created_at] where [IN_FLIGHT],
        [platform_id, branch, created_at],
        [job_id, created_at],
        [platform_id, status, created_at],
        [platform_id, branch, status, created_at],
        [created_at],
        [source_id] where [IndexPredicate::NotNull("source_id")],
        [updated_at] where [IN_FLIGHT, IndexPredicate::IsNull("job_id")],
    }
    select deployments
}

fn end_statuses() -> impl Iterator<Item = &'static DeploymentStatus> {
    DeploymentStatus::ALL
        .iter()
        .filter(|status| status.is_terminal())
}

fn deployments(query: &DeploymentQuery) -> Select {
    let deployments = Select::of(Deployment::TABLE).order_by_desc("created_at");
    let in_flight = || Filter::one_of("status", DeploymentStatus::IN_FLIGHT);
    match query {
        DeploymentQuery::All {
            in_flight: in_flight_only,
        } => deployments.filter_if(in_flight_only.then(in_flight)),
        DeploymentQuery::WithKey(key) => {
            Select::of(Deployment::TABLE).filter(Filter::eq("idempotency_key", key))
        }
        DeploymentQuery::WithKeyOf {
            idempotency_key,
            user_id,
        } => Select::of(Deployment::TABLE)
            .filter(Filter::eq("idempotency_key", idempotency_key))
            .filter(Filter::eq("user_id", user_id)),
        DeploymentQuery::InFlightOf {
            branch,
            changed_since: moved_since,
        } => deployments
            .filter(Filter::eq("branch", branch))
            .filter(in_flight())
            .filter(Filter::Or(vec![
                Filter::NotNull("job_id"),
                Filter::ge("updated_at", *moved_since),
            ])),
        DeploymentQuery::WithContent {
            branch,
            content_hash,
        } => deployments
            .filter(Filter::eq("branch", branch))
            .filter(Filter::eq("content_hash", content_hash)),
        DeploymentQuery::WithStoredUpload { failed_since } => deployments
            .filter(Filter::NotNull("job_id"))
            .filter(Filter::Or(vec![
                in_flight(),
                Filter::And(vec![
                    Filter::eq("status", &DeploymentStatus::Failure),
                    Filter::ge("updated_at", *failed_since),
                ]),
            ])),
        DeploymentQuery::OfJob(job) => deployments.filter(Filter::eq("job_id", job)),
        DeploymentQuery::Listed { branch, status } => deployments
            .filter_if(branch.as_ref().map(|branch| Filter::eq("branch", branch)))
            .filter_if(status.as_ref().map(|status| Filter::eq("status", status))),
        DeploymentQuery::ActiveOf(branch) => deployments
            .filter(Filter::eq("branch", branch))
            .filter(Filter::eq("status", &DeploymentStatus::Active)),
        DeploymentQuery::Pinned => deployments.filter(Filter::NotNull("pinned_at")),
        DeploymentQuery::Ended { before, after } => Select {
            after: after.as_ref().map(|(created_at, id)| {
                vec![Value::Int(created_at.millis()), Value::text(id.as_str())]
            }),
            ..Select::of(Deployment::TABLE)
                .filter(Filter::one_of("status", end_statuses()))
                .filter(Filter::lt("created_at", *before))
                .order_by("created_at")
        },
        DeploymentQuery::CopiesOf(source) => {
            Select::of(Deployment::TABLE).filter(Filter::eq("source_id", source))
        }
        DeploymentQuery::Stuck { unchanged_since } => deployments
            .filter(Filter::IsNull("job_id"))
            .filter(in_flight())
            .filter(Filter::lt("updated_at", *unchanged_since)),
    }
}
