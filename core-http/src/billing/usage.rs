//! Endpoints for metered usage.

use std::sync::Arc;

use core_domain::access::{BillingScope, OperatorScope, Requirement, authorize_billing};
use core_domain::billing::Metric;
use core_domain::billing::usage::{
    DailyUsage, IngestUsage, IngestedUsage, StackUsageView, TenantUsage, UsageAlert, UsageHistory,
    UsageSnapshot, UsageSummary,
};
use core_domain::kernel::{
    Code, Context, Cursor, Limit, PageQuery, PermissionType, PlatformId, Result, StackId, Total,
    permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::{Billing, usage};
use core_domain::use_case::shared::usage::ingest;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::platform::{NamesPlatform, OfNamedPlatform};
use super::spelling::prefixed;
use super::usage_metrics::UsageMetrics;
use crate::kernel::{Cx, Data, Endpoint, Input, ListP1, OpenScope, Output, get, post, with};

const STACK: &str = "/platforms/{platformId}/stacks/{stackId}/usage";

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    let mut rows = current_rows(billing);
    rows.extend(past_rows(billing));
    rows.push(
        post("/internal/usage/events", "ingestUsage")
            .summary("Stores a batch of usage events and adds them up.")
            .description(
                "A batch has 1 to 1,000 events. Each event counts once: an event with a known \
                 source and id is a `duplicate`, or `rejected` with `EVENT_CONFLICT` if its \
                 content differs. The response has the outcome of each event. One event never \
                 refuses the others. A negative quantity needs `correctsId` and is added.",
            )
            .refuses(&[Code::Conflict])
            .plain(with(billing, report)),
    );
    rows
}

/// Returns the rows about the current period.
fn current_rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get("/usage/current", "getCurrentUsage")
            .alias(prefixed!("/usage/current"))
            .summary("Returns the usage of a platform in its current period, with its price.")
            .description(
                "Without a subscription, the period is the calendar month and the tier is `free`. \
                 `limits` has the numbers of objects that the plan limits.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(with(billing, current)),
        get("/usage/entities", "listUsageEntities")
            .alias(prefixed!("/usage/entities"))
            .summary("Lists the tenants that used a platform in its current period, by id.")
            .refuses(&[Code::ValidationError, Code::NotFound, Code::InvalidCursor])
            .reads(with(billing, tenants)),
        get("/usage/alerts", "listUsageAlerts")
            .alias(prefixed!("/usage/alerts"))
            .summary("Lists the alerts of a platform in its current period.")
            .description(
                "An alert is `triggered` when usage reaches 50, 80 or 100 percent of the included \
                 quantity, and `armed` before. It is triggered once a period.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(with(billing, alerts)),
        get("/usage-summary", "getUsageSummary")
            .alias(prefixed!("/usage-summary"))
            .summary("Returns the usage of a platform in its current period, by stack.")
            .description(
                "Stacks and unattributed usage add up to the totals, in quantity and price.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(with(billing, summary)),
        get(STACK, "getStackUsage")
            .alias(prefixed!("/platforms/{platformId}/stacks/{stackId}/usage"))
            .summary("Returns the usage of a stack in the current period of its platform.")
            .description("All quantities of an unknown stack are 0.")
            .refuses(&[Code::NotFound])
            .reads(with(billing, of_stack)),
    ]
}

/// Returns the rows about the past.
fn past_rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get("/usage/history", "listUsageHistory")
            .alias(prefixed!("/usage/history"))
            .summary("Lists the usage periods of a platform, newest first.")
            .description(
                "A period collects events for 24 hours after its end and is then closed and \
                 priced. With `metric`, each period shows this metric alone.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound, Code::InvalidCursor])
            .reads(with(billing, history)),
        get("/usage/daily", "getDailyUsage")
            .alias(prefixed!("/usage/daily"))
            .summary("Returns the usage of a platform by UTC day.")
            .description(
                "Both days are included. There are at most 366. Days without usage are present.",
            )
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(daily),
    ]
}

type Read = BillingScope<permission::BillingRead>;

/// The page size if the request has none.
const DEFAULT_LIMIT: u32 = 25;

const fn default_limit() -> Limit {
    Limit(DEFAULT_LIMIT)
}

fn limit_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "default": DEFAULT_LIMIT,
        "description": "Maximum number of records of the page. Values above 100 count as 100." })
}

/// The query of a list of usage.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsageListQuery {
    /// The platform. Default: the one that the caller acts for.
    platform_id: Option<PlatformId>,
    /// Maximum number of records of the page. Values above 100 count as 100. Default: 25.
    #[serde(default = "default_limit")]
    #[schemars(schema_with = "limit_schema")]
    limit: Limit,
    /// The cursor from the previous page. If absent, the list starts with its first record.
    cursor: Option<Cursor>,
}

impl UsageListQuery {
    fn page(&self) -> PageQuery {
        page_of(self.limit, self.cursor.as_ref())
    }
}

/// The query of the history.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryQuery {
    /// The platform. Default: the one that the caller acts for.
    platform_id: Option<PlatformId>,
    /// Only this metric. Default: all.
    metric: Option<Metric>,
    /// Maximum number of records of the page. Values above 100 count as 100. Default: 25.
    #[serde(default = "default_limit")]
    #[schemars(schema_with = "limit_schema")]
    limit: Limit,
    /// The cursor from the previous page. If absent, the list starts with its first record.
    cursor: Option<Cursor>,
}

fn page_of(limit: Limit, cursor: Option<&Cursor>) -> PageQuery {
    PageQuery {
        limit: limit.0,
        cursor: cursor.cloned(),
        total: Total::Unknown,
    }
}

/// The query of the usage by day.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DailyQuery {
    /// The platform whose usage is shown.
    platform_id: PlatformId,
    /// The first day, as `YYYY-MM-DD`.
    #[schemars(
        length(max = 10),
        regex(pattern = r"^\d{4}-\d{2}-\d{2}$"),
        example = "2026-11-01"
    )]
    from: String,
    /// The last day, as `YYYY-MM-DD`.
    #[schemars(
        length(max = 10),
        regex(pattern = r"^\d{4}-\d{2}-\d{2}$"),
        example = "2026-11-30"
    )]
    to: String,
}

impl NamesPlatform for UsageListQuery {
    fn platform_id(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }
}

impl NamesPlatform for HistoryQuery {
    fn platform_id(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }
}

impl NamesPlatform for DailyQuery {
    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl<G, Q, B> OpenScope<Input<(PlatformId, StackId), Q, B>> for BillingScope<G>
where
    G: PermissionType,
    Q: Sync,
    B: Sync,
{
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(PlatformId, StackId), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_billing(cx, uow, Some(&input.path.0)))
    }
}

async fn current(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    _: Input<(), OfNamedPlatform>,
) -> Result<Output<UsageSnapshot>> {
    Ok(Output::new(usage::current(&scope, uow, &billing).await?))
}

async fn tenants(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    input: Input<(), UsageListQuery>,
) -> Result<Output<ListP1<TenantUsage>>> {
    let page = usage::tenants(&scope, uow, &billing, &input.query.page()).await?;
    Ok(Output::new(page.into()))
}

async fn alerts(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    _: Input<(), OfNamedPlatform>,
) -> Result<Output<Data<UsageAlert>>> {
    let alerts = usage::alerts(&scope, uow, &billing).await?;
    Ok(Output::new(Data { data: alerts }))
}

async fn summary(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    _: Input<(), OfNamedPlatform>,
) -> Result<Output<UsageSummary>> {
    Ok(Output::new(usage::summary(&scope, uow, &billing).await?))
}

async fn of_stack(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, StackId)>,
) -> Result<Output<StackUsageView>> {
    let found = usage::of_stack(&scope, uow, &billing, &input.path.1).await?;
    Ok(Output::new(found))
}

async fn history(
    _: &Cx,
    billing: Arc<Billing>,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    input: Input<(), HistoryQuery>,
) -> Result<Output<ListP1<UsageHistory>>> {
    let query = input.query;
    let page = page_of(query.limit, query.cursor.as_ref());
    let page = usage::history(&scope, uow, &billing, query.metric, &page).await?;
    Ok(Output::new(page.into()))
}

async fn daily(
    _: &Cx,
    scope: Read,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DailyQuery>,
) -> Result<Output<DailyUsage>> {
    let (from, to) = (&input.query.from, &input.query.to);
    Ok(Output::new(usage::daily(&scope, uow, from, to).await?))
}

async fn report(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    input: Input<(), (), IngestUsage>,
) -> Result<Output<IngestedUsage>> {
    let store = cx.app.store.as_ref();
    let outcomes = ingest(cx, &scope, store, billing.metering(), input.body).await?;
    UsageMetrics::new(&cx.app.metrics).count(&outcomes);
    Ok(Output::new(outcomes))
}
