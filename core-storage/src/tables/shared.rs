//! Tables of the records that belong to no single service.

use core_domain::kernel::Timestamp;
use core_domain::shared::{
    IdempotencyKey, IdempotencyQuery, MAIL_TOPIC, OutboxMessage, OutboxQuery,
};

use crate::codec::{Int, Json, Text, Time};
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
