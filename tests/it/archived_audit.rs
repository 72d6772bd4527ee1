//! An archive of the audit log is verified on the command line, without its database.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::kernel::{AuditId, Context, Ed25519Private, JsonText, PlatformId, Timestamp};
use core_domain::port::{Blobs, Mode, Store};
use core_domain::shared::{AuditEntry, AuditStream};
use core_domain::testing::{ManualClock, MemoryBlobs, SeededEntropy};
use core_domain::use_case::shared::{LeaseHolder, archive_next_month, seal};
use core_storage::memory::{MemoryConfig, open};
use serde_json::json;

use crate::world::run;

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn entry(n: u64) -> AuditEntry {
    AuditEntry {
        id: AuditId::generate(NOW, &SeededEntropy::new(n)),
        stream: AuditStream::Changes,
        platform_id: PlatformId::parse("p-1"),
        actor_id: "olga".to_owned(),
        actor_type: "user".to_owned(),
        action: "thing.made".to_owned(),
        entity_type: "thing".to_owned(),
        entity_id: n.to_string(),
        before: None,
        after: None,
        metadata: JsonText::of(&json!({})),
        created_at: NOW,
    }
}

async fn insert(store: &dyn Store, entries: Vec<AuditEntry>) {
    let mut uow = store.begin(Mode::Write).await.unwrap();
    let audit = uow.repositories(RecordKey::for_tests()).audit_entries();
    audit.insert_many(entries).await.unwrap();
    uow.commit().await.unwrap();
}

/// Returns the content of an archive with three entries.
async fn archive(key: &Ed25519Private) -> String {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = open(MemoryConfig {
        clock: clock.clone(),
        cursor_key: [1; 32].into(),
    });
    let store = store.as_ref();
    insert(store, (1..=3).map(entry).collect()).await;
    let cx = Context::system(Arc::new(SeededEntropy::new(9)));
    assert_eq!(seal(&cx, store, key).await.unwrap().entries, 3);
    clock.advance(DAY * 60);
    let blobs = MemoryBlobs::default();
    let holder = LeaseHolder::exclusive("sweep", DAY);
    let archived = archive_next_month(&cx, store, &blobs, key, &holder, DAY * 31).await;
    let blob_key = archived.unwrap().unwrap().blob_key();
    let mut content = String::new();
    let mut blob = blobs.open(&blob_key).await.unwrap();
    blob.read_to_string(&mut content).unwrap();
    content
}

#[tokio::test]
async fn an_archive_is_accepted_and_a_changed_one_or_another_key_is_refused() {
    let (key, other) = ([1; 32], [2; 32]);
    let [key, other] = [key, other].map(Ed25519Private::from_seed);
    let content = archive(&key).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let keys = |key: &Ed25519Private| json!({ "keys": [{ "x": key.public().x() }] }).to_string();
    let (keys, other) = (write("keys", &keys(&key)), write("other", &keys(&other)));
    let file = write("archive", &content);
    let changed = write("changed", &content.replacen("olga", "paul", 1));
    let short = content.split_once('\n').unwrap().1;
    let short = write("short", short);
    let verify = async |file: &str, keys: &str| {
        let arguments = ["verify-archive", file, "--keys", keys];
        let output = run(folder.path(), &arguments, "").await;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, report, _) = verify(&file, &keys).await;
    assert!(
        report.starts_with("verified: 2027-01, 3 entries\n"),
        "{report}"
    );
    assert_eq!(code, Some(0));
    for (file, keys, problem) in [
        (&changed, &keys, "was changed after it was sealed"),
        (&short, &keys, "is missing or in the wrong place"),
        (
            &file,
            &other,
            "checkpoint of platform:p-1 at 3 has no valid signature",
        ),
        (&file, &file, "Ed25519 keys"),
    ] {
        let (code, report, error) = verify(file, keys).await;
        assert_eq!((code, report.as_str()), (Some(1), ""));
        assert!(error.contains(problem), "{error}");
    }
}
