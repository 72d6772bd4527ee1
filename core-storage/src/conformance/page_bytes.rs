//! Cases for the byte budget of pages: a page that reaches the budget is shorter, and no record is lost or repeated.

use std::sync::Arc;

use core_domain::access::RecordKey;
use core_domain::kernel::{
    AuditId, JsonText, PageQuery, PlatformId, TemplateId, Timestamp, VersionId,
};
use core_domain::port::{Direction, Mode, Persisted, Repository, Store, UnitOfWork, Within};
use core_domain::shared::{AuditEntry, AuditQuery, AuditStream};
use core_domain::stacks::{SemVer, StackVersion, StackVersionQuery, VersionStatus};
use core_domain::testing::named_uuid;
use serde_json::json;

use super::records::{entity, ok, open, some};
use crate::page::DEFAULT_PAGE_BYTES;

const EVERYWHERE: Within<'static> = Within::Installation;

const KIB: usize = 1024;

/// Returns the sizes of the records in the order of their list: small and large ones, and some that fill a page alone.
fn sizes() -> Vec<usize> {
    let mut sizes = vec![10; 40];
    sizes.extend([
        1_100 * KIB,
        10,
        600 * KIB,
        600 * KIB,
        1_100 * KIB,
        1_100 * KIB,
    ]);
    sizes.extend([90 * KIB; 25]);
    sizes.extend([10; 60]);
    sizes
}

fn text(bytes: usize) -> JsonText {
    JsonText::of(&json!({ "text": "x".repeat(bytes) }))
}

fn template() -> TemplateId {
    some(TemplateId::parse(&named_uuid("page-bytes")))
}

/// Returns the n-th version. Versions are listed from the highest to the lowest.
fn version(n: usize, bytes: usize) -> StackVersion {
    let number = format!("1.0.{}", 1_000 - n);
    StackVersion {
        id: some(VersionId::parse(&named_uuid(&format!("page-bytes-{n}")))),
        template_id: template(),
        version: some(SemVer::parse(&number).ok()),
        digest: String::new(),
        stack_definition: text(bytes),
        core_sdk_version: some(SemVer::parse("1.0.0").ok()),
        status: VersionStatus::Active,
        published_at: Timestamp::EPOCH,
        created_at: Timestamp::EPOCH,
    }
}

/// Returns the n-th audit entry. Entries are listed from the newest to the oldest.
fn entry(n: usize, bytes: usize) -> AuditEntry {
    let age = i64::try_from(n).unwrap_or(0);
    AuditEntry {
        id: some(AuditId::parse(&named_uuid(&format!(
            "page-bytes-{:04}",
            9_999 - age
        )))),
        stream: AuditStream::Changes,
        platform_id: PlatformId::parse(&named_uuid("page-bytes")),
        actor_id: "ada".to_owned(),
        actor_type: "user".to_owned(),
        action: "thing.made".to_owned(),
        entity_type: "thing".to_owned(),
        entity_id: "thing".to_owned(),
        before: None,
        after: None,
        metadata: text(bytes),
        created_at: Timestamp::from_millis(1_000_000 - age),
    }
}

fn versions(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<StackVersion> {
    unit.repositories(RecordKey::for_tests()).stack_versions()
}

fn entries(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<AuditEntry> {
    unit.repositories(RecordKey::for_tests()).audit_entries()
}

/// Runs the cases on a store with the default budget.
pub(super) async fn run(store: &Arc<dyn Store>) {
    large_versions_are_listed_on_more_pages(store).await;
    large_audit_entries_are_listed_on_more_pages(store).await;
    a_large_tree_is_returned_partially(store).await;
}

async fn large_versions_are_listed_on_more_pages(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    for (n, bytes) in sizes().into_iter().enumerate() {
        ok(versions(unit.as_mut()).insert(version(n, bytes))).await;
    }
    ok(unit.commit()).await;
    let query = StackVersionQuery::OfTemplate(template());
    let bytes = |version: &StackVersion| version.stack_definition.as_str().len();
    assert_paged(store, versions, &query, bytes).await;
    let mut unit = open(store, Mode::Write).await;
    ok(versions(unit.as_mut()).remove_all(EVERYWHERE, &query)).await;
    ok(unit.commit()).await;
}

/// Half of the entries are still staged.
async fn large_audit_entries_are_listed_on_more_pages(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let mut promoted = Vec::new();
    for (n, bytes) in sizes().into_iter().enumerate() {
        let entry = entry(n, bytes);
        if n % 2 == 0 {
            promoted.push(entry.id.to_string());
        }
        ok(entries(unit.as_mut()).insert(entry)).await;
    }
    let promoted: Vec<&str> = promoted.iter().map(String::as_str).collect();
    ok(entries(unit.as_mut()).promote(&promoted)).await;
    ok(unit.commit()).await;
    let query = AuditQuery {
        platform_id: PlatformId::parse(&named_uuid("page-bytes")),
        ..AuditQuery::default()
    };
    let bytes = |entry: &AuditEntry| entry.metadata.as_str().len();
    assert_paged(store, entries, &query, bytes).await;
}

type Open<R> = fn(&mut dyn UnitOfWork) -> &mut dyn Repository<R>;

/// Lists all records in pages of several sizes, and compares their sizes with the stored ones.
async fn assert_paged<R: Persisted>(
    store: &Arc<dyn Store>,
    records: Open<R>,
    query: &R::Query,
    bytes: impl Fn(&R) -> usize,
) {
    let expected: Vec<usize> = sizes()
        .into_iter()
        .map(|size| text(size).as_str().len())
        .collect();
    for limit in [1, 16, 17, 50, 100, 1_000] {
        let mut request = PageQuery::first(limit);
        let mut found = Vec::new();
        loop {
            let mut unit = open(store, Mode::Auto).await;
            let page = ok(records(unit.as_mut()).page(EVERYWHERE, query, &request)).await;
            let sizes: Vec<usize> = page.items.iter().map(|record| bytes(record)).collect();
            let sum: usize = sizes.iter().sum();
            assert!(sum <= DEFAULT_PAGE_BYTES || sizes.len() == 1, "{sizes:?}");
            assert!((1..=limit as usize).contains(&sizes.len()), "{sizes:?}");
            assert_eq!(page.total, expected.len() as u64);
            found.extend(sizes);
            request.cursor = page.next;
            if request.cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "pages of {limit}");
    }
}

async fn a_large_tree_is_returned_partially(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let root = "page-bytes";
    let mut tree = vec![entity(root, root, None)];
    tree.extend((0..10_000).map(|n| entity(&format!("page-bytes-{n:05}"), root, Some(root))));
    let entities = unit.repositories(RecordKey::for_tests()).entities();
    ok(entities.insert_many(tree)).await;
    ok(unit.commit()).await;
    let mut unit = open(store, Mode::Read).await;
    let entities = unit.repositories(RecordKey::for_tests()).entities();
    let below = Direction::Descendants;
    let whole = ok(entities.walk(EVERYWHERE, root, below, 4)).await;
    let part = ok(entities.walk_bounded(EVERYWHERE, root, below, 4)).await;
    assert_eq!(whole.len(), 10_000);
    assert!(part.has_more && part.items.len() > 1_000);
    assert_eq!(part.items[..], whole[..part.items.len()]);
    let leaf = "page-bytes-00001";
    let none = ok(entities.walk_bounded(EVERYWHERE, leaf, below, 4)).await;
    assert!(none.items.is_empty() && !none.has_more);
    unit.rollback().await;
    let mut unit = open(store, Mode::Write).await;
    let platform = some(PlatformId::parse(&named_uuid(root)));
    let entities = unit.repositories(RecordKey::for_tests()).entities();
    ok(entities.remove_of_platform(&platform)).await;
    ok(unit.commit()).await;
}
