//! The tables of metered usage: events, their sums, usage periods and alerts.

use core_domain::billing::usage::{
    UsageAlert, UsageAlertQuery, UsageEvent, UsageEventQuery, UsagePeriod, UsagePeriodQuery,
    UsagePeriodStatus, UsageRollup, UsageRollupQuery, UsageTenant, UsageTenantQuery, UsageTotal,
    UsageTotalQuery,
};
use core_domain::kernel::PlatformId;

use super::billing::Code;
use crate::codec::{Bool, Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    UsageEvent in "usage_events" {
        id: Text,
        platform_id: Text,
        source: Text,
        event_id: Text,
        stack_id: Opt<Text>,
        tenant_id: Opt<Text>,
        metric: Text,
        quantity: Int,
        time: Time,
        corrects_id: Opt<Text>,
        received_at: Time,
    }
    index { [received_at] }
    select usage_events
}

fn usage_events(query: &UsageEventQuery) -> Select {
    match query {
        UsageEventQuery::ReceivedBefore(instant) => Select::of(UsageEvent::TABLE)
            .filter(Filter::lt("received_at", *instant))
            .order_by("received_at"),
    }
}

table! {
    UsageRollup in "usage_rollups" {
        id: Text,
        platform_id: Text,
        metric: Text,
        stack_id: Opt<Text>,
        start: Time,
        quantity: Int,
    }
    index {
        [platform_id, start],
        [platform_id, stack_id, start],
    }
    select usage_rollups
}

fn usage_rollups(query: &UsageRollupQuery) -> Select {
    let between = |platform: &PlatformId, from, to| {
        Select::of(UsageRollup::TABLE)
            .filter(Filter::eq("platform_id", platform))
            .filter(Filter::ge("start", from))
            .filter(Filter::lt("start", to))
            .order_by("start")
    };
    match query {
        UsageRollupQuery::Of(platform, from, to) => between(platform, *from, *to),
        UsageRollupQuery::OfStack(platform, stack, from, to) => {
            between(platform, *from, *to).filter(Filter::eq("stack_id", stack))
        }
    }
}

table! {
    UsageTotal in "usage_totals" {
        id: Text,
        platform_id: Text,
        period_start: Time,
        sums: Json,
    }
    index { [platform_id, period_start] }
    select usage_totals
}

fn usage_totals(query: &UsageTotalQuery) -> Select {
    match query {
        UsageTotalQuery::Of(platform) => Select::of(UsageTotal::TABLE)
            .filter(Filter::eq("platform_id", platform))
            .order_by_desc("period_start"),
    }
}

table! {
    UsageTenant in "usage_tenants" {
        id: Text,
        platform_id: Text,
        period_start: Time,
        tenant_id: Text,
        first_at: Opt<Time>,
        first_stack_id: Opt<Text>,
        last_used_at: Time,
        quantities: Json,
    }
    index { [platform_id, period_start, tenant_id] }
    select usage_tenants
}

fn usage_tenants(query: &UsageTenantQuery) -> Select {
    match query {
        UsageTenantQuery::Of(platform, start) => Select::of(UsageTenant::TABLE)
            .filter(Filter::eq("platform_id", platform))
            .filter(Filter::eq("period_start", *start))
            .order_by("tenant_id"),
    }
}

const DUE: IndexPredicate = IndexPredicate::NotNull("due_at");
const CLOSED: IndexPredicate = IndexPredicate::Is("status", "closed");

table! {
    UsagePeriod in "usage_periods" {
        id: Text,
        platform_id: Text,
        subscription_id: Opt<Text>,
        customer_id: Opt<Text>,
        period_start: Time,
        period_end: Time,
        status: Text,
        closes_at: Time,
        due_at: Opt<Time>,
        invoice_id: Opt<Text>,
        currency: Code,
        terms: Json,
        billed: Json,
        tax: Opt<Json>,
        is_invoice_due: Bool,
        has_late_usage: Bool,
    }
    index {
        [platform_id, period_start],
        [platform_id, period_end],
        [due_at] where [DUE],
        [customer_id, due_at] where [DUE],
        [subscription_id, has_late_usage, period_start] where [CLOSED],
        [subscription_id, is_invoice_due, period_start] where [CLOSED],
    }
    select usage_periods
}

fn usage_periods(query: &UsagePeriodQuery) -> Select {
    let periods = || Select::of(UsagePeriod::TABLE);
    let of = |platform: &PlatformId| periods().filter(Filter::eq("platform_id", platform));
    let with_status = |status: &UsagePeriodStatus| periods().filter(Filter::eq("status", status));
    match query {
        UsagePeriodQuery::Of(platform) => of(platform).order_by_desc("period_start"),
        UsagePeriodQuery::EndingAfter(platform, instant) => of(platform)
            .filter(Filter::gt("period_end", *instant))
            .order_by_desc("period_end"),
        UsagePeriodQuery::Due { of, by } => {
            let due = periods()
                .filter(Filter::le("due_at", *by))
                .order_by("due_at");
            match of {
                // Changes of a customer are made in order, so none can be left out.
                Some(customer) => due.filter(Filter::eq("customer_id", customer)),
                None => due.skip_unreachable(),
            }
        }
        UsagePeriodQuery::InvoiceDueOf(subscription) => with_status(&UsagePeriodStatus::Closed)
            .filter(Filter::eq("subscription_id", subscription))
            .filter(Filter::eq("is_invoice_due", true))
            .order_by("period_start"),
        UsagePeriodQuery::LateOf(subscription) => with_status(&UsagePeriodStatus::Closed)
            .filter(Filter::eq("subscription_id", subscription))
            .filter(Filter::eq("has_late_usage", true))
            .order_by("period_start"),
    }
}

table! {
    UsageAlert in "usage_alerts" {
        id: Text,
        platform_id: Text,
        metric: Text,
        threshold: Int,
        quantity: Int,
        limit: Int,
        percent_used: Opt<Int>,
        status: Text,
        severity: Text,
        period_start: Time,
        triggered_at: Opt<Time>,
        is_told: Bool,
    }
    index { [platform_id, period_start] }
    select usage_alerts
}

fn usage_alerts(query: &UsageAlertQuery) -> Select {
    match query {
        UsageAlertQuery::Of(platform, start) => Select::of(UsageAlert::TABLE)
            .filter(Filter::eq("platform_id", platform))
            .filter(Filter::eq("period_start", *start)),
    }
}
