//! The page on which an invoice is paid. Its address contains the id of the invoice with a signature, so that it can be
//! mailed, and works without a session and while the platform is suspended. With the client secret of a setup intent in its
//! address, it is the page on which a test card is entered.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::billing::PaymentProvider;
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Error, Result};
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::card_entry::{self, CardEntry};
use core_domain::use_case::billing::pay::{self, PayableInvoice};
use http::StatusCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{document, title};
use super::layout::{alert, ensure_own_form, form_row, notice, page, page_row};
use crate::billing::payment_method::PROVIDER_CODES;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, status_of, with};

const PATH: &str = "/pay/{token}";

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        page_row(get(PATH, "payPage"))
            .summary("Shows an invoice, with a form to pay it.")
            .description(
                "The address is the `hostedInvoiceUrl` of the invoice. It works without a \
                 session, also while the platform is suspended. With Stripe, it links to the page of \
                 the invoice at Stripe, where a charge is confirmed and another card can be used. \
                 On the embedded provider, the \
                 `clientSecret` of a setup intent as the token shows a form to add a test card.",
            )
            .refuses(&[Code::NotFound])
            .plain(with(billing, show)),
        form_row(post(PATH, "payInvoiceByForm"))
            .summary("Pays an invoice.")
            .description(
                "Charges the default payment method of the customer or, on the embedded \
                 provider, a test card. With the `clientSecret` of a setup intent as the token, \
                 adds the test card to the customer. Redirects to the page.",
            )
            .rate(RateClass::Strict)
            .refuses(PROVIDER_CODES)
            .refuses(&[
                Code::NotFound,
                Code::InvalidState,
                Code::PaymentRequired,
                Code::OperationInProgress,
                Code::LimitReached,
                Code::Conflict,
            ])
            .plain(with(billing, submit)),
    ]
}

/// The test cards that the page of the embedded provider offers.
pub(super) const TEST_CARDS: [(&str, &str); 4] = [
    ("pm_card_visa", "4242 4242 4242 4242: succeeds"),
    (
        "pm_card_authenticationRequired",
        "4000 0027 6000 3184: must be confirmed",
    ),
    (
        "pm_card_chargeCustomerFail",
        "4000 0000 0000 0341: is declined later",
    ),
    (
        "pm_card_chargeDeclined",
        "4000 0000 0000 0002: is declined at once",
    ),
];

async fn show(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: Input<(String,)>,
) -> Result<PageOr> {
    let token = &input.path.0;
    if card_entry::is_client_secret(token) {
        let entry = card_entry::find(cx.app.store.as_ref(), &billing, token).await?;
        return Ok(render_entry(&billing, &entry, StatusCode::OK, None));
    }
    let payable = pay::find(cx.app.store.as_ref(), &billing, token).await?;
    render(&billing, &payable, StatusCode::OK, None).await
}

async fn render(
    billing: &Billing,
    payable: &PayableInvoice,
    status: StatusCode,
    problem: Option<&str>,
) -> Result<PageOr> {
    let invoice = &payable.invoice;
    let provider_page = pay::provider_page(billing, payable).await;
    let content = html! {
        @if let Some(problem) = problem { (alert(problem)) }
        @if payable.is_payable() {
            (form(billing, payable, provider_page.as_deref(), problem.is_some()))
        }
        @else { (notice("Nothing has to be paid.")) }
        (document(invoice)?)
    };
    Ok(page(billing, &title(invoice), status, &content))
}

/// Renders the page on which a test card is entered.
fn render_entry(
    billing: &Billing,
    entry: &CardEntry,
    status: StatusCode,
    problem: Option<&str>,
) -> PageOr {
    let content = html! {
        @if let Some(problem) = problem { (alert(problem)) }
        p.hint { (entry.customer.email.as_str()) }
        @if entry.is_done {
            (notice("The card was added. You can close this page."))
        } @else {
            form method="post" {
                (card_choice("Test card"))
                button type="submit" name="action" value="add" { "Add the card" }
            }
        }
    };
    page(billing, "Add a card", status, &content)
}

/// Renders the choice of a test card.
fn card_choice(label: &str) -> Markup {
    html! {
        label for="card" { (label) }
        select id="card" name="card" {
            @for (id, text) in TEST_CARDS { option value=(id) { (text) } }
        }
    }
}

fn form(
    billing: &Billing,
    payable: &PayableInvoice,
    provider_page: Option<&str>,
    has_problem: bool,
) -> Markup {
    let is_simulated = billing.payments.provider() == PaymentProvider::Ledger;
    let has_method = payable.customer.default_payment_method_id.is_some();
    // A new charge of the saved card would have to be confirmed as well.
    let is_confirmed_there = payable.needs_confirmation && provider_page.is_some();
    html! {
        @if payable.needs_confirmation {
            @if !has_problem { p { "The owner of the card must confirm the last charge." } }
            @if is_simulated {
                form method="post" { button type="submit" name="action" value="confirm" { "Confirm the charge" } }
            }
        }
        @if has_method && !is_confirmed_there {
            form method="post" {
                button type="submit" name="action" value="pay" { "Pay with the saved card" }
            }
        }
        @if is_simulated {
            form method="post" {
                (card_choice("Pay with a test card"))
                button type="submit" name="action" value="pay" { "Pay" }
            }
        } @else if let Some(url) = provider_page {
            p {
                a href=(url) {
                    @if is_confirmed_there { "Confirm the charge on the page of Stripe" }
                    @else { "Pay with another card on the page of Stripe" }
                }
            }
        } @else if !has_method {
            p { "There is no saved card. Add one in the portal of your platform first." }
        }
    }
}

/// The action of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PayAction {
    Pay,
    Confirm,
    Add,
}

/// The fields of the form that pays an invoice.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct PayForm {
    /// Pays the invoice, confirms the last charge, or adds a card.
    action: PayAction,
    /// The test card. Default: the saved card. Required to add a card.
    #[schemars(length(min = 1, max = 64))]
    card: Option<String>,
}

async fn submit(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: Input<(String,), (), PayForm>,
) -> Result<PageOr> {
    ensure_own_form(cx, &billing)?;
    let (store, token) = (cx.app.store.as_ref(), &input.path.0);
    if card_entry::is_client_secret(token) {
        return submit_entry(cx, &billing, token, input.body).await;
    }
    let payable = pay::find(store, &billing, token).await?;
    let done = match input.body.action {
        PayAction::Pay => {
            let card = input.body.card.as_deref();
            pay::pay(cx, store, &billing, &payable, card).await
        }
        PayAction::Confirm => pay::confirm(cx, store, &billing, &payable).await,
        PayAction::Add => Err(Error::invalid("action", "invalid", NOT_HERE)),
    };
    let Err(error) = done else {
        return Ok(PageOr::To(Output::new(cx.uri.path().to_owned())));
    };
    let problem = problem_of(&error).ok_or(error)?;
    let payable = pay::find(store, &billing, token).await?;
    render(&billing, &payable, problem.0, Some(&problem.1)).await
}

/// The message for the action of another page.
const NOT_HERE: &str = "This page has no such action.";

/// Adds the test card that was entered for a setup intent.
async fn submit_entry(cx: &Cx, billing: &Billing, token: &str, form: PayForm) -> Result<PageOr> {
    if form.action != PayAction::Add {
        return Err(Error::invalid("action", "invalid", NOT_HERE));
    }
    let card = form
        .card
        .ok_or_else(|| Error::invalid("card", "required", "is missing"))?;
    let store = cx.app.store.as_ref();
    let entry = card_entry::find(store, billing, token).await?;
    let Err(error) = card_entry::enter(cx, store, billing, &entry, &card).await else {
        return Ok(PageOr::To(Output::new(cx.uri.path().to_owned())));
    };
    let (status, problem) = problem_of(&error).ok_or(error)?;
    Ok(render_entry(billing, &entry, status, Some(&problem)))
}

/// Returns the status and the message of an error that a page shows. Returns `None` for errors with pages of their own.
pub(super) fn problem_of(error: &Error) -> Option<(StatusCode, String)> {
    let code = error.code();
    let is_shown = PROVIDER_CODES.contains(&code)
        || matches!(
            code,
            Code::PaymentRequired
                | Code::InvalidState
                | Code::OperationInProgress
                | Code::LimitReached
                | Code::Conflict
                | Code::TierUnchanged
                | Code::PreviewExpired
                | Code::QuoteExpired
                | Code::PaymentMethodInUse
        );
    is_shown.then(|| (status_of(code), error.to_string()))
}
