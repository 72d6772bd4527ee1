//! Custom domains, verified by a name server on this machine.

use std::sync::Arc;
use std::time::Duration;

use core_dns::testing::LoopbackDns;
use core_domain::kernel::{Clock, EntityId, Name, PlatformId, StackId, Timestamp};
use core_domain::port::{Mode, Store};
use core_domain::registry::{WorkspaceStack, WorkspaceStackStatus};
use core_domain::testing::{ManualClock, RecordKey};
use core_storage::memory::{MemoryConfig, open};
use serde_json::{Value, json};

use crate::world::{SERVICE_KEY, World, in_time, json_body, request, send};

const HOSTNAME: &str = "shop.example.com";
const TARGET: &str = "platform.example.net";

/// Inserts a workspace stack directly into the store. Returns its id.
async fn stack(store: &dyn Store, platform: &str, entity: &str) -> String {
    let mut uow = store.begin(Mode::Write).await.unwrap();
    let now = uow.now().await.unwrap();
    let stack = WorkspaceStack {
        id: StackId::parse("stack-1").unwrap(),
        tenant_id: EntityId::parse(entity).unwrap(),
        platform_id: PlatformId::parse(platform).unwrap(),
        name: Name::parse("web").unwrap(),
        template_id: None,
        repo_name: None,
        status: WorkspaceStackStatus::Active,
        created_at: now,
        updated_at: now,
        is_default: false,
        version_id: None,
        environment: None,
        provision_job_id: None,
    };
    let repositories = uow.repositories(RecordKey::for_tests());
    let stacks = repositories.workspace_stacks();
    let id = stacks.insert(stack).await.unwrap().id.to_string();
    uow.commit().await.unwrap();
    id
}

async fn create(world: &World, path: &str, body: Value) -> String {
    let path = format!("/api/v1/platforms{path}");
    let made = world.call("POST", &path, SERVICE_KEY, body).await;
    made.expect(201).id()
}

/// Provisions a platform. Returns the id of the worker that the job creates.
async fn worker(world: &World, platform: &str) -> String {
    let body =
        json!({ "platformId": platform, "planTier": "starter", "billingEmail": "ada@example.org" });
    let queued = request("POST", "/api/v1/provision/platform", SERVICE_KEY);
    let queued = send(world.suite.provisioning(), json_body(queued, &body));
    let _ = queued.await.expect(202);
    job_is(world, "platform", "COMPLETED").await;
    let path = format!("/api/v1/platforms/{platform}/resources");
    let resources = world.call("GET", &path, SERVICE_KEY, Value::Null).await;
    let resources = resources.expect(200).json;
    let mut resources = resources["data"].as_array().unwrap().iter();
    let worker = resources.find(|resource| resource["resourceType"] == "worker");
    worker.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Creates a platform with a DNS record. Returns the path of its domains, and the id of the record.
async fn platform_with_dns(world: &World, store: &dyn Store) -> (String, String) {
    let platform = world.platform("engines").await;
    let tenant = json!({ "name": "T", "slug": "t", "type": "tenant" });
    let entity = create(world, &format!("/{platform}/entities"), tenant).await;
    let stack = stack(store, &platform, &entity).await;
    let resource = worker(world, &platform).await;
    let record = json!({
        "hostname": TARGET, "targetType": "worker", "resourceId": resource, "environment": "prod",
    });
    let path = format!("/{platform}/stacks/{stack}/dns");
    let record = create(world, &path, record).await;
    (format!("/{platform}/domains"), record)
}

/// Waits, with long polling, until the job of a kind has a status.
async fn job_is(world: &World, kind: &str, status: &str) {
    in_time(until_job_is(world, kind, status)).await;
}

async fn until_job_is(world: &World, kind: &str, status: &str) {
    loop {
        let jobs = json_body(
            request("GET", "/api/v1/provision/jobs", SERVICE_KEY),
            &Value::Null,
        );
        let jobs = send(world.suite.provisioning(), jobs).await.expect(200);
        let mut jobs = jobs.json["data"].as_array().unwrap().iter();
        let job = jobs.find(|job| job["kind"] == kind).unwrap();
        if job["status"] == status {
            return;
        }
        let path = format!(
            "/api/v1/provision/jobs/{}?wait=1",
            job["jobId"].as_str().unwrap()
        );
        let job = json_body(request("GET", &path, SERVICE_KEY), &Value::Null);
        let _ = send(world.suite.provisioning(), job).await.expect(200);
    }
}

#[tokio::test]
async fn a_domain_becomes_active_when_its_records_appear_in_the_dns() {
    let server = LoopbackDns::start().await.unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
    let store = open(MemoryConfig {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        cursor_key: [1; 32].into(),
    });
    let world = World::with(|builder| {
        let nameserver = server.address().to_string();
        let builder = builder.store(Arc::clone(&store)).clock(clock.clone());
        builder.settings(|settings| settings.dns.nameservers = vec![nameserver])
    });
    let world = world.await;
    let (domains, record) = platform_with_dns(&world, store.as_ref()).await;
    let body = json!({ "dnsRecordId": record, "hostname": HOSTNAME, "targetDns": TARGET });
    let domain = create(&world, &domains, body).await;
    let shown = async || {
        let path = format!("/api/v1/platforms{domains}/{domain}");
        let shown = world.call("GET", &path, SERVICE_KEY, Value::Null).await;
        shown.expect(200).json
    };
    job_is(&world, "domain.add", "WAITING").await;
    let waiting = shown().await;
    assert_eq!(waiting["status"], "verifying");
    for missing in waiting["missingRecords"].as_array().unwrap() {
        let [name, value] = ["name", "value"].map(|field| missing[field].as_str().unwrap());
        match missing["type"].as_str().unwrap() {
            "CNAME" => server.add_cname(name, value),
            _ => server.add_txt(name, &[value]),
        }
    }
    clock.advance(Duration::from_secs(30));
    job_is(&world, "domain.add", "COMPLETED").await;
    let active = shown().await;
    let seen = ["status", "sslStatus"].map(|field| active[field].as_str().unwrap());
    assert_eq!(seen, ["active", "active"]);
    world.suite.shutdown().await;
}
