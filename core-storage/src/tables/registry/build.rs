//! The table of builds.

use core_domain::registry::{Build, BuildQuery};

use crate::codec::{Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

table! {
    Build in "builds" {
        id: Text,
        platform_id: Text,
        environment: Text,
        repo_name: Opt<Text>,
        last_commit_sha: Opt<Text>,
        cf_deployment_id: Opt<Text>,
        build_url: Opt<Text>,
        build_status: Text,
        triggered_by: Text,
        triggered_at: Time,
        completed_at: Opt<Time>,
        updated_at: Time,
        created_at: Time,
        job_id: Opt<Text>,
    }
    unique { job: [job_id] }
    index { [platform_id, created_at], [platform_id, environment, created_at], [created_at] }
    select builds
}

fn builds(query: &BuildQuery) -> Select {
    let newest_first = || Select::of(Build::TABLE).order_by_desc("created_at");
    match query {
        BuildQuery::All => newest_first(),
        BuildQuery::In(environment) => {
            newest_first().filter(Filter::eq("environment", environment))
        }
        BuildQuery::UnchangedSince(instant) => Select::of(Build::TABLE)
            .filter(Filter::lt("created_at", *instant))
            .filter(Filter::lt("updated_at", *instant))
            .order_by("created_at"),
        BuildQuery::OfJob(job) => Select::of(Build::TABLE).filter(Filter::eq("job_id", job)),
    }
}
