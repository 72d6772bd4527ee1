//! Tests of the logs of workers and sites, from tails.

use std::sync::Arc;

use core_domain::cli::{LogContent, LogLevel, LogLine};
use core_domain::port::{
    Infrastructure, LogError, LogListener, LogQuery, LogReader, LogStart, ResourceLogs,
};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::world::{OWNER, STRANGER, World, name_for, site, upload};

/// Signals new lines to a test.
#[derive(Debug, Default)]
struct NewLines(Notify);

impl LogListener for NewLines {
    fn on_lines(&self) {
        self.0.notify_one();
    }
}

struct Follower {
    reader: Box<dyn LogReader>,
    listener: Arc<NewLines>,
}

impl Follower {
    async fn next(&mut self) -> Vec<LogLine> {
        loop {
            let lines = self.reader.next().await.unwrap().lines;
            if !lines.is_empty() {
                return lines;
            }
            self.listener.0.notified().await;
        }
    }
}

async fn open(
    world: &World,
    resource: Option<&str>,
    follow: bool,
) -> Result<Option<Follower>, LogError> {
    let listener = Arc::new(NewLines::default());
    let query = LogQuery {
        owner: OWNER.to_owned(),
        resource: resource.map(str::to_owned),
        start: LogStart::Tail(100),
        follow,
        listener: Some(Arc::clone(&listener) as _),
    };
    let reader = ResourceLogs::open(&world.cloudflare, query).await?;
    Ok(reader.map(|reader| Follower { reader, listener }))
}

fn worker() -> String {
    name_for(OWNER, ResourceType::Worker)
}

fn console(text: &str) -> Value {
    json!({ "outcome": "ok", "logs": [{ "message": [text], "level": "info", "timestamp": 1 }] })
}

/// Waits until the fake has this number of tails.
async fn wait_for_tails(world: &World, count: usize) {
    while world.fake.tail_count() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn messages_of_a_worker_become_lines() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let mut follower = open(&world, None, true).await.unwrap().unwrap();
    let message = json!({
        "outcome": "ok", "scriptName": worker(), "exceptions": [], "eventTimestamp": 7,
        "logs": [{ "message": ["hello", 1], "level": "warn", "timestamp": 5 }],
        "event": { "request": { "url": "https://acme.example/a?b=c", "method": "GET", "headers": {} },
            "response": { "status": 201 } },
    });
    assert_eq!(world.fake.send_to_tails(&worker(), &message), 1);
    let lines = follower.next().await;
    let contents: Vec<_> = lines.iter().map(|line| &line.content).collect();
    let wanted = [
        &LogContent::console(LogLevel::Warn, "hello 1"),
        &LogContent::request("GET", "/a", 201, 0, None),
    ];
    assert_eq!(contents, wanted);
    assert_eq!(lines[0].resource, worker());
    assert_eq!(lines[0].at.millis(), 5);
    assert!(lines[0].id < lines[1].id);
}

#[tokio::test]
async fn tails_are_deleted_at_the_end_of_the_reader() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let follower = open(&world, Some(&worker()), true).await.unwrap().unwrap();
    assert_eq!(world.fake.tail_count(), 1);
    drop(follower);
    wait_for_tails(&world, 0).await;
}

#[tokio::test]
async fn expired_tail_is_opened_again() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let mut follower = open(&world, None, true).await.unwrap().unwrap();
    world.fake.expire_tails();
    while world.fake.send_to_tails(&worker(), &console("again")) == 0 {
        tokio::task::yield_now().await;
    }
    let lines = follower.next().await;
    let again = LogContent::console(LogLevel::Info, "again");
    assert_eq!(lines[0].content, again);
}

#[tokio::test]
async fn site_has_a_tail_of_its_live_deployment() {
    let world = World::new().await;
    world.make(ResourceType::Pages).await;
    let project = name_for(OWNER, ResourceType::Pages);
    drop(open(&world, Some(&project), true).await.unwrap().unwrap());
    assert_eq!(world.fake.tail_count(), 0, "nothing is deployed");
    let front = site([("index.html", "<h1>hi</h1>\n")]);
    let upload = upload(front, "production", "key-1");
    world.cloudflare.deploy_site(upload).await.unwrap();
    let found = || world.cloudflare.site_deployment(&project, "key-1");
    while found().await.unwrap().unwrap().state != core_domain::port::SiteState::Active {}

    let mut follower = open(&world, Some(&project), true).await.unwrap().unwrap();
    assert_eq!(world.fake.send_to_tails(&project, &console("site")), 1);
    assert_eq!(follower.next().await[0].resource, project);
}

#[tokio::test]
async fn only_the_owners_workers_have_lines_and_without_following_there_is_no_tail() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let other = name_for(STRANGER, ResourceType::Worker);
    for name in [other.as_str(), "none"] {
        assert!(open(&world, Some(name), true).await.unwrap().is_none());
    }
    let mut reader = open(&world, None, false).await.unwrap().unwrap().reader;
    assert!(reader.next().await.unwrap().lines.is_empty());
    assert_eq!(world.fake.tail_count(), 0);
}
