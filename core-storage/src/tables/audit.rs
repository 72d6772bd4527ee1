//! The tables of the audit log.

use core_domain::kernel::{TextValue, Timestamp, first_uuid};
use core_domain::shared::{
    AuditArchive, AuditArchiveQuery, AuditChain, AuditCheckpoint, AuditCheckpointQuery, AuditEntry,
    AuditHead, AuditHeadQuery, AuditOrder, AuditQuery, AuditSeal, AuditSealQuery, AuditStream,
    first_segment,
};

use crate::codec::{AnyText, Int, Json, Opt, OrDefault, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::value::Value;
use crate::{IndexPredicate, Tabular, table};

/// Entries about changes, which lists show.
const IS_CHANGE: IndexPredicate = IndexPredicate::Is("stream", AuditStream::Changes.as_str());

/// Entries about reads, which only verifications read.
const IS_READ: IndexPredicate = IndexPredicate::Is("stream", AuditStream::Reads.as_str());

/// Entries about the installation, which belong to no platform.
const NO_PLATFORM: IndexPredicate = IndexPredicate::IsNull("platform_id");

// The platform of an entry is any text: early servers recorded reads of platforms that never existed. It is part of the seal, so
// it cannot be corrected.
table! {
    AuditEntry in "audit_entries" {
        id: Text,
        stream: Text,
        platform_id: Opt<AnyText>,
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
    // The key is appended to each index, and its order is that of time. A list scans one index and stops at its limit. Only
    // lists by actor together with another filter may read more: the entries of that actor.
    index {
        [] where [IS_CHANGE],
        [platform_id] where [IS_CHANGE],
        [action] where [IS_CHANGE],
        [entity_type] where [IS_CHANGE],
        [actor_id] where [IS_CHANGE],
        [platform_id, action] where [IS_CHANGE],
        [platform_id, entity_type] where [IS_CHANGE],
        [platform_id, entity_id] where [IS_CHANGE],
        [platform_id, actor_id] where [IS_CHANGE],
        [platform_id] where [IS_READ],
        // Postgres cannot scan the NULLs of an index column in the order of the next column.
        [] where [IS_CHANGE, NO_PLATFORM],
        [] where [IS_READ, NO_PLATFORM],
    }
    rows append_only until "audit_archives".keys_before
    staging "unsealed_audit_entries" index { [stream] }
    select audit_entries
}

fn audit_entries(query: &AuditQuery) -> Select {
    let text = |column, wanted: &Option<String>| wanted.as_ref().map(|w| Filter::eq(column, w));
    let platform = query.platform_id.as_ref();
    let platform = platform.map(|id| Filter::eq("platform_id", id));
    let select = Select::of(AuditEntry::TABLE)
        .leave_out_damaged(query.skip_damaged)
        .filter(Filter::eq("stream", &query.stream))
        .filter_if(platform)
        .as_list()
        .filter_if(
            query
                .without_platform
                .then_some(Filter::IsNull("platform_id")),
        )
        .filter_if(text("actor_id", &query.actor_id))
        .filter_if(text("action", &query.action))
        .filter_if(query.event_type.as_deref().map(event))
        .filter_if(entity(query))
        .filter_if(
            query
                .from
                .map(|from| Filter::ge("id", first_uuid(from).as_str())),
        )
        .filter_if(query.to.map(|to| Filter::lt("id", first_uuid(to).as_str())));
    match &query.order {
        AuditOrder::NewestFirst => select.order_by_desc("id"),
        AuditOrder::OldestFirst(after) => Select {
            after: after.as_ref().map(|id| vec![Value::text(id.as_text())]),
            ..select.order_by("id")
        },
    }
}

/// Filters by action, or by the type of the object if the text is only the first segment of an action.
fn event(event: &str) -> Filter {
    let is_segment = first_segment(event) == event;
    Filter::eq(if is_segment { "entity_type" } else { "action" }, event)
}

/// Filters by the type of the object, or by the id of one object.
fn entity(query: &AuditQuery) -> Option<Filter> {
    let entity = query.entity.as_deref()?;
    let id = Filter::eq("entity_id", entity);
    match query.action.as_deref() {
        // Every entry with this action is about objects of this type.
        Some(action) if first_segment(action) == entity => None,
        Some(_) => Some(id),
        None => Some(Filter::Disjoint(vec![
            Filter::eq("entity_type", entity),
            id.and(Filter::ne("entity_type", entity)),
        ])),
    }
}

table! {
    AuditSeal in "audit_seals" {
        entry_id: Text,
        chain: Text,
        seq: Int,
        position: Int,
        stream: Text,
        previous_hash: Text,
        hash: Text,
        sealed_at: Time,
    }
    index { [chain, seq], [position], [chain, position] }
    rows append_only until "audit_archives".keys_before
    select audit_seals
}

fn audit_seals(query: &AuditSealQuery) -> Select {
    let seals = Select::of(AuditSeal::TABLE);
    match query {
        AuditSealQuery::OfChain(chain, after) => seals
            .filter(Filter::eq("chain", chain))
            .filter(Filter::gt("seq", *after))
            .order_by("seq"),
        AuditSealQuery::Positions(after, to) => seals
            .filter(Filter::gt("position", *after))
            .filter(Filter::le("position", *to))
            .order_by("position"),
        AuditSealQuery::OfChainBehind(chain, after) => seals
            .filter(Filter::eq("chain", chain))
            .filter(Filter::gt("position", *after))
            .order_by("position"),
        AuditSealQuery::NewestBefore(bound) => seals
            .filter(Filter::lt("entry_id", bound.as_str()))
            .order_by_desc("entry_id"),
        AuditSealQuery::Archived { keys_before, until } => seals
            .filter(Filter::lt("entry_id", keys_before.as_str()))
            .filter(Filter::le("position", *until))
            .order_by("entry_id"),
    }
}

table! {
    AuditHead in "audit_heads" {
        chain: Text,
        seq: Int,
        changes: Int,
        hash: Text,
        checkpoint_seq: Int,
        unchecked_since: Opt<Time>,
        removed_changes: OrDefault<Int>,
    }
    computed {
        // The order uses this column, and a column of an order must not be nullable.
        waits_since: Int = |head| head.unchecked_since.map_or(i64::MAX, Timestamp::millis),
    }
    index { [waits_since] }
    select audit_heads
}

fn audit_heads(query: &AuditHeadQuery) -> Select {
    let heads = Select::of(AuditHead::TABLE);
    match query {
        AuditHeadQuery::OfChain(chain) => heads.filter(Filter::eq("chain", chain)),
        AuditHeadQuery::Chains => heads.filter(Filter::ne("chain", AuditChain::feed().as_ref())),
        AuditHeadQuery::UncheckedSince(instant) => heads
            .filter(Filter::le("waits_since", *instant))
            .order_by("waits_since")
            .skip_unreachable(),
    }
}

table! {
    AuditCheckpoint in "audit_checkpoints" {
        id: Text,
        platform_id: Opt<AnyText>,
        chain: Text,
        seq: Int,
        hash: Text,
        signed_at: Time,
        jws: Text,
        archived_until: Opt<Int>,
    }
    index { [signed_at], [platform_id, signed_at], [chain, seq] }
    rows append_only until "audit_archives".keys_before
    select audit_checkpoints
}

fn audit_checkpoints(query: &AuditCheckpointQuery) -> Select {
    let checkpoints = Select::of(AuditCheckpoint::TABLE);
    match query {
        AuditCheckpointQuery::Newest(platform) => checkpoints
            .filter_if(platform.as_ref().map(|id| Filter::eq("platform_id", id)))
            .order_by_desc("signed_at"),
        AuditCheckpointQuery::OfChain(chain, after) => checkpoints
            .filter(Filter::eq("chain", chain))
            .filter(Filter::gt("seq", *after))
            .order_by("seq"),
        AuditCheckpointQuery::NewestOfChainBefore(chain, bound) => checkpoints
            .filter(Filter::eq("chain", chain))
            .filter(Filter::lt("id", bound.as_str()))
            .order_by_desc("id"),
        AuditCheckpointQuery::Between(after, bound) => checkpoints
            .filter(Filter::gt("id", after.as_str()))
            .filter(Filter::lt("id", bound.as_str()))
            .order_by("id"),
    }
}

table! {
    AuditArchive in "audit_archives" {
        month: Text,
        keys_before: Text,
        after: Int,
        position: Int,
        feed_position: Int,
        feed_hash: Text,
        digest: Text,
        previous: Text,
        archived_at: Time,
        jws: Text,
        removed_at: Opt<Time>,
    }
    index { [keys_before] }
    select audit_archives
}

fn audit_archives(query: &AuditArchiveQuery) -> Select {
    let archives = Select::of(AuditArchive::TABLE);
    match query {
        AuditArchiveQuery::NewestFirst => archives.order_by_desc("month"),
        AuditArchiveQuery::OldestFirst => archives.order_by("month"),
    }
}
