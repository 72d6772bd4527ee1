//! The repositories on top of an engine: versions, pages, cursors.

use std::sync::Arc;

use core_domain::kernel::{Cursor, PageRequest, TemplateId, Timestamp};
use core_domain::port::{Mode, Record, Store, StoreError, UnitOfWork};
use core_domain::stacks::{StackTemplate, StackTemplateQuery, TemplateStatus};

use StackTemplateQuery::{All, Named};

fn template(n: usize) -> StackTemplate {
    let Some(id) = TemplateId::parse(&format!("conformance-{n:02}")) else {
        panic!("an id");
    };
    StackTemplate {
        id,
        name: format!("conformance-{n}"),
        display_name: "Template".to_owned(),
        description: "What it is for".to_owned(),
        icon: None,
        domain: Some("web".to_owned()),
        latest_version: None,
        status: TemplateStatus::Active,
        // Several have the same instant.
        created_at: Timestamp::from_millis(i64::try_from(n / 3).unwrap_or(0)),
        updated_at: Timestamp::EPOCH,
    }
}

async fn open(store: &Arc<dyn Store>, mode: Mode) -> Box<dyn UnitOfWork> {
    match store.begin(mode).await {
        Ok(unit) => unit,
        Err(error) => panic!("a unit can be opened: {error}"),
    }
}

async fn ok<T>(work: impl Future<Output = Result<T, StoreError>>) -> T {
    match work.await {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error}"),
    }
}

/// Checks the repositories on an empty store.
///
/// # Panics
/// When the store does not do what [`core_domain::port::Repository`] promises.
pub async fn records(store: Arc<dyn Store>) {
    versions_guard_changes(&store).await;
    pages_hold_every_record_once(&store).await;
    cursors_cannot_be_made_up(&store).await;
}

async fn versions_guard_changes(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let templates = unit.stack_templates();
    let first = ok(templates.insert(template(0))).await;
    assert_eq!(first.version(), 1);
    let mut next = first.clone().into_inner();
    next.status = TemplateStatus::Deprecated;
    next.icon = Some("icon".to_owned());
    let second = ok(templates.replace(&first, next.clone())).await;
    assert_eq!(second.version(), 2);
    let stale = templates.replace(&first, next.clone()).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })));
    let stale = templates.remove(&first).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })));
    assert_eq!(ok(templates.get(next.key())).await, Some(second.clone()));
    let taken = templates.insert(template(0)).await;
    assert!(matches!(
        taken,
        Err(StoreError::Conflict { index: "key", .. })
    ));
    let mut twin = template(1);
    twin.name.clone_from(&next.name);
    let taken = templates.insert(twin).await;
    assert!(matches!(
        taken,
        Err(StoreError::Conflict { index: "name", .. })
    ));
    let named = Named(next.name.clone());
    assert_eq!(ok(templates.first(&named)).await, Some(second.clone()));
    ok(templates.remove(&second)).await;
    assert_eq!(ok(templates.count(&All)).await, 0);
    ok(unit.commit()).await;
}

async fn pages_hold_every_record_once(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    for n in 0..20 {
        ok(unit.stack_templates().insert(template(n))).await;
    }
    ok(unit.commit()).await;
    let mut request = PageRequest::first(7);
    let mut seen = Vec::new();
    loop {
        let mut unit = open(store, Mode::Read).await;
        let page = ok(unit.stack_templates().page(&All, &request)).await;
        assert_eq!(page.total, 20, "the total is that of the first page");
        seen.extend(page.items.iter().map(|item| item.name.clone()));
        let Some(next) = page.next else { break };
        request.cursor = Some(next);
        drop(unit);
        let mut unit = open(store, Mode::Write).await;
        let newer = template(100 + seen.len());
        ok(unit.stack_templates().insert(newer)).await;
        ok(unit.commit()).await;
    }
    let newest_first: Vec<String> = (0..20).rev().map(|n| template(n).name).collect();
    assert_eq!(seen, newest_first);
}

async fn cursors_cannot_be_made_up(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Read).await;
    let templates = unit.stack_templates();
    let page = ok(templates.page(&All, &PageRequest::first(2))).await;
    let Some(Cursor(good)) = page.next else {
        panic!("there is a next page");
    };
    let mut bad = vec![
        String::new(),
        "x".to_owned(),
        "A".repeat(100_000),
        format!("{good}A"),
    ];
    for at in 0..good.len() {
        let mut letters: Vec<char> = good.chars().collect();
        letters[at] = if letters[at] == 'A' { 'B' } else { 'A' };
        bad.push(letters.into_iter().collect());
    }
    let request = |cursor: &str| PageRequest {
        limit: 2,
        cursor: Some(Cursor(cursor.to_owned())),
    };
    for cursor in bad.iter().filter(|cursor| **cursor != good) {
        let refused = templates.page(&All, &request(cursor)).await;
        assert!(
            matches!(refused, Err(StoreError::InvalidCursor)),
            "{cursor:.80}"
        );
    }
    let other = Named("conformance-1".to_owned());
    let refused = templates.page(&other, &request(&good)).await;
    assert!(
        matches!(refused, Err(StoreError::InvalidCursor)),
        "of another list"
    );
    assert!(
        templates.page(&All, &request(&good)).await.is_ok(),
        "the unit goes on"
    );
}
