//! The tables of records that belong to no single service.

use core_domain::kernel::{PlatformId, Timestamp};
use core_domain::shared::{
    IdempotencyQuery, MAIL_TOPIC, MailQuota, MailQuotaQuery, MaintenanceLease,
    MaintenanceLeaseQuery, OutboxMessage, OutboxQuery, StoredResponse, Webhook, WebhookDelivery,
    WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookQuery, WebhookRef,
};

use crate::codec::{Bool, Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const IS_MAIL: IndexPredicate = IndexPredicate::Is("topic", MAIL_TOPIC);

table! {
    OutboxMessage in "outbox_messages" {
        id: Text,
        topic: Text,
        payload: Json,
        attempts: Int,
        run_at: Time,
        created_at: Time,
    }
    index { [run_at], [run_at] where [IS_MAIL] }
    select outbox_messages
}

fn outbox_messages(query: &OutboxQuery) -> Select {
    let due = |now: &Timestamp| {
        Select::of(OutboxMessage::TABLE)
            .filter(Filter::le("run_at", *now))
            .order_by("run_at")
            .skip_unreachable()
    };
    match query {
        OutboxQuery::DueAt(now) => due(now).filter(Filter::ne("topic", MAIL_TOPIC)),
        OutboxQuery::MailDueAt(now) => due(now).filter(Filter::of_index(IS_MAIL)),
        OutboxQuery::WithIds(ids) => {
            Select::of(OutboxMessage::TABLE).filter(Filter::one_of("id", ids))
        }
    }
}

table! {
    StoredResponse in "idempotency_keys" {
        id: Text,
        request_hash: Text,
        status: Int,
        headers: Json,
        body: Text,
        needs_proof: Bool,
        created_at: Time,
        expires_at: Time,
    }
    index { [expires_at] }
    select idempotency_keys
}

fn idempotency_keys(query: &IdempotencyQuery) -> Select {
    match query {
        IdempotencyQuery::ExpiredBefore(instant) => Select::of(StoredResponse::TABLE)
            .filter(Filter::lt("expires_at", *instant))
            .order_by("expires_at"),
    }
}

table! {
    MailQuota in "mail_quotas" {
        id: Text,
        sent_at: Json,
        expires_at: Time,
    }
    index { [expires_at] }
    select mail_quotas
}

fn mail_quotas(query: &MailQuotaQuery) -> Select {
    match query {
        MailQuotaQuery::ExpiredAt(now) => Select::of(MailQuota::TABLE)
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    MaintenanceLease in "maintenance_leases" {
        task: Text,
        holder: Text,
        expires_at: Time,
    }
    select maintenance_leases
}

fn maintenance_leases(query: &MaintenanceLeaseQuery) -> Select {
    match query {
        MaintenanceLeaseQuery::Of(task) => {
            Select::of(MaintenanceLease::TABLE).filter(Filter::eq("task", task.as_str()))
        }
    }
}

/// Returns the owner of a row as text: the platform, or an empty text for the installation. Queries can then select
/// both in the same way.
fn owner_of(platform: Option<&PlatformId>) -> String {
    platform.map_or_else(String::new, ToString::to_string)
}

const IS_ENABLED: IndexPredicate = IndexPredicate::Is("status", "enabled");

table! {
    Webhook in "webhooks" {
        id: Text,
        platform_id: Opt<Text>,
        url: Text,
        description: Opt<Text>,
        event_types: Json,
        status: Text,
        disabled_reason: Opt<Text>,
        consecutive_failures: Int,
        failing_since: Opt<Time>,
        secrets: Json,
        created_at: Time,
        updated_at: Time,
    }
    computed {
        owner: Text = |webhook| owner_of(webhook.platform_id.as_ref()),
    }
    index { [owner, created_at], [owner] where [IS_ENABLED] }
    select webhooks
}

fn webhooks(query: &WebhookQuery) -> Select {
    let webhooks = Select::of(Webhook::TABLE);
    let of = |platform: Option<&PlatformId>| Filter::eq("owner", &owner_of(platform));
    match query {
        WebhookQuery::Of(platform) => webhooks
            .filter(of(platform.as_ref()))
            .order_by_desc("created_at"),
        WebhookQuery::One { platform_id, id } => webhooks
            .filter(Filter::eq("id", id))
            .filter(of(platform_id.as_ref())),
        WebhookQuery::EnabledFor { platforms, except } => {
            let owners = platforms.iter().map(|platform| owner_of(Some(platform)));
            let owners: Vec<String> = owners.chain([owner_of(None)]).collect();
            let without = |webhooks: Select, id: &String| webhooks.filter(Filter::ne("id", id));
            let webhooks = except.iter().fold(webhooks, without);
            webhooks
                .filter(Filter::one_of("owner", &owners))
                .filter(Filter::of_index(IS_ENABLED))
        }
    }
}

const IS_PENDING: IndexPredicate = IndexPredicate::Is("status", "pending");
const HAS_ENDED: IndexPredicate = IndexPredicate::OneOf("status", &["succeeded", "failed"]);

table! {
    WebhookDelivery in "webhook_deliveries" {
        id: Text,
        webhook_id: Text,
        platform_id: Opt<Text>,
        event_id: Opt<Text>,
        event_type: Text,
        payload: Json,
        status: Text,
        attempts: Int,
        next_attempt_at: Opt<Time>,
        last_status: Opt<Int>,
        last_error: Opt<Text>,
        attempt_log: Json,
        created_at: Time,
        updated_at: Time,
    }
    computed {
        // The order uses this column, and a column of an order must not be nullable.
        due_at: Time = |delivery| delivery.next_attempt_at.unwrap_or(delivery.updated_at),
    }
    unique { event: [webhook_id, event_id] }
    index {
        [webhook_id, created_at],
        [webhook_id, status, created_at],
        [platform_id],
        [due_at] include [webhook_id] where [IS_PENDING],
        [updated_at] where [HAS_ENDED],
    }
    select webhook_deliveries
}

fn webhook_deliveries(query: &WebhookDeliveryQuery) -> Select {
    let deliveries = Select::of(WebhookDelivery::TABLE);
    let to = |webhook: &WebhookRef| {
        let platform = Filter::eq_or_null("platform_id", webhook.platform_id.as_ref());
        let to = deliveries.clone();
        to.filter(Filter::eq("webhook_id", &webhook.id))
            .filter(platform)
    };
    let with = |status: &WebhookDeliveryStatus| Filter::eq("status", status);
    match query {
        WebhookDeliveryQuery::To { webhook, status } => to(webhook)
            .filter_if(status.as_ref().map(with))
            .order_by_desc("created_at"),
        WebhookDeliveryQuery::One { webhook, id } => to(webhook).filter(Filter::eq("id", id)),
        WebhookDeliveryQuery::FailedSince { webhook, since } => to(webhook)
            .filter(with(&WebhookDeliveryStatus::Failed))
            .filter(Filter::ge("created_at", *since))
            .order_by("created_at"),
        WebhookDeliveryQuery::DueAt { now, except } => except
            .iter()
            .fold(deliveries, |due, webhook| {
                due.filter(Filter::ne("webhook_id", webhook))
            })
            .filter(Filter::of_index(IS_PENDING))
            .filter(Filter::le("due_at", *now))
            .order_by("due_at")
            .skip_unreachable(),
        WebhookDeliveryQuery::EndedBefore(instant) => deliveries
            .filter(Filter::of_index(HAS_ENDED))
            .filter(Filter::lt("updated_at", *instant))
            .order_by("updated_at"),
        WebhookDeliveryQuery::OfPlatform(platform) => {
            deliveries.filter(Filter::eq("platform_id", platform))
        }
    }
}
