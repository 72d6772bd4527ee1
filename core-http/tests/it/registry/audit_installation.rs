//! An operator's verification finds missing chains, seals and checkpoints of the whole installation.

use core_domain::shared::{AuditCheckpoint, AuditEntry, AuditHead, AuditSeal};
use core_storage::{Filter, Value as Column};
use serde_json::{Value, json};

use crate::world::{World, audit_entry, on_every_store, operator, owner};

on_every_store! {
    a_chain_whose_rows_were_all_deleted_is_found,
    a_chain_that_was_deleted_between_two_checkpoints_is_found,
    a_gap_in_the_positions_of_the_installation_is_found,
    a_checkpoint_of_the_installation_that_was_deleted_or_changed_is_found,
    only_operators_can_verify_the_installation,
}

/// Returns the kinds and messages of the problems of the whole installation, sorted.
async fn problems(world: &World) -> Vec<(String, String)> {
    let report = world.verify(&operator(), "").await;
    assert_eq!(report["complete"], true);
    let problems = report["problems"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut problems: Vec<_> = problems
        .map(|problem| (text(&problem["kind"]), text(&problem["message"])))
        .collect();
    problems.sort();
    problems
}

async fn kinds(world: &World) -> Vec<String> {
    let mut kinds: Vec<String> = problems(world)
        .await
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    kinds.dedup();
    kinds
}

/// Returns entries of three platforms in turn. Sealed together, they get the positions 1 to 9.
fn entries() -> Vec<AuditEntry> {
    let platforms = ["p-1", "p-2", "p-3"].into_iter().cycle();
    (0..9)
        .zip(platforms)
        .map(|(n, platform)| audit_entry(n, Some(platform), "thing.made"))
        .collect()
}

/// Deletes the entries, seals and checkpoints of a platform's chain.
async fn erase_chain(world: &World, platform: &str) {
    let of_chain = || Filter::eq("chain", format!("platform:{platform}").as_str());
    assert!(
        world
            .erase::<AuditEntry>(Filter::eq("platform_id", platform))
            .await
            > 0
    );
    assert!(world.erase::<AuditSeal>(of_chain()).await > 0);
    world.erase::<AuditCheckpoint>(of_chain()).await;
}

async fn a_chain_whose_rows_were_all_deleted_is_found(world: World) {
    world.write_entries(&entries()).await;
    assert!(world.sign_installation().await);
    world.sign_checkpoints().await;
    assert_eq!(kinds(&world).await, [""; 0]);
    erase_chain(&world, "p-2").await;
    let found = problems(&world).await;
    let chain = "the chain platform:p-2 is noted to end at 3, and its end is gone";
    assert_eq!(found[0], ("chain_missing".to_owned(), chain.to_owned()));
    let holes: Vec<&str> = found[1..]
        .iter()
        .map(|(_, message)| message.as_str())
        .collect();
    let hole = |at: i64| format!("no seal has the positions {at} to {at} of the installation");
    assert_eq!(holes, [hole(2), hole(5), hole(8)]);
    // Without the head of the chain, its absence is still found.
    let head = Filter::eq("chain", "platform:p-2");
    assert_eq!(world.erase::<AuditHead>(head).await, 1);
    let found = problems(&world).await;
    assert_eq!(found[0].0, "chain_missing");
    assert!(
        found[0]
            .1
            .starts_with("there are 2 chains, and there were 3"),
        "{found:?}"
    );
    assert_eq!(found.len(), 4);
}

async fn a_chain_that_was_deleted_between_two_checkpoints_is_found(world: World) {
    world.write_entries(&entries()).await;
    assert!(world.sign_installation().await);
    erase_chain(&world, "p-2").await;
    let head = Filter::eq("chain", "platform:p-2");
    assert_eq!(world.erase::<AuditHead>(head).await, 1);
    // New entries are written and signed after the deletion.
    world
        .write_entries(&[audit_entry(20, Some("p-1"), "thing.made")])
        .await;
    assert!(world.sign_installation().await);
    let found = problems(&world).await;
    assert_eq!(found[0].0, "chain_missing", "{found:?}");
    assert!(found.iter().any(|(kind, _)| kind == "position_missing"));
}

async fn a_gap_in_the_positions_of_the_installation_is_found(world: World) {
    world.write_entries(&entries()).await;
    // No checkpoint exists yet.
    world.seal().await;
    assert_eq!(kinds(&world).await, [""; 0]);
    let report = world.verify(&operator(), "").await;
    let sealed = world.seals().await.len();
    let installation = json!({ "checkpoints": 0, "chains": 3, "entries": sealed });
    assert_eq!(report["installation"], installation);
    let position = |position: i64| Filter::eq("position", position);
    world.erase::<AuditSeal>(position(4)).await;
    let hole = "no seal has the positions 4 to 4 of the installation";
    let hole = ("position_missing".to_owned(), hole.to_owned());
    assert_eq!(problems(&world).await, std::slice::from_ref(&hole));
    assert!(world.sign_installation().await);
    assert_eq!(problems(&world).await, std::slice::from_ref(&hole));
    // Moving another seal to the missing position does not fill the gap.
    let moved = [("position", Column::Int(4))];
    assert_eq!(world.tamper::<AuditSeal>(position(5), &moved).await, 1);
    let next = "no seal has the positions 5 to 5 of the installation";
    assert_eq!(problems(&world).await[0].1, next);
}

async fn a_checkpoint_of_the_installation_that_was_deleted_or_changed_is_found(world: World) {
    for n in 0..3 {
        world
            .write_entries(&[audit_entry(n, Some("p-1"), "thing.made")])
            .await;
        assert!(world.sign_installation().await);
        assert!(!world.sign_installation().await, "there are no new entries");
    }
    let path = "/api/v1/audit/checkpoints?limit=100";
    let list = world.registry.get(&operator(), path).await.expect(200).json;
    let of_feed = list["data"].as_array().unwrap().iter();
    let mut of_feed: Vec<i64> = of_feed
        .filter(|checkpoint| checkpoint["chain"] == "feed")
        .map(|checkpoint| checkpoint["seq"].as_i64().unwrap())
        .collect();
    of_feed.sort_unstable();
    assert_eq!(kinds(&world).await, [""; 0]);
    let at = |seq: i64| Filter::eq("chain", "feed").and(Filter::eq("seq", seq));
    let changed = [("hash", Column::text("00"))];
    let last = *of_feed.last().unwrap();
    assert_eq!(world.tamper::<AuditCheckpoint>(at(last), &changed).await, 1);
    assert!(
        kinds(&world)
            .await
            .contains(&"checkpoint_changed".to_owned())
    );
    assert_eq!(world.erase::<AuditCheckpoint>(at(last)).await, 1);
    assert_eq!(kinds(&world).await, ["checkpoint_missing"]);
    assert_eq!(world.erase::<AuditCheckpoint>(at(of_feed[0])).await, 1);
    let found = problems(&world).await;
    let missing = found
        .iter()
        .filter(|(kind, _)| kind == "checkpoint_missing");
    assert_eq!(missing.count(), 2, "{found:?}");
    // The deletion of all checkpoints is found too.
    world
        .erase::<AuditCheckpoint>(Filter::eq("chain", "feed"))
        .await;
    assert_eq!(kinds(&world).await, ["checkpoint_missing"]);
}

async fn only_operators_can_verify_the_installation(world: World) {
    let platform = world.create_platform("engines").await;
    assert!(world.sign_installation().await);
    let report = world.verify(&operator(), "").await;
    assert_eq!(report["installation"]["checkpoints"], 1);
    for (caller, query) in [
        (owner(&platform), ""),
        (operator(), &*format!("platformId={platform}")),
    ] {
        let report = world.verify(&caller, query).await;
        assert_eq!(report["installation"], Value::Null, "{query}");
    }
}
