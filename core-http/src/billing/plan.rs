//! The endpoint for plans.

use std::sync::Arc;

use core_domain::access::SignedInScope;
use core_domain::billing::Plan;
use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::{Billing, plan};

use crate::kernel::{Cx, Endpoint, Input, Output, get, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get("/plans", "listPlans")
            .summary("Lists the plans by rank, the month before the year.")
            .description("The response is an array. Each plan is in its newest version.")
            .reads_once(with(billing, list)),
    ]
}

async fn list(
    _: &Cx,
    billing: Arc<Billing>,
    scope: SignedInScope,
    _: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<Plan>>> {
    Ok(Output::new(plan::list(&scope, &billing)))
}
