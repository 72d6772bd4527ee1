//! Endpoints with which operators set the tier or the trial of a subscription.

use std::sync::Arc;

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, Result, SubscriptionId};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::trial::{self, OverrideSubscription, StartTrial};

use super::view::SubscriptionView;
use crate::kernel::{Cx, Endpoint, Input, Versioned, patch, post, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        patch(
            "/operator/subscriptions/{id}/override",
            "overrideSubscription",
        )
        .summary("Sets the tier or the end of the trial without a charge or a credit.")
        .description(
            "Credits for the rest of the period are still computed from what was paid for it.",
        )
        .refuses(&[
            Code::NotFound,
            Code::InvalidState,
            Code::OperationInProgress,
        ])
        .if_match()
        .writes(with(billing, override_terms)),
        post("/operator/subscriptions/{id}/trial", "startTrial")
            .summary("Starts or extends the trial of a subscription.")
            .description(
                "The days are counted from now, or from the end of the current trial. Time that \
                 is paid and not used becomes a balance of the customer.",
            )
            .refuses(&[
                Code::NotFound,
                Code::InvalidState,
                Code::OperationInProgress,
            ])
            .if_match()
            .writes(with(billing, start_trial)),
    ]
}

async fn override_terms(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(SubscriptionId,), (), OverrideSubscription>,
) -> Result<Versioned<SubscriptionView>> {
    let (id, command) = (&input.path.0, input.body);
    let changed = trial::override_terms(cx, &scope, uow, &billing, id, command).await?;
    Ok(SubscriptionView::response(&changed))
}

async fn start_trial(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(SubscriptionId,), (), StartTrial>,
) -> Result<Versioned<SubscriptionView>> {
    let (id, command) = (&input.path.0, input.body);
    let changed = trial::start_trial(cx, &scope, uow, &billing, id, command).await?;
    Ok(SubscriptionView::response(&changed))
}
