//! Tests of crashes: a child process of the test aborts without any clean-up, like after `kill -9`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use core_domain::kernel::{Secret, Timestamp};
use core_domain::port::{Infrastructure, ProviderError, SetSecrets};
use core_domain::registry::ResourceType;
use core_domain::testing::ManualClock;
use core_local::{FaultMoment, Faults, LocalConfig, LocalInfrastructure};

use crate::hostnames::to;
#[cfg(target_os = "linux")]
use crate::running::processes;
use crate::support::{OWNER, request, resource, upload, workerd};

const ROOT: &str = "CORE_LOCAL_CRASH_ROOT";
const CALL: &str = "CORE_LOCAL_CRASH_CALL";
const MOMENT: &str = "CORE_LOCAL_CRASH_MOMENT";
const REMOVE: &str = "remove-pages";

async fn open(root: &Path, faults: Faults) -> LocalInfrastructure {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let mut config = LocalConfig::new(root, 8090, clock);
    config.faults = faults;
    LocalInfrastructure::open(config).await.unwrap()
}

async fn make_everything(infra: &LocalInfrastructure) -> Result<(), ProviderError> {
    for &kind in ResourceType::ALL {
        infra.create(&request(kind, "acme-thing")).await?;
    }
    infra
        .route_hostname(&to("shop.example.org", ResourceType::Pages, "acme-thing"))
        .await?;
    let secrets = SetSecrets {
        resource: resource(ResourceType::Pages, "acme-thing"),
        owner: OWNER.to_owned(),
        secrets: vec![("TOKEN".to_owned(), Secret::new("open sesame"))],
        deleted: Vec::new(),
    };
    infra.set_secrets(&secrets).await?;
    let files = [("index.html", "front"), ("a.txt", "text")];
    infra
        .deploy_site(upload("acme-thing", "production", "d-1", &files))
        .await?;
    Ok(())
}

/// The code of the child process, not a test. Without the environment variables it does nothing.
#[tokio::test]
async fn child() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the parent passes parameters to the child in variables"
    )]
    let variables = [ROOT, CALL, MOMENT].map(|name| std::env::var(name).ok());
    let [Some(root), Some(call), Some(moment)] = variables else {
        return;
    };
    let stops_at = call.clone();
    let faults = Faults::new(move |point| {
        let of_type = point.resource_type.map_or("hostname", ResourceType::as_str);
        let here = format!("{}-{of_type}", point.call);
        if here == stops_at && format!("{:?}", point.moment) == moment {
            std::process::abort();
        }
        None
    });
    let infra = open(Path::new(&root), faults).await;
    make_everything(&infra).await.unwrap();
    if call == REMOVE {
        let pages = resource(ResourceType::Pages, "acme-thing");
        infra.remove(&pages, OWNER).await.unwrap();
    }
}

fn run_child(root: &Path, call: &str, moment: FaultMoment) {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(ROOT, root)
        .env(CALL, call)
        .env(MOMENT, format!("{moment:?}"))
        .output()
        .unwrap();
    // No exit code: the process aborted, and no assertion in it failed.
    assert_eq!(ended.status.code(), None, "{call} {moment:?}");
}

#[tokio::test]
async fn crash_at_any_moment_leaves_complete_objects_or_none() {
    let calls = [
        "create-d1",
        "create-queue",
        "create-worker",
        "create-pages",
        "deploy-pages",
        "route-pages",
        "secrets-pages",
    ];
    for call in calls {
        for moment in [
            FaultMoment::Staged,
            FaultMoment::Published,
            FaultMoment::Live,
            FaultMoment::Done,
        ] {
            let passes = match moment {
                FaultMoment::Published | FaultMoment::Live => call == "deploy-pages",
                FaultMoment::Staged => call.starts_with("create") || call == "deploy-pages",
                _ => true,
            };
            if !passes {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            run_child(folder.path(), call, moment);
            let infra = open(folder.path(), Faults::default()).await;
            let staging = std::fs::read_dir(folder.path().join(".staging")).unwrap();
            assert_eq!(staging.count(), 0, "{call} {moment:?}");
            let before = infra.inventory().await.unwrap();
            make_everything(&infra).await.unwrap();
            let after = infra.inventory().await.unwrap();
            assert_eq!(after.len(), ResourceType::ALL.len());
            assert!(before.iter().all(|object| after.contains(object)));
            assert!(
                infra
                    .site_deployment("acme-thing", "d-1")
                    .await
                    .unwrap()
                    .is_some()
            );
            let route = infra.get_route("shop.example.org").await.unwrap();
            assert_eq!(route.unwrap().target, "acme-thing");
            let pages = resource(ResourceType::Pages, "acme-thing");
            assert_eq!(infra.secret_names(&pages).await.unwrap(), ["TOKEN"]);
            infra
                .kv("acme-thing")
                .await
                .unwrap()
                .put("key", b"value", None)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn interrupted_removal_leaves_no_hostname_and_can_be_repeated() {
    for moment in [FaultMoment::Unrouted, FaultMoment::Done] {
        let folder = tempfile::tempdir().unwrap();
        run_child(folder.path(), REMOVE, moment);
        let infra = open(folder.path(), Faults::default()).await;
        assert_eq!(infra.get_route("shop.example.org").await.unwrap(), None);
        let pages = resource(ResourceType::Pages, "acme-thing");
        infra.remove(&pages, OWNER).await.unwrap();
        assert_eq!(infra.observe(&pages).await.unwrap(), None);
        make_everything(&infra).await.unwrap();
    }
}

/// The code of a child process that runs a worker and aborts, not a test.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn child_with_a_worker() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the parent passes parameters to the child in variables"
    )]
    let Ok(root) = std::env::var(ROOT) else {
        return;
    };
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let mut config = LocalConfig::new(root, 8090, clock);
    config.workerd = workerd();
    let infra = LocalInfrastructure::open(config).await.unwrap();
    infra
        .create(&request(ResourceType::Worker, "acme-api"))
        .await
        .unwrap();
    let ask = http::Request::get("http://acme-api.localhost/")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = tower::ServiceExt::oneshot(infra.site_host(), ask).await;
    assert!(answer.is_ok());
    std::process::abort();
}

#[cfg(target_os = "linux")]
#[test]
fn workers_end_when_the_provider_crashes() {
    if workerd().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_with_a_worker", "--nocapture"])
        .env(ROOT, folder.path())
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), None);
    while !processes(folder.path()).is_empty() {
        std::thread::yield_now();
    }
}
