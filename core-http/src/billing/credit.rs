//! The endpoint for credits.

use std::sync::Arc;

use core_domain::access::OperatorScope;
use core_domain::billing::{CreditGrant, GrantCredit};
use core_domain::kernel::{Code, Result, Stored};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::{Billing, credit};
use http::StatusCode;

use crate::kernel::{Cx, Endpoint, Input, post, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/operator/credits", "grantCredit")
            .summary("Grants a credit to a customer.")
            .description(
                "Credits pay for later invoices: those with a lower priority first, then those \
                 that expire first.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::NotFound, Code::CurrencyMismatch])
            .writes(with(billing, grant)),
    ]
}

async fn grant(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), GrantCredit>,
) -> Result<Stored<CreditGrant>> {
    credit::grant(cx, &scope, uow, &billing, input.body).await
}
