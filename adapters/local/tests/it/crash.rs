//! A process that dies in the middle: a child of the test ends without any clean-up, as `kill -9` would end it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::port::{Infrastructure, ProviderError};
use core_domain::registry::ResourceType;
use core_domain::testing::ManualClock;
use core_local::{Faults, LocalConfig, LocalInfrastructure, Moment};

use crate::support::{request, upload};

const ROOT: &str = "CORE_LOCAL_CRASH_ROOT";
const CALL: &str = "CORE_LOCAL_CRASH_CALL";
const MOMENT: &str = "CORE_LOCAL_CRASH_MOMENT";

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
    let files = [("index.html", "front"), ("a.txt", "text")];
    infra
        .deploy_site(upload("acme-thing", "production", "d-1", &files))
        .await?;
    Ok(())
}

/// Not a test by itself: what the child does. Without the variables it does nothing.
#[tokio::test]
async fn child() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how the parent tells the child what to do"
    )]
    let variables = [ROOT, CALL, MOMENT].map(|name| std::env::var(name).ok());
    let [Some(root), Some(call), Some(moment)] = variables else {
        return;
    };
    let faults = Faults::new(move |point| {
        let here = format!("{}-{}", point.call, point.resource.resource_type);
        if here == call && format!("{:?}", point.moment) == moment {
            std::process::abort();
        }
        None
    });
    let infra = open(Path::new(&root), faults).await;
    make_everything(&infra).await.unwrap();
}

fn run_child(root: &Path, call: &str, moment: Moment) {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(ROOT, root)
        .env(CALL, call)
        .env(MOMENT, format!("{moment:?}"))
        .output()
        .unwrap();
    // No exit code: it did not end by itself, and no test in it failed.
    assert_eq!(ended.status.code(), None, "{call} {moment:?}");
}

#[tokio::test]
async fn a_process_that_dies_at_any_moment_leaves_whole_objects_or_none() {
    let calls = [
        "create-d1",
        "create-queue",
        "create-worker",
        "create-pages",
        "deploy-pages",
    ];
    for call in calls {
        for moment in [
            Moment::Staged,
            Moment::Published,
            Moment::Live,
            Moment::Done,
        ] {
            let deploys_alone = matches!(moment, Moment::Published | Moment::Live);
            if deploys_alone && call != "deploy-pages" {
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
