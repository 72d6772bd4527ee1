//! Tables of the records that belong to no single service.

use core_domain::kernel::Timestamp;
use core_domain::shared::{
    AuditEntry, AuditQuery, IdempotencyKey, IdempotencyQuery, MAIL_TOPIC, OutboxMessage,
    OutboxQuery,
};

use crate::codec::{Int, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const IS_MAIL: IndexPredicate = IndexPredicate::Is("topic", MAIL_TOPIC);

table! {
    AuditEntry in "audit_entries" {
        id: Text,
        stream: Text,
        platform_id: Opt<Text>,
        actor_id: Text,
        actor_type: Text,
        action: Text,
        entity_type: Text,
        entity_id: Text,
        before: Opt<Json>,
        after: Opt<Json>,
        metadata: Json,
        created_at: Time,
    }
    index { [created_at], [platform_id, created_at], [actor_id, created_at], [entity_id, created_at] }
    select audit_entries
}

fn audit_entries(query: &AuditQuery) -> Select {
    let text = |column, wanted: &Option<String>| wanted.as_ref().map(|w| Filter::eq(column, w));
    let event = |event: &String| {
        let segment = Filter::Prefix("action", format!("{event}."));
        Filter::Or(vec![Filter::eq("action", event), segment])
    };
    let entity = |entity: &String| {
        let kind = Filter::eq("entity_type", entity);
        Filter::Or(vec![kind, Filter::eq("entity_id", entity)])
    };
    let platform = query.platform_id.as_ref();
    Select::of(AuditEntry::TABLE)
        .filter(Filter::eq("stream", &query.stream))
        .filter_if(platform.map(|id| Filter::eq("platform_id", id)))
        .filter_if(text("actor_id", &query.actor_id))
        .filter_if(text("action", &query.action))
        .filter_if(query.event_type.as_ref().map(event))
        .filter_if(query.entity.as_ref().map(entity))
        .filter_if(query.from.map(|from| Filter::ge("created_at", from)))
        .filter_if(query.to.map(|to| Filter::lt("created_at", to)))
        .order_by_desc("created_at")
}

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
    IdempotencyKey in "idempotency_keys" {
        id: Text,
        request_hash: Text,
        status: Int,
        headers: Json,
        body: Text,
        created_at: Time,
        expires_at: Time,
    }
    index { [expires_at] }
    select idempotency_keys
}

fn idempotency_keys(query: &IdempotencyQuery) -> Select {
    match query {
        IdempotencyQuery::ExpiredBefore(instant) => Select::of(IdempotencyKey::TABLE)
            .filter(Filter::lt("expires_at", *instant))
            .order_by("expires_at"),
    }
}
