//! The forms of the portal.

use std::sync::Arc;

use core_domain::access::{PortalScope, PublicScope};
use core_domain::billing::{Interval, PlanTier};
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Error, Result, Timestamp};
use core_domain::port::transact;
use core_domain::registry::Tier;
use core_domain::use_case::billing::cancellation::{self, CancelSubscription};
use core_domain::use_case::billing::change::{self, ChangeTier, Effective};
use core_domain::use_case::billing::{Billing, portal, subscription};
use schemars::JsonSchema;
use serde::Deserialize;

use super::layout::{FORMS, PORTAL, ensure_own_form, form_row};
use super::pay::problem_of;
use super::portal::{Notice, PortalQuery, authorize, render};
use crate::billing::payment_method::PROVIDER_CODES;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, post, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        form_row(post(FORMS, "changeInPortalByForm"))
            .summary("Changes the plan or the cards of a customer in the portal.")
            .description("Redirects to the portal, or shows it again with the error.")
            .rate(RateClass::Strict)
            .refuses(PROVIDER_CODES)
            .refuses(&[
                Code::Unauthorized,
                Code::NotFound,
                Code::PaymentRequired,
                Code::InvalidState,
                Code::OperationInProgress,
                Code::LimitReached,
                Code::Conflict,
                Code::TierUnchanged,
                Code::PreviewExpired,
                Code::QuoteExpired,
                Code::PaymentMethodInUse,
            ])
            .plain(with(billing, submit)),
    ]
}

/// The action of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PortalAction {
    Change,
    Cancel,
    Keep,
    Add,
    Choose,
    Remove,
}

/// The fields of a form of the portal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PortalForm {
    /// The change.
    action: PortalAction,
    /// The new plan of a change.
    tier: Option<Tier>,
    /// The length of a period of the new plan. Default: the current one.
    interval: Option<Interval>,
    /// The instant for which the cost was shown. Default: now.
    proration_date: Option<Timestamp>,
    /// The payment method, or the test card to add.
    #[schemars(length(min = 1, max = 255))]
    method: Option<String>,
}

async fn submit(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: Input<(), (), PortalForm>,
) -> Result<PageOr> {
    ensure_own_form(cx, &billing)?;
    let scope = authorize(cx).await?;
    match make(cx, &billing, &scope, input.body).await {
        Ok(notice) => {
            let shown = format!("{PORTAL}?notice={}", notice.word());
            Ok(PageOr::To(Output::new(shown)))
        }
        Err(error) => {
            let problem = problem_of(&error).ok_or(error)?;
            let query = PortalQuery::default();
            render(cx, &billing, &scope, query, Some(problem)).await
        }
    }
}

async fn make(cx: &Cx, billing: &Billing, scope: &PortalScope, form: PortalForm) -> Result<Notice> {
    let store = cx.app.store.as_ref();
    let customer = &scope.customer();
    let method = || {
        let missing = || Error::invalid("method", "required", "is missing");
        form.method.as_deref().ok_or_else(missing)
    };
    match form.action {
        PortalAction::Change => {
            let missing = || Error::invalid("tier", "required", "is missing");
            let tier = form.tier.ok_or_else(missing)?;
            change_plan(cx, billing, scope, tier, &form).await?;
            Ok(Notice::PlanChanged)
        }
        PortalAction::Keep => {
            let current = current_tier(cx, scope).await?;
            change_plan(cx, billing, scope, current, &form).await?;
            Ok(Notice::Kept)
        }
        PortalAction::Cancel => {
            let own = &scope.billing();
            let cancelled = transact(store, |uow, _| {
                Box::pin(async move {
                    let command = CancelSubscription::default();
                    cancellation::cancel_of_platform(cx, own, uow, billing, command).await
                })
            })
            .await?;
            Ok(match cancelled.status.is_live() {
                true => Notice::Cancelled,
                false => Notice::Ended,
            })
        }
        PortalAction::Add => {
            portal::add_card(cx, store, billing, customer, method()?).await?;
            Ok(Notice::CardAdded)
        }
        PortalAction::Choose => {
            portal::choose_method(cx, store, billing, customer, method()?).await?;
            Ok(Notice::CardChosen)
        }
        PortalAction::Remove => {
            portal::remove_method(cx, store, billing, customer, method()?).await?;
            Ok(Notice::CardRemoved)
        }
    }
}

async fn current_tier(cx: &Cx, scope: &PortalScope) -> Result<Tier> {
    let own = &scope.billing();
    let current = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { subscription::of_platform(own, uow).await })
    })
    .await?;
    match current.tier {
        PlanTier::Free | PlanTier::Starter => Ok(Tier::Starter),
        PlanTier::Growth => Ok(Tier::Growth),
        PlanTier::Scale => Ok(Tier::Scale),
    }
}

async fn change_plan(
    cx: &Cx,
    billing: &Billing,
    scope: &PortalScope,
    tier: Tier,
    form: &PortalForm,
) -> Result<()> {
    let store = cx.app.store.as_ref();
    let own = &scope.billing();
    let command = ChangeTier {
        tier,
        interval: form.interval,
        platform_id: None,
        proration_date: form.proration_date,
        effective: Effective::Auto,
    };
    let pending = transact(store, |uow, _| {
        let command = command.clone();
        Box::pin(async move { change::change_tier(cx, own, uow, billing, command).await })
    })
    .await?;
    change::finish(cx, store, billing, &pending).await?;
    Ok(())
}
