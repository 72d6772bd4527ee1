//! The lines of a change that is made at once: a credit for the rest of the old price, and a charge for the new one
//! (contract: "Proration").

use super::{Billing, plan};
use crate::billing::{
    Interval, InvoiceLine, LineProration, LineTax, LineType, Money, PlanTerms, PlannedChange,
    Price, Proration, Subscription,
};
use crate::kernel::{Code, Context, Error, InvoiceLineId, Result, Timestamp};
use crate::port::UnitOfWork;

/// The new price of a subscription.
pub(super) struct Target {
    pub(super) terms: PlanTerms,
    pub(super) interval: Interval,
    pub(super) quantity: u32,
}

impl Target {
    pub(super) const fn price(&self) -> Price<'_> {
        Price {
            terms: &self.terms,
            interval: self.interval,
            quantity: self.quantity,
        }
    }

    pub(super) fn is_price_of(&self, subscription: &Subscription) -> bool {
        self.price().id() == subscription.price_id && self.quantity == subscription.quantity
    }
}

/// A change that is made at once, with its lines.
pub(super) struct Quote {
    pub(super) lines: Vec<InvoiceLine>,
    pub(super) credit: i64,
    pub(super) charge: i64,
    pub(super) restarts_period: bool,
}

/// Returns the change of a subscription to a new price at an instant.
pub(super) fn plan_change(
    seen: &Subscription,
    target: &Target,
    at: Timestamp,
) -> Result<PlannedChange> {
    Ok(PlannedChange {
        from: seen.recurring()?,
        to: target.price().recurring()?,
        billed: seen.billed_money()?,
        period: seen.period()?,
        at,
    })
}

/// Computes the lines of a change that is made at once.
pub(super) async fn quote(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Subscription,
    target: &Target,
    change: &PlannedChange,
) -> Result<Quote> {
    let amounts = change.amounts()?;
    let amounts = amounts.ok_or_else(|| {
        Error::refused(
            Code::QuoteExpired,
            "The period of the subscription has ended. Request a new preview.",
        )
    })?;
    let old = plan::version(uow, billing, seen.tier, seen.plan_version).await?;
    let mut lines: Vec<_> = credit_line(cx, seen, &old, change.at)?
        .into_iter()
        .collect();
    lines.push(charge_line(
        cx,
        seen,
        target,
        change,
        amounts.charge,
        amounts.restarts_period,
    )?);
    Ok(Quote {
        lines,
        credit: amounts.credit,
        charge: amounts.charge,
        restarts_period: amounts.restarts_period,
    })
}

/// Returns the line that credits the rest of what the current period was invoiced with. Returns `None` if that is
/// nothing, or the instant is not in the period.
pub(super) fn credit_line(
    cx: &Context,
    seen: &Subscription,
    terms: &PlanTerms,
    at: Timestamp,
) -> Result<Option<InvoiceLine>> {
    let billed = seen.billed_money()?;
    let Some(rest) = Proration::new(seen.period()?, at).filter(|_| billed.minor() != 0) else {
        return Ok(None);
    };
    let amount = rest.rest_of(billed)?.negate().minor();
    Ok(Some(InvoiceLine {
        description: format!("Unused time of the {} plan", terms.name),
        unit_amount_decimal: billed.minor().to_string(),
        proration: Some(proration_of(rest, billed)),
        tax: LineTax {
            rate: seen.billed_tax,
            amount: 0,
        },
        ..line(cx, seen, terms, LineType::ProrationCredit, amount, at)
    }))
}

fn charge_line(
    cx: &Context,
    seen: &Subscription,
    target: &Target,
    change: &PlannedChange,
    amount: i64,
    restarts_period: bool,
) -> Result<InvoiceLine> {
    let unit = target.terms.amount(target.interval).minor();
    let full = target.price().recurring()?.amount;
    let mut charge = InvoiceLine {
        description: format!("Remaining time of the {} plan", target.terms.name),
        quantity: u64::from(target.quantity),
        unit_amount_decimal: unit.to_string(),
        ..line(
            cx,
            seen,
            &target.terms,
            LineType::ProrationCharge,
            amount,
            change.at,
        )
    };
    if restarts_period {
        let mut after = seen.clone();
        after.interval = target.interval;
        after.restart_period(change.at)?;
        charge.kind = LineType::Subscription;
        charge.description = format!("{} plan, per {}", target.terms.name, target.interval);
        charge.period_end = after.current_period_end;
    } else {
        let rest = Proration::new(change.period, change.at);
        charge.proration = rest.map(|rest| proration_of(rest, full));
    }
    Ok(charge)
}

fn proration_of(rest: Proration, full: Money) -> LineProration {
    LineProration {
        seconds_left: rest.seconds_left(),
        seconds_total: rest.period().seconds(),
        full_amount: full.minor(),
    }
}

/// Returns a line for the rest of the current period.
fn line(
    cx: &Context,
    seen: &Subscription,
    terms: &PlanTerms,
    kind: LineType,
    amount: i64,
    at: Timestamp,
) -> InvoiceLine {
    InvoiceLine {
        id: InvoiceLineId::generate(at, cx.entropy.as_ref()),
        kind,
        description: String::new(),
        amount,
        currency: seen.currency,
        quantity: 1,
        unit_amount_decimal: String::new(),
        tier: Some(terms.tier),
        metric: None,
        stack_id: None,
        period_start: at,
        period_end: seen.current_period_end,
        proration: None,
        tax: LineTax::default(),
    }
}
