//! Cases for the repositories on top of an engine: versions, pages, cursors, platforms, effects.

use std::sync::Arc;

use core_domain::access::RecordKey;
use core_domain::kernel::{
    Cursor, Effect, EntityId, Line, Name, PageQuery, PlatformId, Record, Slug, StoreError, Stored,
    TemplateId, Timestamp, Total,
};
use core_domain::port::{Direction, Mode, Repository, Store, UnitOfWork, Within};
use core_domain::registry::{Entity, EntityFilter, EntityQuery, EntityStatus, EntityType};
use core_domain::stacks::StackTemplateQuery::{All, Named};
use core_domain::stacks::{StackTemplate, TemplateName, TemplateStatus};
use core_domain::testing::named_uuid;

const EVERYWHERE: Within<'static> = Within::Installation;

pub(super) fn some<T>(value: Option<T>) -> T {
    match value {
        Some(value) => value,
        None => panic!("a valid sample"),
    }
}

fn name(n: usize) -> TemplateName {
    some(TemplateName::parse(&format!("conformance-{n}")).ok())
}

fn template(n: usize) -> StackTemplate {
    StackTemplate {
        id: some(TemplateId::parse(&named_uuid(&format!(
            "conformance-{n:02}"
        )))),
        name: name(n),
        display_name: some(Line::parse("Template").ok()),
        description: some(Line::parse("What it is for").ok()),
        icon: None,
        domain: Line::parse("web").ok(),
        latest_version: None,
        status: TemplateStatus::Active,
        // Several templates have the same time.
        created_at: Timestamp::from_millis(i64::try_from(n / 3).unwrap_or(0)),
        updated_at: Timestamp::EPOCH,
    }
}

fn templates(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<StackTemplate> {
    unit.repositories(RecordKey::for_tests()).stack_templates()
}

fn entities(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<Entity> {
    unit.repositories(RecordKey::for_tests()).entities()
}

fn platform(id: &str) -> PlatformId {
    some(PlatformId::parse(&named_uuid(id)))
}

pub(super) fn entity(id: &str, platform_id: &str, parent: Option<&str>) -> Entity {
    Entity {
        id: some(EntityId::parse(id)),
        platform_id: platform(platform_id),
        parent_id: parent.and_then(EntityId::parse),
        depth: i64::from(parent.is_some()),
        entity_type: EntityType::Tenant,
        name: some(Name::parse(id).ok()),
        slug: some(Slug::parse(id).ok()),
        status: EntityStatus::Active,
        created_at: Timestamp::EPOCH,
        updated_at: Timestamp::EPOCH,
        deleted_at: None,
    }
}

pub(super) async fn open(store: &Arc<dyn Store>, mode: Mode) -> Box<dyn UnitOfWork> {
    match store.begin(mode).await {
        Ok(unit) => unit,
        Err(error) => panic!("a unit can be opened: {error}"),
    }
}

pub(super) async fn ok<T>(work: impl Future<Output = Result<T, StoreError>>) -> T {
    match work.await {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error}"),
    }
}

/// Runs the cases on an empty store.
pub(super) async fn run(store: &Arc<dyn Store>) {
    versions_guard_changes(store).await;
    pages_contain_every_record_once(store).await;
    cursors_cannot_be_forged(store).await;
    records_of_another_platform_do_not_exist(store).await;
    a_commit_returns_the_effects_of_the_unit(store).await;
}

async fn versions_guard_changes(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let templates = templates(unit.as_mut());
    let first = ok(templates.insert(template(0))).await;
    assert_eq!(first.version(), 1);
    let mut next = first.clone().into_inner();
    next.status = TemplateStatus::Deprecated;
    next.icon = Line::parse("icon").ok();
    let second = ok(templates.replace(&first, next.clone())).await;
    assert_eq!(second.version(), 2);
    let stale = templates.replace(&first, next.clone()).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })));
    let stale = templates.remove(&first).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })));
    assert_eq!(
        ok(templates.get(EVERYWHERE, next.key())).await,
        Some(second.clone())
    );
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
    assert_eq!(
        ok(templates.first(EVERYWHERE, &named)).await,
        Some(second.clone())
    );
    ok(templates.remove(&second)).await;
    assert_eq!(ok(templates.count(EVERYWHERE, &All)).await, 0);
    ok(unit.commit()).await;
}

async fn pages_contain_every_record_once(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    for n in 0..20 {
        ok(templates(unit.as_mut()).insert(template(n))).await;
    }
    ok(unit.commit()).await;
    let mut request = PageQuery::first(7);
    let mut listed = Vec::new();
    loop {
        let mut unit = open(store, Mode::Read).await;
        let page = ok(templates(unit.as_mut()).page(EVERYWHERE, &All, &request)).await;
        assert_eq!(page.total, 20, "the total is that of the first page");
        listed.extend(page.items.iter().map(|item| item.name.clone()));
        let Some(next) = page.next else { break };
        request.cursor = Some(next);
        drop(unit);
        let mut unit = open(store, Mode::Write).await;
        let newer = template(100 + listed.len());
        ok(templates(unit.as_mut()).insert(newer)).await;
        ok(unit.commit()).await;
    }
    let newest_first: Vec<TemplateName> = (0..20).rev().map(|n| template(n).name).collect();
    assert_eq!(listed, newest_first);
}

async fn cursors_cannot_be_forged(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Read).await;
    let templates = templates(unit.as_mut());
    let page = ok(templates.page(EVERYWHERE, &All, &PageQuery::first(2))).await;
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
    let request = |cursor: &str| PageQuery {
        limit: 2,
        cursor: Some(Cursor(cursor.to_owned())),
        total: Total::Unknown,
    };
    for cursor in bad.iter().filter(|cursor| **cursor != good) {
        let refused = templates.page(EVERYWHERE, &All, &request(cursor)).await;
        assert!(
            matches!(refused, Err(StoreError::InvalidCursor)),
            "{cursor:.80}"
        );
    }
    let other = Named(name(1));
    let refused = templates.page(EVERYWHERE, &other, &request(&good)).await;
    assert!(
        matches!(refused, Err(StoreError::InvalidCursor)),
        "the cursor of another list is refused"
    );
    assert!(
        templates
            .page(EVERYWHERE, &All, &request(&good))
            .await
            .is_ok(),
        "the unit stays usable"
    );
}

async fn records_of_another_platform_do_not_exist(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    let all = entities(unit.as_mut());
    ok(all.insert(entity("own-root", "own", None))).await;
    ok(all.insert(entity("own-leaf", "own", Some("own-root")))).await;
    ok(all.insert(entity("other-root", "other", None))).await;
    ok(all.insert(entity("other-leaf", "other", Some("other-root")))).await;
    let own = platform("own");
    let own = Within::Platform(&own);
    let listed = EntityQuery::Listed(EntityFilter::default());
    assert!(ok(all.get(own, "own-root")).await.is_some());
    assert_eq!(ok(all.get(own, "other-root")).await, None);
    assert_eq!(ok(all.count(own, &listed)).await, 2);
    assert_eq!(ok(all.count(EVERYWHERE, &listed)).await, 4);
    let is_own = |entity: &Stored<Entity>| entity.platform_id == platform("own");
    let of_own = |found: &[Stored<Entity>]| found.iter().all(is_own);
    let page = ok(all.page(own, &listed, &PageQuery::first(10))).await;
    assert!(page.total == 2 && page.items.len() == 2 && of_own(&page.items));
    let list = ok(all.list(own, &listed, 10)).await;
    assert!(list.len() == 2 && of_own(&list));
    let leaves_of_other = EntityQuery::ChildrenOf(entity("other-root", "other", None).id);
    assert_eq!(ok(all.first(own, &leaves_of_other)).await, None);
    let down = Direction::Descendants;
    assert_eq!(ok(all.walk(own, "own-root", down, 9)).await.len(), 1);
    assert_eq!(ok(all.walk(own, "other-root", down, 9)).await, []);
    assert_eq!(
        ok(all.walk(EVERYWHERE, "other-root", down, 9)).await.len(),
        1
    );
    assert_eq!(ok(all.remove_all(own, &listed)).await, 2);
    assert_eq!(ok(all.count(EVERYWHERE, &listed)).await, 2);
    unit.rollback().await;
}

async fn a_commit_returns_the_effects_of_the_unit(store: &Arc<dyn Store>) {
    let mut unit = open(store, Mode::Write).await;
    unit.effects().add(Effect::JobReady);
    let effects = ok(unit.commit()).await;
    assert_eq!(effects.iter().collect::<Vec<_>>(), [&Effect::JobReady]);
    let unit = open(store, Mode::Write).await;
    assert!(ok(unit.commit()).await.is_empty());
}
