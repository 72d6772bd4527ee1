//! Compares the cost of the 500th page of a long list with that of its first page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::{
    AuditId, BoundedJson, Context, EntityId, Environment, JsonText, Name, PlatformId, Record,
    ResourceId, Slug, Timestamp,
};
use core_domain::port::{Mode, Persisted, Store, Within, transact};
use core_domain::registry::{
    CreateEntity, CreateResource, Entity, EntityType, Platform, ProviderName, Resource,
    ResourceType,
};
use core_domain::shared::{AuditChain, AuditEntry, AuditHead, AuditStream};
use core_domain::testing::RecordKey;
use core_domain::use_case::shared::seal;
use core_http::kernel::testing::{app, call, operator};
use core_http::kernel::{App, Service};
use core_suite::SystemClock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fill;
use crate::harness::backend::{Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::process::{Process, print_message};
use crate::plan::Plan;
use crate::report::Report;

/// The number of rows in one unit of work.
const UNIT: u32 = 1_000;

/// The number of items on a page.
const PAGE: u32 = 50;

/// The measured lists, of the platform with the number 0 and across platforms.
const LISTS: [(&str, &str); 4] = [
    ("resources", "/api/v1/platforms/{}/resources"),
    ("audit of a platform", "/api/v1/platforms/{}/audit"),
    (
        "audit, an action",
        "/api/v1/platforms/{}/audit?action=resource.updated",
    ),
    ("audit", "/api/v1/audit"),
];

/// The lengths of the lists, and the page to compare with the first one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Lists {
    location: Location,
    audit: u32,
    resources: u32,
    page: u32,
    rounds: u32,
}

/// The times of two pages of a list in microseconds: the median of the rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PageTimes {
    pub(crate) list: String,
    pub(crate) first: f64,
    pub(crate) later: f64,
}

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        let place = Place::new(*backend);
        let lists = Lists {
            location: place.location.clone(),
            audit: plan.audit,
            resources: plan.resources,
            page: plan.page,
            rounds: plan.answers(),
        };
        let mut child = Process::in_role("pages", &json!(lists), Cores::All);
        let took: Vec<PageTimes> = serde_json::from_value(child.wait_for("pages")).unwrap();
        took.iter()
            .for_each(|took| report.pages(*backend, plan.page, took));
        child.end();
    }
}

/// The role of the process that has the store.
pub(crate) async fn run(lists: Lists) {
    let store = lists.location.store().await;
    fill::platforms(&store, lists.location.backend, 0..1).await;
    fill_resources(&store, lists.resources).await;
    fill_audit(&store, lists.audit).await;
    lists.location.vacuum().await;
    let app = Arc::new(app(store, Arc::new(SystemClock)));
    let sealer = tokio::spawn(seal_reads(Arc::clone(&app)));
    let registry = core_http::registry::service(app).unwrap();
    let mut took = Vec::new();
    for (list, path) in LISTS {
        let path = path.replace("{}", &fill::id(0));
        let cursor = cursor_of(&registry, &path, lists.page).await;
        took.push(PageTimes {
            list: list.to_owned(),
            first: median(&registry, &path, None, lists.rounds).await,
            later: median(&registry, &path, Some(&cursor), lists.rounds).await,
        });
    }
    sealer.abort();
    print_message("pages", &json!(took));
}

/// Seals the audit entries of read accesses, as the suite does.
async fn seal_reads(app: Arc<App>) {
    let cx = Context::system(Arc::clone(&app.entropy));
    loop {
        let sealed = seal(&cx, app.store.as_ref(), &app.audit_key).await.unwrap();
        if !sealed.has_more {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn page(registry: &Service, path: &str, cursor: Option<&str>) -> Value {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut path = format!("{path}{separator}limit={PAGE}");
    if let Some(cursor) = cursor {
        path = format!("{path}&cursor={cursor}");
    }
    let answer = call(registry, "GET", &path, &operator(), Value::Null).await;
    answer.expect(200).json
}

/// Returns the cursor of the page with this number.
async fn cursor_of(registry: &Service, path: &str, number: u32) -> String {
    let mut cursor = None;
    for _ in 1..number {
        let found = page(registry, path, cursor.as_deref()).await;
        let next = found["pagination"]["nextCursor"].as_str();
        cursor = Some(next.unwrap().to_owned());
    }
    cursor.unwrap()
}

async fn median(registry: &Service, path: &str, cursor: Option<&str>, rounds: u32) -> f64 {
    let mut took = Vec::new();
    for _ in 0..rounds {
        let since = Instant::now();
        page(registry, path, cursor).await;
        took.push(since.elapsed().as_secs_f64() * 1e6);
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

/// Appends rows in several units of work.
async fn append<R: Persisted>(store: &Arc<dyn Store>, count: u32, row: impl Fn(u32) -> R) {
    for first in (0..count).step_by(UNIT as usize) {
        let rows: Vec<R> = (first..count.min(first + UNIT)).map(&row).collect();
        let appended = transact(store.as_ref(), |uow, _| {
            let rows = rows.clone();
            Box::pin(async move {
                let records = R::repository(uow.repositories(RecordKey::for_tests()));
                Ok(records.append_many(rows).await?)
            })
        });
        appended.await.unwrap();
    }
}

fn at(number: u32) -> Timestamp {
    Timestamp::from_seconds(1_700_000_000 + i64::from(number))
}

async fn fill_resources(store: &Arc<dyn Store>, count: u32) {
    let platform = platform(store).await;
    let command = CreateEntity {
        name: Name::parse("Tenant").unwrap(),
        slug: Slug::parse("tenant").unwrap(),
        entity_type: EntityType::Tenant,
        parent_id: None,
    };
    let id = EntityId::parse(&fill::id(1)).unwrap();
    let entity = Entity::create(id, &platform.id, 1, command, at(0));
    append(store, 1, |_| entity.clone()).await;
    append(store, count, |number| {
        let name = |text: String| ProviderName::parse(&text).unwrap();
        let command = CreateResource {
            stack_id: None,
            resource_type: ResourceType::Worker,
            service_name: name("api".to_owned()),
            environment: Environment::Prod,
            cf_name: name(format!("worker-{number}")),
            cf_id: None,
            cf_url: None,
            provision_job_id: None,
            config: BoundedJson::empty_object(),
        };
        let id = ResourceId::parse(&fill::id(number)).unwrap();
        Resource::create(id, &platform, entity.id.clone(), command, at(number))
    })
    .await;
}

async fn platform(store: &Arc<dyn Store>) -> Platform {
    let mut uow = store.begin(Mode::Auto).await.unwrap();
    let platforms = Platform::repository(uow.repositories(RecordKey::for_tests()));
    let found = platforms
        .get(Within::Installation, &fill::id(0))
        .await
        .unwrap();
    found.unwrap().into_inner()
}

async fn fill_audit(store: &Arc<dyn Store>, count: u32) {
    let actions = ["resource.created", "resource.updated", "resource.deleted"];
    let (platform_id, caller) = (PlatformId::parse(&fill::id(0)), operator());
    append(store, count, |number| AuditEntry {
        id: AuditId::parse(&fill::id(number)).unwrap(),
        stream: AuditStream::Changes,
        platform_id: platform_id.clone(),
        actor_id: caller.actor_id().to_owned(),
        actor_type: caller.kind().to_owned(),
        action: actions[number as usize % 3].to_owned(),
        entity_type: Resource::KIND.to_owned(),
        entity_id: fill::id(number % 1_000),
        before: None,
        after: Some(JsonText::of(&json!({ "status": "active" }))),
        metadata: JsonText::of(&json!({ "requestId": "bench" })),
        created_at: at(number),
    })
    .await;
    // Marks all entries as sealed.
    let numbers: Vec<u32> = (0..count).collect();
    for numbers in numbers.chunks(UNIT as usize) {
        let promoted = transact(store.as_ref(), |uow, _| {
            let ids: Vec<String> = numbers.iter().copied().map(fill::id).collect();
            Box::pin(async move {
                let entries = AuditEntry::repository(uow.repositories(RecordKey::for_tests()));
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                Ok(entries.promote(&ids).await?)
            })
        });
        promoted.await.unwrap();
    }
    let seq = i64::from(count);
    for chain in [AuditChain::feed(), AuditChain::of(platform_id.as_ref())] {
        let head = AuditHead {
            seq,
            changes: seq,
            checkpoint_seq: seq,
            ..AuditHead::empty(chain)
        };
        append(store, 1, |_| head.clone()).await;
    }
}
