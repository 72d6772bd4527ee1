//! Cases for staged records: reads find new records before and after their promotion.

use std::sync::Arc;

use core_domain::access::RecordKey;
use core_domain::kernel::{
    AuditId, JsonText, ListVersion, PageQuery, PlatformId, Timestamp, Total,
};
use core_domain::port::{Mode, Repository, Store, UnitOfWork, Within};
use core_domain::shared::{AuditEntry, AuditOrder, AuditQuery, AuditStream};
use core_domain::testing::named_uuid;
use serde_json::json;

use super::records::{ok, open, some};

const EVERYWHERE: Within<'static> = Within::Installation;

fn id(n: i64) -> String {
    named_uuid(&format!("staging-{n}"))
}

/// Returns the n-th entry. Two entries each have the same time.
fn entry(n: i64) -> AuditEntry {
    AuditEntry {
        id: some(AuditId::parse(&id(n))),
        stream: AuditStream::Changes,
        platform_id: PlatformId::parse(&named_uuid("staging")),
        actor_id: "ada".to_owned(),
        actor_type: "user".to_owned(),
        action: "thing.made".to_owned(),
        entity_type: "thing".to_owned(),
        entity_id: format!("thing-{}", n % 2),
        before: None,
        after: Some(JsonText::of(&json!({ "n": n }))),
        metadata: JsonText::of(&json!({})),
        created_at: Timestamp::from_millis(n / 2),
    }
}

fn all() -> AuditQuery {
    AuditQuery {
        platform_id: PlatformId::parse(&named_uuid("staging")),
        ..AuditQuery::default()
    }
}

fn entries(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<AuditEntry> {
    unit.repositories(RecordKey::for_tests()).audit_entries()
}

/// Returns the ids on all pages of the list, newest first, and the total of each page.
async fn pages(
    store: &Arc<dyn Store>,
    query: &AuditQuery,
    total: Total,
) -> (Vec<String>, Vec<u64>) {
    let mut unit = open(store, Mode::Read).await;
    let entries = entries(unit.as_mut());
    let mut request = PageQuery {
        total,
        ..PageQuery::first(2)
    };
    let (mut ids, mut totals) = (Vec::new(), Vec::new());
    loop {
        let page = ok(entries.page(EVERYWHERE, query, &request)).await;
        ids.extend(page.items.iter().map(|entry| entry.id.to_string()));
        totals.push(page.total);
        request.cursor = page.next;
        if request.cursor.is_none() {
            return (ids, totals);
        }
    }
}

async fn promote(store: &Arc<dyn Store>, numbers: &[i64]) -> u64 {
    let mut unit = open(store, Mode::Write).await;
    let keys: Vec<String> = numbers.iter().copied().map(id).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let promoted = ok(entries(unit.as_mut()).promote(&keys)).await;
    ok(unit.commit()).await;
    promoted
}

/// Runs the cases on a store without entries.
pub(super) async fn run(store: &Arc<dyn Store>) {
    reads_return_staged_and_promoted_records(store).await;
    a_known_total_counts_only_promoted_records(store).await;
    a_promoted_record_does_not_replace_a_record_with_its_key(store).await;
}

/// Every read returns the same records, whichever of them are promoted.
async fn reads_return_staged_and_promoted_records(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let new = entries(unit.as_mut());
    ok(new.append_many((0..7).map(entry).collect())).await;
    let staged = ok(new.list_staged(3)).await;
    let keys: Vec<&str> = staged.iter().map(|staged| staged.id.as_str()).collect();
    assert_eq!(keys, [id(0), id(1), id(2)]);
    let first = some(staged.into_iter().next()).record;
    assert_eq!(some(first).into_inner(), entry(0));
    ok(unit.commit()).await;

    let newest_first: Vec<String> = (0..7).rev().map(id).collect();
    let of_one = AuditQuery {
        entity: Some("thing-1".to_owned()),
        ..all()
    };
    // One page with both kinds of entries, pages of one kind, and entries with the same time but different kinds.
    for (promoted, numbers) in [(0, &[][..]), (1, &[2]), (3, &[0, 1, 5]), (3, &[3, 4, 6])] {
        assert_eq!(promote(store, numbers).await, promoted);
        let (ids, totals) = pages(store, &all(), Total::Unknown).await;
        assert_eq!((&ids, totals), (&newest_first, vec![7; 4]));
        let (ids, totals) = pages(store, &of_one, Total::Unknown).await;
        assert_eq!((ids, totals), (vec![id(5), id(3), id(1)], vec![3; 2]));
        let mut unit = open(store, Mode::Read).await;
        let entries = entries(unit.as_mut());
        for n in 0..7 {
            let found = some(ok(entries.get(EVERYWHERE, &id(n))).await);
            assert_eq!(found.into_inner(), entry(n));
        }
        let oldest_first = AuditQuery {
            order: AuditOrder::OldestFirst(AuditId::parse(&id(0))),
            ..all()
        };
        let list = ok(entries.list(EVERYWHERE, &oldest_first, 3)).await;
        let list: Vec<&str> = list.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(list, [id(1), id(2), id(3)]);
        let many = ok(entries.get_many(EVERYWHERE, &[&id(5), &id(2), "no"])).await;
        assert_eq!(many.len(), 2);
        assert_eq!(ok(entries.count(EVERYWHERE, &all())).await, 7);
    }
    assert_eq!(
        promote(store, &[0, 6]).await,
        0,
        "none of them is staged any more"
    );
}

/// A known total counts only the promoted records; the staged records are counted in addition.
async fn a_known_total_counts_only_promoted_records(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let more = entries(unit.as_mut());
    ok(more.append_many(vec![entry(7), entry(8)])).await;
    let among = ok(more.staged_keys(&[&id(7), &id(6), "no"])).await;
    assert_eq!(among.into_iter().collect::<Vec<_>>(), [id(7)]);
    assert_eq!(ok(more.list_staged(9)).await.len(), 2);
    ok(unit.commit()).await;
    let total = |totals: (Vec<String>, Vec<u64>)| totals.1.first().copied();
    assert_eq!(total(pages(store, &all(), Total::Known(7)).await), Some(9));
    let version = |added| Total::AtVersion(ListVersion { added, removed: 0 });
    // Counted once at each version.
    assert_eq!(total(pages(store, &all(), version(7)).await), Some(9));
    assert_eq!(promote(store, &[7]).await, 1);
    assert_eq!(total(pages(store, &all(), version(8)).await), Some(9));
    assert_eq!(promote(store, &[8]).await, 1);
    assert_eq!(
        total(pages(store, &all(), version(8)).await),
        Some(8),
        "the version has not changed"
    );
    assert_eq!(total(pages(store, &all(), version(9)).await), Some(9));
}

/// An entry whose key is taken is not promoted, and does not prevent the promotion of others.
async fn a_promoted_record_does_not_replace_a_record_with_its_key(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let again = AuditEntry {
        action: "thing.unmade".to_owned(),
        ..entry(8)
    };
    ok(entries(unit.as_mut()).append_many(vec![again, entry(9)])).await;
    ok(unit.commit()).await;
    assert_eq!(promote(store, &[8, 9]).await, 2);
    let mut unit = open(store, Mode::Read).await;
    let found = some(ok(entries(unit.as_mut()).get(EVERYWHERE, &id(8))).await);
    assert_eq!(found.action, "thing.made");
    assert_eq!(
        ok(entries(unit.as_mut()).count(EVERYWHERE, &all())).await,
        10
    );
}
