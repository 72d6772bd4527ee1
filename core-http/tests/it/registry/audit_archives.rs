//! Old months of the audit log are archived and removed, and the rest can still be verified.

use std::io::Read;
use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::kernel::{Context, Ed25519Public, Error, Result, TextValue};
use core_domain::port::{Mode, Within, transact_in};
use core_domain::shared::{
    ArchiveFault, ArchiveStatement, ArchiveVerifier, AuditArchive, AuditArchiveQuery, AuditChain,
    AuditCheckpoint, AuditEntry, AuditHead, AuditSeal, AuditStream,
};
use core_domain::use_case::shared::{LeaseHolder, archive_next_month, remove_archived};
use core_storage::{Filter, Value as Column};
use serde_json::{Value, json};

use crate::world::{NEXT_ROW_VERSION, World, audit_entry, on_every_store, operator};

on_every_store! {
    months_older_than_the_retention_are_archived_and_removed,
    changes_after_and_in_an_archive_are_found,
    the_change_feed_cannot_resume_before_archived_events,
    a_late_entry_of_an_archived_month_is_removed_with_the_next_month,
    a_damaged_or_unsealed_month_is_not_archived,
}

const DAY: u64 = 24 * 60 * 60;

/// The retention of the tests.
const RETENTION: Duration = Duration::from_secs(31 * DAY);

/// Returns the entry of a platform that was made this many seconds after 2027-01-15.
fn entry(after: u64, platform: &str) -> AuditEntry {
    let n = i64::try_from(after).unwrap() * 3;
    audit_entry(n, Some(platform), "thing.made")
}

impl World {
    /// Returns the number of seconds since the first entry.
    fn age(&self) -> u64 {
        use core_domain::kernel::Clock;

        u64::try_from(self.clock.now().seconds() - 1_800_000_000).unwrap()
    }

    /// Moves the clock to this many days after the first entry.
    fn to_day(&self, day: u64) {
        self.tick(day * DAY - self.age());
    }

    /// Archives the next month.
    async fn archive(&self) -> Result<Option<AuditArchive>> {
        let cx = Context::system(self.app.entropy.clone());
        let (store, blobs) = (self.app.store.as_ref(), self.app.blobs.as_ref());
        let holder = LeaseHolder::exclusive("sweep", Duration::from_secs(60));
        let key = &self.app.audit_key;
        archive_next_month(&cx, store, blobs, key, &holder, RETENTION).await
    }

    /// Removes all archived records in slices of two. Returns the number of slices.
    async fn remove_archived(&self) -> Result<u32> {
        for slices in 0.. {
            let store = self.app.store.as_ref();
            let removed = transact_in(Mode::ReadCommitted, store, |uow, _| {
                Box::pin(remove_archived(uow, 2))
            });
            if removed.await? == 0 {
                return Ok(slices);
            }
        }
        unreachable!("the last slice is empty")
    }

    /// Archives and removes all months that are old enough, as the daily sweep does. Returns them.
    async fn sweep_audit(&self) -> Result<Vec<String>> {
        let mut months = Vec::new();
        loop {
            self.remove_archived().await?;
            match self.archive().await? {
                Some(archive) => months.push(archive.month),
                None => return Ok(months),
            }
        }
    }

    async fn archives(&self) -> Vec<AuditArchive> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let archives = uow.repositories(RecordKey::for_tests()).audit_archives();
        let all = archives.list(Within::Installation, &AuditArchiveQuery::OldestFirst, 10);
        let all = all.await.unwrap().into_iter();
        all.map(|archive| archive.into_inner()).collect()
    }

    /// Returns the lines of an archive.
    async fn lines(&self, archive: &AuditArchive) -> Vec<Vec<u8>> {
        let mut blob = self.app.blobs.open(&archive.blob_key()).await.unwrap();
        let mut content = Vec::new();
        blob.read_to_end(&mut content).unwrap();
        let lines = content.split_inclusive(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    }

    /// Returns the number of listed entries and the total of the list; with a platform, those of the platform.
    async fn list_sizes(&self, platform: Option<&str>) -> (usize, u64) {
        let platform = platform.map_or_else(String::new, |id| format!("&platformId={id}"));
        let path = format!("/api/v1/audit?limit=100{platform}");
        let page = self.registry.get(&operator(), &path).await.expect(200);
        let total = page.json["pagination"]["total"].as_u64().unwrap();
        (page.json["data"].as_array().unwrap().len(), total)
    }

    /// Asserts that the chains of these platforms and the installation are valid.
    async fn assert_valid(&self, platforms: &[&str]) {
        for platform in platforms {
            let query = format!("platformId={platform}");
            let report = self.verify(&operator(), &query).await;
            let found = (&report["valid"], &report["complete"]);
            assert_eq!(found, (&json!(true), &json!(true)), "{report}");
        }
        let report = self.verify(&operator(), "").await;
        assert_eq!(report["valid"], true, "{report}");
        assert!(report["installation"].is_object(), "{report}");
    }

    /// Returns the kinds of the problems in the chain of a platform, or of the installation.
    async fn problem_kinds(&self, platform: Option<&str>) -> Vec<String> {
        let query = platform.map_or_else(String::new, |id| format!("platformId={id}"));
        let report = self.verify(&operator(), &query).await;
        let problems = report["problems"].as_array().unwrap().iter();
        let kind = |problem: &Value| problem["kind"].as_str().unwrap().to_owned();
        let mut kinds: Vec<String> = problems.map(kind).collect();
        kinds.dedup();
        kinds
    }

    /// Writes nine entries of three platforms in January, and two in February of which one belongs to a new platform.
    /// Then moves the clock to the end of March.
    async fn write_two_months(&self) {
        let platforms = ["p-1", "p-2", "p-3"].into_iter().cycle();
        let mut january: Vec<AuditEntry> =
            (0..9).zip(platforms).map(|(n, p)| entry(n, p)).collect();
        january[4].stream = AuditStream::Reads;
        self.write_entries(&january).await;
        self.sign_checkpoints().await;
        assert!(self.sign_installation().await);
        self.to_day(20);
        let february = [entry(self.age(), "p-1"), entry(self.age() + 1, "p-4")];
        self.write_entries(&february).await;
        self.sign_checkpoints().await;
        assert!(self.sign_installation().await);
        self.to_day(65);
    }
}

fn verify_lines(key: &Ed25519Public, lines: &[Vec<u8>]) -> Result<ArchiveStatement, ArchiveFault> {
    let mut verifier = ArchiveVerifier::new(key);
    for line in lines {
        verifier.check(line)?;
    }
    verifier.finish()
}

async fn months_older_than_the_retention_are_archived_and_removed(world: World) {
    let platforms = ["p-1", "p-2", "p-3", "p-4"];
    world.write_two_months().await;
    assert_eq!(world.list_sizes(None).await, (10, 10));
    world.assert_valid(&platforms).await;
    world.seal().await;
    let january = world.archive().await.unwrap().unwrap();
    assert_eq!((january.month.as_str(), january.links()), ("2027-01", 9));
    // The entries are archived and not yet removed.
    world.assert_valid(&platforms).await;
    assert_eq!(world.archive().await.unwrap(), None);
    // Five slices of entries with their seals, and two of the checkpoints of three chains and the feed.
    assert_eq!(world.remove_archived().await.unwrap(), 7);
    // Two entries of February, and the one about the archive.
    assert_eq!(world.list_sizes(None).await, (3, 3));
    assert_eq!(world.list_sizes(Some("p-1")).await, (1, 1));
    assert_eq!(world.list_sizes(Some("p-2")).await, (0, 0));
    world.assert_valid(&platforms).await;
    let report = world.verify(&operator(), "platformId=p-1").await;
    assert_eq!(report["from"], 4, "{report}");
    // February has not passed its retention.
    world.seal().await;
    assert_eq!(world.archive().await.unwrap(), None);
    world.to_day(80);
    assert_eq!(world.sweep_audit().await.unwrap(), ["2027-02"]);
    assert_eq!(world.list_sizes(None).await, (2, 2));
    world.assert_valid(&platforms).await;
    let archives = world.archives().await;
    assert_eq!(archives[1].after, archives[0].position);
    assert_eq!(archives[1].previous, archives[0].digest);
    assert!(archives.iter().all(|archive| archive.removed_at.is_some()));
    // Both files are valid without the database, and every link is in one of them.
    let key = world.app.audit_key.public();
    let mut links = 0;
    for archive in &archives {
        let lines = world.lines(archive).await;
        let statement = verify_lines(&key, &lines).unwrap();
        assert_eq!(statement.digest, archive.digest);
        links += lines
            .iter()
            .filter(|line| line.starts_with(b"{\"seal\""))
            .count();
        let mut altered = lines.clone();
        altered[0] = String::from_utf8(lines[0].clone())
            .unwrap()
            .replace("olga", "paul")
            .into_bytes();
        let position = archive.after + 1;
        let changed = Err(ArchiveFault::EntryChanged(position));
        assert_eq!(verify_lines(&key, &altered), changed);
    }
    assert_eq!(links as i64, archives[1].position);
    // The chains go on after their last archived links.
    let later = platforms.map(|platform| entry(world.age(), platform));
    let later = later.into_iter().zip(0..).map(|(entry, n)| AuditEntry {
        id: audit_entry(i64::try_from(world.age()).unwrap() * 3 + n, None, "x.y").id,
        ..entry
    });
    world.write_entries(&later.collect::<Vec<_>>()).await;
    assert!(world.sign_installation().await);
    assert_eq!(world.list_sizes(None).await, (6, 6));
    world.assert_valid(&platforms).await;
}

async fn the_change_feed_cannot_resume_before_archived_events(world: World) {
    world.write_two_months().await;
    let feed = async |last: i64| {
        let path = format!("/api/v1/events?follow=false&lastEventId={last}");
        world.registry.get(&operator(), &path).await
    };
    let last_of_january = {
        assert_eq!(world.sweep_audit().await.unwrap(), ["2027-01"]);
        world.archives().await[0].position
    };
    for archived in [1, last_of_january - 1] {
        let refused = feed(archived).await.expect(400);
        let issue = &refused.json["error"]["details"]["issues"][0];
        assert_eq!(issue["path"], json!(["lastEventId"]), "{}", refused.json);
        assert_eq!(issue["code"], "archived");
        let message = issue["message"].as_str().unwrap();
        assert!(message.contains(&last_of_january.to_string()), "{message}");
    }
    // From the last archived event, and from the beginning, the feed has both events of February.
    for position in [last_of_january, 0] {
        let answer = feed(position).await.expect(200);
        let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
        assert_eq!(text.matches("event: thing.made").count(), 2, "{text}");
    }
}

async fn changes_after_and_in_an_archive_are_found(world: World) {
    world.write_two_months().await;
    let more = [1, 2].map(|n| entry(20 * DAY + 10 + n, "p-1"));
    world.write_entries(&more).await;
    world.sign_checkpoints().await;
    assert!(world.sign_installation().await);
    world.to_day(66);
    assert_eq!(world.sweep_audit().await.unwrap(), ["2027-01"]);
    let platforms = ["p-1", "p-2", "p-3", "p-4"];
    world.assert_valid(&platforms).await;

    // The content of the archive.
    let archive = world.archives().await.remove(0);
    let (blobs, key) = (world.app.blobs.clone(), archive.blob_key());
    let content = world.lines(&archive).await.concat();
    let altered = String::from_utf8(content.clone()).unwrap();
    let altered = altered.replacen("olga", "paul", 1).into_bytes();
    blobs.put(&key, altered).await.unwrap();
    assert_eq!(world.problem_kinds(None).await, ["archive_changed"]);
    blobs.remove(&key).await.unwrap();
    assert_eq!(world.problem_kinds(None).await, ["archive_changed"]);
    blobs.put(&key, content).await.unwrap();
    assert_eq!(world.problem_kinds(None).await, [""; 0]);

    // The record of the archive.
    let of_month = || Filter::eq("month", "2027-01");
    let digest = [("digest", Column::text("x"))];
    world.tamper::<AuditArchive>(of_month(), &digest).await;
    assert_eq!(world.problem_kinds(Some("p-2")).await, ["archive_changed"]);
    let digest = [("digest", Column::text(&archive.digest))];
    world.tamper::<AuditArchive>(of_month(), &digest).await;
    world.assert_valid(&platforms).await;

    // An entry after the archive.
    let of_entry = || Filter::eq("id", more[0].id.as_text());
    let actor = [("actor_id", Column::text("eve"))];
    world.tamper::<AuditEntry>(of_entry(), &actor).await;
    assert_eq!(world.problem_kinds(Some("p-1")).await, ["entry_changed"]);
    let actor = [("actor_id", Column::text("olga"))];
    world.tamper::<AuditEntry>(of_entry(), &actor).await;

    // The last archived link of a chain whose later links were erased up to a checkpoint is not the recorded one.
    let first = Filter::eq("chain", "platform:p-1").and(Filter::eq("seq", 4_i64));
    let seals = world.seals().await;
    let seal = seals
        .iter()
        .find(|seal| seal.chain == chain("p-1"))
        .unwrap();
    assert_eq!(seal.seq, 4);
    let erased = Filter::eq("id", seal.entry_id.as_text());
    assert_eq!(world.erase::<AuditSeal>(first).await, 1);
    assert_eq!(world.erase::<AuditEntry>(erased).await, 1);
    let found = world.problem_kinds(Some("p-1")).await;
    assert_eq!(found, ["checkpoint_missing"], "{found:?}");
    assert!(
        world
            .problem_kinds(None)
            .await
            .contains(&"position_missing".to_owned())
    );

    // The end of a chain without later links.
    let of_chain = || Filter::eq("chain", "platform:p-2");
    let hash = [("hash", Column::text("0")), NEXT_ROW_VERSION];
    world.tamper::<AuditHead>(of_chain(), &hash).await;
    assert_eq!(
        world.problem_kinds(Some("p-2")).await,
        ["checkpoint_missing"]
    );
    world.erase::<AuditCheckpoint>(of_chain()).await;
    assert_eq!(
        world.problem_kinds(Some("p-2")).await,
        ["checkpoint_missing"]
    );
}

fn chain(platform: &str) -> AuditChain {
    AuditChain::from_text(&format!("platform:{platform}")).unwrap()
}

async fn a_late_entry_of_an_archived_month_is_removed_with_the_next_month(world: World) {
    world.write_two_months().await;
    assert_eq!(world.sweep_audit().await.unwrap(), ["2027-01"]);
    // The transaction of this entry ended after its month was archived.
    world.write_entries(&[entry(100, "p-1")]).await;
    world.seal().await;
    assert!(world.sweep_audit().await.unwrap().is_empty());
    assert_eq!(world.list_sizes(None).await, (4, 4));
    world.assert_valid(&["p-1"]).await;
    world.to_day(80);
    world.seal().await;
    assert_eq!(world.sweep_audit().await.unwrap(), ["2027-02"]);
    assert_eq!(world.list_sizes(None).await, (2, 2));
    world.assert_valid(&["p-1"]).await;
    let february = world.archives().await.remove(1);
    let content = world.lines(&february).await.concat();
    let content = String::from_utf8(content).unwrap();
    assert!(content.contains(entry(100, "p-1").id.as_text()));
}

async fn a_damaged_or_unsealed_month_is_not_archived(world: World) {
    world.write_two_months().await;
    world.write_entries(&[entry(100, "p-1")]).await;
    let unsealed = world.archive().await;
    assert!(
        matches!(unsealed, Err(Error::Unavailable(_))),
        "{unsealed:?}"
    );
    world.seal().await;
    let of_entry = Filter::eq("id", entry(1, "p-2").id.as_text());
    let actor = [("actor_id", Column::text("eve"))];
    world.tamper::<AuditEntry>(of_entry.clone(), &actor).await;
    let damaged = world.archive().await;
    assert!(matches!(damaged, Err(Error::Internal(_))), "{damaged:?}");
    let actor = [("actor_id", Column::text("olga"))];
    world.tamper::<AuditEntry>(of_entry, &actor).await;
    // The head of a chain, which becomes the base of its verification.
    let of_chain = || Filter::eq("chain", "platform:p-2");
    let head = world.head("p-2").await;
    let hash = [("hash", Column::text("0"))];
    world.tamper::<AuditHead>(of_chain(), &hash).await;
    let damaged = world.archive().await;
    assert!(matches!(damaged, Err(Error::Internal(_))), "{damaged:?}");
    let hash = [("hash", Column::text(&head.hash))];
    world.tamper::<AuditHead>(of_chain(), &hash).await;
    assert_eq!(
        (world.archives().await.len(), world.list_sizes(None).await),
        (0, (11, 11))
    );
    assert_eq!(world.sweep_audit().await.unwrap(), ["2027-01"]);
    world.assert_valid(&["p-1", "p-2"]).await;
}

impl World {
    async fn head(&self, platform: &str) -> AuditHead {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let heads = uow.repositories(RecordKey::for_tests()).audit_heads();
        let chain = chain(platform);
        let head = heads.get(Within::Installation, chain.as_ref()).await;
        head.unwrap().unwrap().into_inner()
    }
}

#[tokio::test]
async fn a_sweep_that_fails_at_any_call_is_completed_by_the_next_one() {
    let mut failed = 0;
    for call in 1.. {
        let (world, faults) = World::faulty();
        world.write_two_months().await;
        faults.fail_call(call);
        let outcome = world.sweep_audit().await;
        let has_failed = faults.has_failed();
        faults.fail_call(u32::MAX);
        assert_eq!(outcome.is_err(), has_failed, "call {call}");
        let valid = ["p-1", "p-2"];
        world.assert_valid(&valid).await;
        world.seal().await;
        world.sweep_audit().await.unwrap();
        let archives = world.archives().await;
        assert_eq!(archives.len(), 1, "call {call}");
        let lines = world.lines(&archives[0]).await;
        verify_lines(&world.app.audit_key.public(), &lines).unwrap();
        assert_eq!(world.list_sizes(None).await, (3, 3), "call {call}");
        world.assert_valid(&valid).await;
        if !has_failed {
            break;
        }
        failed += 1;
    }
    assert!(failed > 50, "{failed} calls");
}
