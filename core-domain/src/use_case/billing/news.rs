//! The mails of billing. Each is queued in the unit of work that causes it, and leads to the page of its invoice.

use super::Billing;
use crate::billing::usage::{AlertSubject, UsageAlert};
use crate::billing::{Card, Currency, Customer, Invoice, Money, PlanTerms, Subscription};
use crate::kernel::{Context, Result, Timestamp};
use crate::port::UnitOfWork;
use crate::use_case::shared::{LinkMail, queue_mail};

/// The news that a customer gets by mail.
#[derive(Clone, Copy, Debug)]
pub(super) enum News<'a> {
    /// An invoice is final and will be charged.
    Invoiced(&'a Invoice),
    /// An invoice was paid.
    Paid(&'a Invoice),
    /// A charge of an invoice was declined, or there is no card.
    Declined(&'a Invoice),
    /// The owner of the card must confirm a charge.
    MustConfirm(&'a Invoice),
    /// An invoice could not be collected.
    GivenUp(&'a Invoice),
    /// A subscription has ended.
    Ended(&'a Subscription),
    /// A trial ends soon.
    TrialEnds {
        /// The subscription whose trial it is.
        subscription: &'a Subscription,
        /// `true` if there is a card for the first payment.
        has_method: bool,
    },
    /// The default card expires soon.
    CardExpires(&'a Card),
    /// The usage of a platform has reached a part of the included quantity, or its price a part of the customer's limit.
    UsageReached(&'a UsageAlert, Currency),
    /// The subscription moves to another version of a plan.
    PlanMoves {
        /// The subscription with the planned move.
        subscription: &'a Subscription,
        /// The terms before and after the move.
        plans: [&'a PlanTerms; 2],
    },
}

impl News<'_> {
    /// Returns the subject, the first paragraph and the last paragraph.
    fn words(self) -> Result<[String; 3]> {
        Ok(match self {
            Self::Invoiced(invoice) => {
                let (number, due) = (number_of(invoice), amount(invoice, invoice.amount_due)?);
                let then = match invoice.amount_due {
                    0 => "Nothing has to be paid.",
                    _ => "It will be charged to your card.",
                };
                [
                    format!("Invoice {number}"),
                    format!("Invoice {number} is for {due}. {then}"),
                    "You can see the lines of the invoice on its page.".to_owned(),
                ]
            }
            Self::Paid(invoice) => {
                let (number, paid) = (number_of(invoice), amount(invoice, invoice.amount_paid)?);
                [
                    format!("Receipt for invoice {number}"),
                    format!("We received {paid} for invoice {number}. Thank you."),
                    "Keep this mail for your records.".to_owned(),
                ]
            }
            Self::Declined(invoice) => {
                let (number, due) = (number_of(invoice), amount(invoice, invoice.amount_due)?);
                let then = match invoice.next_payment_attempt_at {
                    Some(at) => format!("We will try again on {}.", day(at)),
                    None => "We will not try this card again.".to_owned(),
                };
                [
                    format!("The payment of invoice {number} failed"),
                    format!("The charge of {due} for invoice {number} failed. {then}"),
                    "Pay the invoice on its page, or add another card. Otherwise the platform will be suspended."
                        .to_owned(),
                ]
            }
            Self::MustConfirm(invoice) => {
                let (number, due) = (number_of(invoice), amount(invoice, invoice.amount_due)?);
                [
                    format!("Confirm the payment of invoice {number}"),
                    format!(
                        "The bank asks the owner of the card to confirm the charge of {due} for invoice {number}."
                    ),
                    "Open the page of the invoice to pay it. Otherwise the platform will be suspended."
                        .to_owned(),
                ]
            }
            Self::GivenUp(invoice) => {
                let (number, due) = (number_of(invoice), amount(invoice, invoice.amount_due)?);
                [
                    format!("Invoice {number} is not paid, and the platform is suspended"),
                    format!("Invoice {number} for {due} could not be collected within seven days."),
                    "Pay every open invoice to end the suspension.".to_owned(),
                ]
            }
            Self::Ended(subscription) => {
                let at = subscription.ended_at.map(day).unwrap_or_default();
                [
                    "Your subscription has ended".to_owned(),
                    format!(
                        "The subscription to the plan {} ended on {at}.",
                        subscription.tier
                    ),
                    "Usage before the end may still be invoiced.".to_owned(),
                ]
            }
            Self::TrialEnds {
                subscription,
                has_method,
            } => trial_ends(subscription, has_method)?,
            Self::CardExpires(card) => {
                let (last4, month, year) = (&card.last4, card.exp_month, card.exp_year);
                [
                    format!("Your card ending in {last4} expires at the end of {month:02}/{year}"),
                    format!(
                        "The card ending in {last4}, which pays for your subscription, expires at the end of {month:02}/{year}."
                    ),
                    "Add another card before, and make it the default.".to_owned(),
                ]
            }
            Self::UsageReached(alert, currency) => usage_reached(alert, currency)?,
            Self::PlanMoves {
                subscription,
                plans,
            } => plan_moves(subscription, plans)?,
        })
    }

    const fn invoice(&self) -> Option<&Invoice> {
        match self {
            Self::Invoiced(invoice)
            | Self::Paid(invoice)
            | Self::Declined(invoice)
            | Self::MustConfirm(invoice)
            | Self::GivenUp(invoice) => Some(invoice),
            Self::Ended(_)
            | Self::TrialEnds { .. }
            | Self::CardExpires(_)
            | Self::UsageReached(..)
            | Self::PlanMoves { .. } => None,
        }
    }
}

/// Returns the texts about the end of a trial.
fn trial_ends(subscription: &Subscription, has_method: bool) -> Result<[String; 3]> {
    let end = day(subscription.current_period_end);
    let price = Money::new(subscription.amount.into(), subscription.currency)?;
    let then = match (subscription.cancel_at_period_end, has_method) {
        (true, _) => "The subscription ends with it.".to_owned(),
        (false, true) => format!("Your card will then be charged {price} and taxes."),
        (false, false) => {
            "There is no card yet. Without one, the subscription is paused then.".to_owned()
        }
    };
    Ok([
        format!("Your trial ends on {end}"),
        format!(
            "The trial of the plan {} ends on {end}. {then}",
            subscription.tier
        ),
        "You can change or cancel the plan at any time before.".to_owned(),
    ])
}

/// Returns the texts about usage that has reached a part of a limit.
fn usage_reached(alert: &UsageAlert, currency: Currency) -> Result<[String; 3]> {
    let (threshold, start) = (alert.threshold, day(alert.period_start));
    let AlertSubject::Metric(metric) = alert.metric else {
        let money = |minor: u64| Money::new(minor.into(), currency);
        let (spent, limit) = (money(alert.quantity)?, money(alert.limit)?);
        return Ok([
            format!("The price of your usage has reached {threshold} % of your limit"),
            format!(
                "Usage above what the plan includes costs {spent} and taxes since {start}. Your limit for alerts is {limit}."
            ),
            "The limit only triggers alerts. It does not stop the platform.".to_owned(),
        ]);
    };
    let (title, quantity, limit) = (metric.title(), alert.quantity, alert.limit);
    Ok([
        format!("{threshold} % of what your plan includes is used: {title}"),
        format!(
            "{title}: your platform has used {quantity} of the {limit} that its plan includes in the period since {start}."
        ),
        "A plan with a price bills usage above the included quantity. A trial and the free plan stop there."
            .to_owned(),
    ])
}

/// Returns the texts about the move to another version of a plan.
fn plan_moves(subscription: &Subscription, plans: [&PlanTerms; 2]) -> Result<[String; 3]> {
    let interval = subscription.interval;
    let price = |terms: &PlanTerms| terms.amount(interval).times(subscription.quantity);
    let [from, to] = plans;
    let (old, new) = (price(from)?, price(to)?);
    let start = subscription.migration.as_ref();
    let start = start.map(|migration| day(migration.not_before));
    let start = start.unwrap_or_default();
    Ok([
        format!("Your plan {} changes", from.name),
        format!(
            "Your subscription moves from the plan {} for {old} per {interval} to the plan {} for {new} per {interval}, without taxes. It moves with the first period that begins on {start} or later.",
            from.name, to.name
        ),
        "The new plan can include other quantities and limits. Until then, nothing changes. You can choose another plan or cancel at any time."
            .to_owned(),
    ])
}

fn number_of(invoice: &Invoice) -> &str {
    invoice.number.as_deref().unwrap_or("without a number")
}

fn amount(invoice: &Invoice, minor: i64) -> Result<String> {
    Ok(Money::new(minor.into(), invoice.currency)?.to_string())
}

fn day(at: Timestamp) -> String {
    let mut text = at.to_rfc3339();
    text.truncate("2026-01-01".len());
    text
}

/// Queues a mail to a customer. It is sent after the commit.
pub(super) async fn tell(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    customer: &Customer,
    news: News<'_>,
) -> Result<()> {
    let [subject, intro, note] = news.words()?;
    let letter = LinkMail {
        subject: &subject,
        intro: &intro,
        button: "Open the invoice",
        note: &note,
    };
    let page = news.invoice();
    let page = page.and_then(|invoice| billing.pages.invoice_url(&invoice.id));
    let mail = letter.to(&customer.email, page.as_deref());
    queue_mail(cx, uow, &billing.cipher, &mail).await
}
