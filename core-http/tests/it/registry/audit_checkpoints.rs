//! Signed checkpoints of the audit chains, and the detection of missing ones.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_domain::shared::{AuditCheckpoint, AuditHead};
use core_storage::{Filter, Value as Column};
use serde_json::{Value, json};

use crate::world::{World, audit_entry, operator};

#[tokio::test]
async fn a_chain_has_a_checkpoint_every_thousand_entries_and_after_an_hour() {
    let world = World::new();
    let entries: Vec<_> = (0..1_003)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.seal().await;
    let path = "/api/v1/audit/checkpoints?platformId=p-1";
    let first = world.get_record(path).await;
    assert_eq!(first.json["data"][0]["seq"], 1_000);
    assert_eq!(first.total(), Some(1));
    assert_eq!(world.sign_checkpoints().await, 1);
    assert_eq!(
        world.sign_checkpoints().await,
        0,
        "there are no new entries"
    );
    let list = world.get_record(path).await;
    let seqs: Vec<_> = list.json["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["seq"])
        .collect();
    assert_eq!(seqs, [1_003, 1_000]);

    let (checkpoint, key) = (&list.json["data"][0], &list.json["keys"][0]);
    let parts: Vec<&str> = checkpoint["jws"].as_str().unwrap().split('.').collect();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let header = json!({ "alg": "EdDSA", "typ": "core-audit-checkpoint+jwt", "kid": key["kid"] });
    assert_eq!(read(parts[0]), header);
    let signed_at = checkpoint["signedAt"].as_str().unwrap();
    assert_eq!(signed_at, "2027-01-15T09:00:00.000Z");
    let claims = json!({
        "chain": "platform:p-1", "seq": 1_003, "hash": checkpoint["hash"], "iat": 1_800_003_600,
    });
    assert_eq!(read(parts[1]), claims);
    assert_eq!(key["x"], world.app.audit_key.public().x());
    let report = world.verify(&operator(), "platformId=p-1").await;
    assert_eq!(report["head"]["hash"], checkpoint["hash"]);
}

#[tokio::test]
async fn a_missing_checkpoint_is_found_from_every_starting_point() {
    let world = World::new();
    let entries: Vec<_> = (0..2_100)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.sign_checkpoints().await;
    let of_chain = Filter::eq("chain", "platform:p-1");
    let at = |seq: i64| of_chain.clone().and(Filter::eq("seq", seq));
    let parts = async || {
        let mut told = Vec::new();
        for part in ["after=0", "after=0&limit=1200", "after=1200", "after=2100"] {
            let report = world
                .verify(&operator(), &format!("platformId=p-1&{part}"))
                .await;
            let missing = report["problems"].as_array().unwrap().iter();
            let missing = missing.filter(|p| p["kind"] == "checkpoint_missing");
            told.push(
                missing
                    .map(|p| p["seq"].as_i64().unwrap())
                    .collect::<Vec<_>>(),
            );
        }
        told
    };
    assert!(parts().await.iter().all(Vec::is_empty));
    world.erase::<AuditCheckpoint>(at(1_000)).await;
    assert_eq!(parts().await, [vec![1_000], vec![1_000], vec![], vec![]]);
    world.erase::<AuditCheckpoint>(at(2_100)).await;
    assert_eq!(
        parts().await,
        [vec![1_000, 2_100], vec![1_000], vec![2_100], vec![2_100]]
    );
    world.erase::<AuditCheckpoint>(at(2_000)).await;
    assert_eq!(parts().await[0], [1_000, 2_000, 2_100]);
    // Resetting the checkpoint number of the head does not hide the checkpoints missing inside the chain.
    let none = [("checkpoint_seq", Column::Int(0))];
    world.tamper::<AuditHead>(of_chain.clone(), &none).await;
    assert_eq!(parts().await[0], [1_000, 2_000]);
}
