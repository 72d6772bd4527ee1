//! The portal: plan, usage, payment methods and invoices of a customer, for the holder of a portal session.

use std::sync::Arc;

use core_domain::access::{PortalScope, PublicScope};
use core_domain::billing::{Interval, PortalSecret};
use core_domain::kernel::{Code, Error, PageQuery, Result};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::registry::Tier;
use core_domain::use_case::billing::change;
use core_domain::use_case::billing::{
    Billing, invoice, payment_method, portal, subscription, usage,
};
use http::{HeaderValue, StatusCode, header};
use maud::html;
use schemars::JsonSchema;
use serde::Deserialize;

use super::layout::{PORTAL, alert, notice, page, page_row};
use super::portal_view::{Content, PortalView};
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, with};

/// The name of the cookie with the secret of the session.
const COOKIE: &str = "billing_portal";

/// The number of invoices that the portal shows.
const MAX_INVOICES: u32 = 24;

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        page_row(get("/portal/{token}", "enterPortal"))
            .summary("Opens the portal with the address of a link, which is valid once.")
            .description("Sets a cookie for 30 minutes, and redirects to the portal.")
            .success(&[StatusCode::SEE_OTHER])
            .refuses(&[Code::NotFound])
            .plain(with(billing, enter)),
        page_row(get(PORTAL, "portalPage"))
            .summary("Shows plan, usage, payment methods and invoices to the customer.")
            .description("With `tier`, it shows the cost of a change to that plan.")
            .refuses(&[Code::Unauthorized])
            .plain(with(billing, show)),
    ]
}

async fn enter(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: Input<(String,)>,
) -> Result<PageOr> {
    let link = &input.path.0;
    let secret = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { portal::enter(cx, uow, link).await })
    })
    .await?;
    let base = billing.pages.base_url().unwrap_or_default();
    let secure = if base.starts_with("https:") {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!(
        "{COOKIE}={}; Path={PORTAL}; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
        secret.expose(),
        PortalSecret::Browser.lifetime().as_secs(),
    );
    let cookie = HeaderValue::try_from(cookie)
        .map_err(|error| Error::Internal(format!("the cookie is invalid: {error}")))?;
    let portal = Output::new(PORTAL.to_owned());
    Ok(PageOr::To(portal.header(header::SET_COOKIE, cookie)))
}

/// Authorizes the browser by its cookie.
///
/// # Errors
/// `UNAUTHORIZED` if there is no cookie, or the session has ended.
pub(super) async fn authorize(cx: &Cx) -> Result<PortalScope> {
    let cookies = cx.header(header::COOKIE).unwrap_or_default();
    let mut cookies = cookies
        .split(';')
        .filter_map(|part| part.trim().split_once('='));
    let secret = cookies.find(|(name, _)| *name == COOKIE);
    let (_, secret) = secret.ok_or(Error::Unauthorized)?;
    portal::authorize_browser(cx.app.store.as_ref(), secret).await
}

/// The query of the portal.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
pub(super) struct PortalQuery {
    /// The plan whose cost is shown. Default: none.
    pub(super) tier: Option<Tier>,
    /// The length of a period of that plan. Default: the current one.
    pub(super) interval: Option<Interval>,
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
}

/// The confirmation that the portal shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Notice {
    PlanChanged,
    Cancelled,
    Ended,
    Kept,
    CardAdded,
    CardChosen,
    CardRemoved,
}

impl Notice {
    /// Returns the word for the query.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::PlanChanged => "plan-changed",
            Self::Cancelled => "cancelled",
            Self::Ended => "ended",
            Self::Kept => "kept",
            Self::CardAdded => "card-added",
            Self::CardChosen => "card-chosen",
            Self::CardRemoved => "card-removed",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::PlanChanged => "The plan was changed, or will change with the next period.",
            Self::Cancelled => "The subscription ends with the current period.",
            Self::Ended => "The subscription has ended.",
            Self::Kept => "The subscription goes on as before.",
            Self::CardAdded => "The card was added.",
            Self::CardChosen => "The card is now the default.",
            Self::CardRemoved => "The card was removed.",
        }
    }
}

async fn show(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: Input<(), PortalQuery>,
) -> Result<PageOr> {
    let scope = authorize(cx).await?;
    render(cx, &billing, &scope, input.query, None).await
}

/// Returns the page, with an error if there is one.
pub(super) async fn render(
    cx: &Cx,
    billing: &Billing,
    scope: &PortalScope,
    query: PortalQuery,
    problem: Option<(StatusCode, String)>,
) -> Result<PageOr> {
    let store = cx.app.store.as_ref();
    let mut uow = store.begin(Mode::Read).await?;
    let read = read(cx, scope, uow.as_mut(), billing, query).await;
    uow.rollback().await;
    let (content, now) = (read?, cx.app.clock.now());
    let customer = scope.customer::<core_domain::kernel::permission::BillingRead>();
    let methods = payment_method::list(&customer, billing, now).await;
    let (status, problem) = match (problem, &methods) {
        (Some((status, text)), _) => (status, Some(text)),
        (None, Err(error)) => (StatusCode::OK, Some(error.to_string())),
        (None, Ok(_)) => (StatusCode::OK, None),
    };
    let view = PortalView {
        billing,
        customer: &customer,
        return_url: &scope.session().return_url,
        content: &content,
        methods: methods.as_deref().unwrap_or_default(),
        chosen_tier: query.tier,
        chosen_interval: query.interval,
    };
    let shown = html! {
        @if let Some(notice_) = query.notice { (notice(notice_.text())) }
        @if let Some(problem) = &problem { (alert(problem)) }
        (view.render())
    };
    Ok(page(billing, "Billing", status, &shown))
}

/// Reads the records that the portal shows.
async fn read(
    cx: &Cx,
    scope: &PortalScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    query: PortalQuery,
) -> Result<Content> {
    let own = scope.billing();
    let subscription = match subscription::of_platform(&own, uow).await {
        Err(Error::NotFound(_)) => None,
        found => Some(found?),
    };
    let preview = match query.tier {
        Some(tier) => Some(change::preview(cx, &own, uow, billing, tier, query.interval).await),
        None => None,
    };
    let newest = PageQuery::first(MAX_INVOICES).without_count();
    let invoices = invoice::list(&own, uow, None, &newest).await?;
    Ok(Content {
        subscription,
        preview,
        usage: usage::current(&own, uow, billing).await?,
        invoices: invoices.items,
    })
}
