//! The table of the CLI service.

use core_domain::cli::{DeployPlan, DeployPlanQuery};

use crate::codec::{Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

table! {
    DeployPlan in "deploy_plans" {
        id: Text,
        platform_id: Text,
        actor_id: Text,
        created_at: Time,
        expires_at: Time,
    }
    index { [platform_id, expires_at], [expires_at] }
    select deploy_plans
}

fn deploy_plans(query: &DeployPlanQuery) -> Select {
    let plans = Select::of(DeployPlan::TABLE);
    match query {
        DeployPlanQuery::ValidAt(now) => plans.filter(Filter::gt("expires_at", *now)),
        DeployPlanQuery::ExpiredAt(now) => plans
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at")
            .skip_unreachable(),
    }
}
