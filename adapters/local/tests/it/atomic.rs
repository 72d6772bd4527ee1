//! Tests of readers during deployments: every response belongs to a version that is live as a whole, and no visitor goes
//! back to a version that was replaced before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use core_domain::cli::{PlannedFile, SiteLimits, SiteManifest};
use core_domain::kernel::hex;
use core_domain::port::{Infrastructure, PartialSite, Site, SiteRedeploy, SiteUpload};
use core_domain::testing::MemorySite;
use futures_util::future::join_all;

use crate::host::{body, get};
use crate::support::{World, upload, world_of};

const PAGE: &str = "http://acme-site.localhost:8090/";
const READERS: usize = 3;

/// The number of changes of the site. Two of seven are rollbacks, so 50 are deployments. Each seventh is a planned one.
const CHANGES: usize = 70;

type Files = Vec<(String, String)>;

/// Returns the name of the file that the front page of the version names. No other version has this file.
fn script(version: usize) -> String {
    format!("app-{version}.js")
}

/// Returns the files of a version. The large ones are longer than one piece of a response.
fn files(version: usize) -> Files {
    let front = format!("<script src=\"{}\"></script>", script(version));
    let large = |name| format!("{name} of version {version}\n").repeat(4_000);
    vec![
        ("index.html".to_owned(), front),
        (script(version), large("script")),
        ("style.css".to_owned(), large("style")),
        ("404.html".to_owned(), format!("not in version {version}")),
        ("logo.svg".to_owned(), "the same logo".repeat(10)),
    ]
}

fn borrow(files: &Files) -> Vec<(&str, &str)> {
    let files = files.iter();
    files
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect()
}

/// Returns the upload of a version without the files that all versions share.
fn planned_upload(key: &str, version: usize) -> SiteUpload {
    let all = files(version);
    let site = MemorySite::from_iter(borrow(&all));
    let planned = site.files().iter().map(|file| PlannedFile {
        path: file.path.clone(),
        size: file.size,
        digest: hex(&file.digest),
    });
    let manifest = SiteManifest::new(&planned.collect::<Vec<_>>(), SiteLimits::default());
    let uploaded = MemorySite::from_iter(borrow(&all)[..4].iter().copied());
    let site = PartialSite::new(manifest.unwrap(), Arc::new(uploaded)).unwrap();
    SiteUpload {
        project: "acme-site".to_owned(),
        branch: "production".to_owned(),
        deployment_key: key.to_owned(),
        site: Arc::new(site),
    }
}

fn rollback(key: &str, version: usize) -> SiteRedeploy {
    SiteRedeploy {
        project: "acme-site".to_owned(),
        branch: "production".to_owned(),
        deployment_key: key.to_owned(),
        source_key: format!("v-{version}"),
        source_branch: "production".to_owned(),
        source_id: None,
    }
}

/// A site, and the versions that were live, are live or will be live.
struct Timeline {
    world: World,
    /// The version of each change, in the order of the changes. Contains a change from its start on.
    versions: Mutex<Vec<usize>>,
    /// The position of the last completed change.
    completed: AtomicUsize,
}

impl Timeline {
    async fn over(world: World) -> Self {
        world.project("acme-site").await;
        world.deploy("acme-site", "v-0", &borrow(&files(0))).await;
        Self {
            world,
            versions: Mutex::new(vec![0]),
            completed: AtomicUsize::new(0),
        }
    }

    fn start_change(&self, version: usize) {
        self.versions.lock().unwrap().push(version);
    }

    fn complete_change(&self) {
        self.completed.fetch_add(1, Ordering::SeqCst);
    }

    async fn deploy(&self, version: usize) {
        let all = files(version);
        let new = upload(
            "acme-site",
            "production",
            &format!("v-{version}"),
            &borrow(&all),
        );
        self.start_change(version);
        self.world.infra.deploy_site(new).await.unwrap();
        self.complete_change();
    }

    async fn deploy_planned(&self, version: usize) {
        let new = planned_upload(&format!("v-{version}"), version);
        self.start_change(version);
        self.world.infra.deploy_site(new).await.unwrap();
        self.complete_change();
    }

    async fn roll_back(&self, change: usize, version: usize) {
        self.start_change(version);
        let request = rollback(&format!("back-{change}"), version);
        self.world.infra.redeploy_site(&request).await.unwrap();
        self.complete_change();
    }

    /// Requests a path. Panics if the response belongs to no version at or after the position `since` that had begun to
    /// be deployed. Returns the first such position, and the body.
    async fn read(&self, since: usize, path: &str) -> (usize, String) {
        let response = get(&self.world, &format!("{PAGE}{path}")).await;
        let status = response.status().as_u16();
        let length = response.headers()["content-length"].clone();
        let text = body(response).await;
        assert_eq!(length, text.len().to_string(), "{path}");
        let versions = self.versions.lock().unwrap().clone();
        let answers = |version: usize| {
            let all = files(version);
            let name = if path.is_empty() { "index.html" } else { path };
            match all.iter().find(|(path, _)| path == name) {
                Some((_, content)) => status == 200 && *content == text,
                None => status == 404 && all[3].1 == text,
            }
        };
        let position = (since..versions.len()).find(|position| answers(versions[*position]));
        let position = position.unwrap_or_else(|| {
            let live = &versions[since..];
            panic!(
                "{path}: {status} {:?} is in none of {live:?}",
                &text[..40.min(text.len())]
            )
        });
        (position, text)
    }

    /// Visits the front page and the files that it names, until all changes are completed. Returns the number of visits
    /// and the number of different front pages.
    async fn visit(&self, changes: usize) -> (usize, usize) {
        let (mut visits, mut fronts) = (0, Vec::new());
        loop {
            let since = self.completed.load(Ordering::SeqCst);
            let (since, front) = self.read(since, "").await;
            let name = front.split('"').nth(1).unwrap().to_owned();
            let (since, _) = self.read(since, &name).await;
            let (since, _) = self.read(since, "style.css").await;
            self.read(since, "logo.svg").await;
            visits += 1;
            if fronts.last() != Some(&front) {
                fronts.push(front);
            }
            if self.completed.load(Ordering::SeqCst) == changes {
                return (visits, fronts.len());
            }
        }
    }
}

/// Starts readers, and checks that they saw the versions change.
fn start_readers(
    timeline: &Arc<Timeline>,
    changes: usize,
) -> Vec<tokio::task::JoinHandle<(usize, usize)>> {
    let reader = |_| {
        let timeline = Arc::clone(timeline);
        tokio::spawn(async move { timeline.visit(changes).await })
    };
    (0..READERS).map(reader).collect()
}

async fn assert_readers_saw_changes(readers: Vec<tokio::task::JoinHandle<(usize, usize)>>) {
    for visited in join_all(readers).await {
        let (visits, fronts) = visited.unwrap();
        assert!(visits > 5 && fronts > 3, "{visits} {fronts}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_response_belongs_to_a_whole_version_during_deployments_rollbacks_and_clean_up() {
    let timeline = Timeline::over(world_of(|_| {}).await).await;
    let timeline = Arc::new(timeline);
    let readers = start_readers(&timeline, CHANGES);
    let cleaner = {
        let timeline = Arc::clone(&timeline);
        tokio::spawn(async move {
            while timeline.completed.load(Ordering::SeqCst) < CHANGES {
                timeline.world.infra.clean_up().await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    let mut newest = 0;
    for change in 1..=CHANGES {
        match change % 7 {
            // One and two versions back.
            3 => timeline.roll_back(change, newest - 1).await,
            6 => timeline.roll_back(change, newest.saturating_sub(2)).await,
            kind => {
                newest += 1;
                match kind {
                    1 => timeline.deploy_planned(newest).await,
                    _ => timeline.deploy(newest).await,
                }
            }
        }
    }
    assert_eq!(newest, 50);
    assert_readers_saw_changes(readers).await;
    cleaner.await.unwrap();
    assert!(timeline.world.staging().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_response_belongs_to_a_whole_version_if_replaced_ones_are_deleted_at_once() {
    const CHANGES: usize = 40;
    let timeline = Timeline::over(world_of(|config| config.retention.previous = 0).await).await;
    let timeline = Arc::new(timeline);
    let readers = start_readers(&timeline, CHANGES);
    for version in 1..=CHANGES {
        timeline.deploy(version).await;
    }
    assert_readers_saw_changes(readers).await;
    let contents = timeline.world.names("pages/acme-site/content");
    assert_eq!(contents.len(), files(CHANGES).len());
}
