//! Seals and checkpoints of the audit log, and their verification.

use std::collections::BTreeMap;
use std::sync::Arc;

use core_domain::kernel::{AuditId, Context};
use core_domain::shared::{
    AuditCheckpoint, AuditEntry, AuditHead, AuditSeal, AuditStream, GENESIS,
};
use core_domain::testing::seeds;
use core_domain::use_case::shared::seal;
use core_storage::{Filter, Value as Column};
use serde_json::{Value, json};

use crate::world::{
    NEXT_ROW_VERSION, World, audit_entry, entry_id, on_every_store, operator, owner, plain_member,
    platform_path, user_without_organization,
};

on_every_store! {
    every_entry_is_sealed_once_while_writers_and_two_sealers_run,
    every_change_of_an_entry_or_a_seal_is_reported,
}

fn kinds(report: &Value) -> Vec<&str> {
    let problems = report["problems"].as_array().unwrap().iter();
    let mut kinds: Vec<&str> = problems.map(|p| p["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Asserts that seals are numbered without gaps, in the installation and in each chain, and that each seal contains the
/// hash of the previous one.
fn assert_linked(seals: &[AuditSeal]) {
    let mut chains: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
    for (at, seal) in seals.iter().enumerate() {
        assert_eq!(seal.position, at as i64 + 1);
        let (seq, hash) = chains.entry(seal.chain.as_ref()).or_insert((0, GENESIS));
        assert_eq!((seal.seq, seal.previous_hash.as_str()), (*seq + 1, *hash));
        (*seq, *hash) = (seal.seq, &seal.hash);
    }
}

async fn every_entry_is_sealed_once_while_writers_and_two_sealers_run(world: World) {
    let platforms = [
        world.create_platform("engines").await,
        world.create_platform("looms").await,
    ];
    let sealer = || {
        let app = Arc::clone(&world.app);
        tokio::spawn(async move {
            let cx = Context::system(app.entropy.clone());
            let mut sealed = 0;
            for _ in 0..40 {
                sealed += seal(&cx, app.store.as_ref(), &app.audit_key)
                    .await
                    .unwrap()
                    .entries;
                tokio::task::yield_now().await;
            }
            sealed
        })
    };
    let sealers = [sealer(), sealer()];
    let writers = (0..3).map(|writer| {
        let (api, platforms) = (world.registry.clone(), platforms.clone());
        tokio::spawn(async move {
            for n in 0..10 {
                let platform = &platforms[n % 2];
                let body =
                    json!({ "name": "E", "slug": format!("e-{writer}-{n}"), "type": "tenant" });
                let path = platform_path(platform, "/entities");
                let _ = api.post(&operator(), &path, body).await.expect(201);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    for sealer in sealers {
        sealer.await.unwrap();
    }
    world.seal().await;
    assert_eq!(world.seal().await, 0);
    let seals = world.seals().await;
    assert_linked(&seals);
    // The entries of the creation of two platforms and thirty entities.
    assert_eq!(seals.len(), 32);
    for platform in &platforms {
        let report = world
            .verify(&operator(), &format!("platformId={platform}"))
            .await;
        // The verification itself is audited; its entry is not sealed yet.
        let told = json!([
            report["valid"],
            report["complete"],
            report["checked"],
            report["unsealed"]
        ]);
        assert_eq!(told, json!([true, true, 16, 1]), "{report}");
    }
}

#[tokio::test]
async fn a_sealer_that_fails_at_any_call_still_seals_every_entry_once() {
    let (world, faults) = World::faulty();
    let platform = world.create_platform("engines").await;
    let mut entries = 1;
    let (cx, key) = (
        Context::system(world.app.entropy.clone()),
        &world.app.audit_key,
    );
    for call in 1.. {
        let more = [1, 2].map(|n| audit_entry(entries + n, Some(&platform), "thing.made"));
        world.write_entries(&more).await;
        entries += 2;
        faults.fail_call(call);
        let outcome = seal(&cx, world.app.store.as_ref(), key).await;
        let failed = faults.has_failed();
        faults.fail_call(u32::MAX);
        assert_eq!(outcome.is_err(), failed);
        if !failed {
            break;
        }
    }
    for seed in seeds(50) {
        world
            .write_entries(&[audit_entry(entries + 1, None, "thing.made")])
            .await;
        entries += 1;
        // A commit can succeed although its result is lost.
        faults.inject_random(seed, 6);
        let _ = seal(&cx, world.app.store.as_ref(), key).await;
        faults.inject_random(0, 0);
    }
    world.seal().await;
    let seals = world.seals().await;
    assert_linked(&seals);
    assert_eq!(seals.len() as i64, entries);
    for query in ["", &format!("platformId={platform}")] {
        let report = world.verify(&operator(), query).await;
        assert_eq!(report["problems"], json!([]));
    }
}

/// Writes ten sealed entries of a platform, of both streams, with checkpoints at the fifth and the last entry.
async fn sealed_chain(world: &World) -> Vec<AuditEntry> {
    let mut entries: Vec<_> = (0..10)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    entries[3].stream = AuditStream::Reads;
    entries[3].before = entries[3].after.clone();
    world.write_entries(&entries[..5]).await;
    world.sign_checkpoints().await;
    world.write_entries(&entries[5..]).await;
    world.sign_checkpoints().await;
    let report = world.verify(&operator(), "platformId=p-1").await;
    assert_eq!(
        (&report["valid"], &report["checked"]),
        (&json!(true), &json!(10)),
        "{report}"
    );
    assert_eq!(report["head"]["seq"], 10);
    entries
}

/// Returns the problems of the chain, each with its entry id or sequence number.
async fn problems(world: &World) -> Vec<String> {
    let report = world.verify(&operator(), "platformId=p-1").await;
    let problems = report["problems"].as_array().unwrap().iter();
    let told = problems.map(|problem| {
        let about = problem["entryId"]
            .as_str()
            .map_or(problem["seq"].to_string(), str::to_owned);
        format!("{} {about}", problem["kind"].as_str().unwrap())
    });
    assert_eq!(report["valid"], problems_are_none(&report));
    told.collect()
}

fn problems_are_none(report: &Value) -> bool {
    report["problems"].as_array().unwrap().is_empty()
}

fn of_entry(n: i64) -> Filter {
    Filter::eq("id", &*entry_id(n))
}

fn of_seal(n: i64) -> Filter {
    Filter::eq("entry_id", &*entry_id(n))
}

async fn every_change_of_an_entry_or_a_seal_is_reported(world: World) {
    let entries = sealed_chain(&world).await;
    let text = Column::text;
    // Every column of an entry.
    for (column, value) in [
        ("stream", text("changes")),
        ("platform_id", text("p-2")),
        ("platform_id", Column::Null),
        ("actor_id", text("eve")),
        ("actor_type", text("service")),
        ("action", text("thing.mad")),
        ("entity_type", text("think")),
        ("entity_id", text("thing-4")),
        ("before", Column::Null),
        ("after", text("{\"n\":4}")),
        ("metadata", text("{}")),
        ("created_at", Column::Int(1_800_000_001_001)),
        NEXT_ROW_VERSION,
    ] {
        assert_change_reported::<AuditEntry>(&world, of_entry(3), column, value, &entries[3]).await;
        assert_eq!(
            problems(&world).await,
            Vec::<String>::new(),
            "{column} is restored"
        );
    }
    // An unreadable entry is reported too.
    world
        .tamper::<AuditEntry>(of_entry(6), &[("after", text("{"))])
        .await;
    assert!(
        problems(&world)
            .await
            .contains(&format!("entry_unreadable {}", entry_id(6)))
    );
    let whole = entries[6].after.as_ref().unwrap().as_str();
    world
        .tamper::<AuditEntry>(of_entry(6), &[("after", text(whole))])
        .await;

    world.erase::<AuditEntry>(of_entry(4)).await;
    assert_eq!(
        problems(&world).await,
        [format!("entry_missing {}", entry_id(4))]
    );
    world.forge(&entries[4]).await;
    assert_eq!(problems(&world).await, Vec::<String>::new());

    let forged = audit_entry(20, Some("p-1"), "thing.made");
    world.forge(&forged).await;
    assert_eq!(
        problems(&world).await,
        [format!("entry_not_sealed {}", entry_id(20))]
    );
    world.erase::<AuditEntry>(of_entry(20)).await;

    let seals = world.seals().await;
    let seals: Vec<_> = seals
        .into_iter()
        .filter(|s| s.chain.as_ref() == "platform:p-1")
        .collect();
    for (column, value) in [
        ("hash", text(GENESIS)),
        ("previous_hash", text(GENESIS)),
        ("position", Column::Int(0)),
        ("seq", Column::Int(7)),
        ("chain", text("platform:p-2")),
        ("stream", text("reads")),
        ("stream", text("nothing")),
        NEXT_ROW_VERSION,
    ] {
        let row = &seals[5];
        world
            .tamper::<AuditSeal>(of_seal(5), &[(column, value)])
            .await;
        assert!(!problems(&world).await.is_empty(), "{column}");
        world.erase::<AuditSeal>(of_seal(5)).await;
        world.forge(row).await;
        assert_eq!(
            problems(&world).await,
            Vec::<String>::new(),
            "{column} is restored"
        );
    }
    assert_seal_changes_reported(&world, &seals).await;
}

/// Changes a column, asserts that the change is reported, and restores the row.
async fn assert_change_reported<R: core_storage::Tabular>(
    world: &World,
    filter: Filter,
    column: &'static str,
    value: Column,
    as_it_was: &R,
) {
    world.tamper::<R>(filter.clone(), &[(column, value)]).await;
    let found = problems(world).await;
    assert!(
        found.contains(&format!("entry_changed {}", entry_id(3))),
        "{column}: {found:?}"
    );
    world.erase::<R>(filter).await;
    world.forge(as_it_was).await;
}

async fn assert_seal_changes_reported(world: &World, seals: &[AuditSeal]) {
    // Two seals are swapped.
    let park = [("seq", Column::Int(-1))];
    world.tamper::<AuditSeal>(of_seal(1), &park).await;
    world
        .tamper::<AuditSeal>(of_seal(2), &[("seq", Column::Int(2))])
        .await;
    world
        .tamper::<AuditSeal>(of_seal(1), &[("seq", Column::Int(3))])
        .await;
    let found = problems(world).await;
    assert!(
        found
            .iter()
            .any(|p| *p == format!("chain_broken {}", entry_id(1))),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|p| *p == format!("chain_broken {}", entry_id(2))),
        "{found:?}"
    );
    for n in [1, 2] {
        world.erase::<AuditSeal>(of_seal(n)).await;
        world.forge(&seals[n as usize]).await;
    }
    // Two seals are missing.
    for n in [6, 7] {
        world.erase::<AuditSeal>(of_seal(n)).await;
    }
    let found = problems(world).await;
    let named = [
        "seals_missing 7".to_owned(),
        format!("entry_not_sealed {}", entry_id(6)),
        format!("entry_not_sealed {}", entry_id(7)),
    ];
    assert!(named.iter().all(|p| found.contains(p)), "{found:?}");
    for n in [6, 7] {
        world.forge(&seals[n]).await;
    }
    assert_eq!(problems(world).await, Vec::<String>::new());

    // An attacker who can write every table, but cannot sign, removes the tail.
    for n in 7..10 {
        world.erase::<AuditSeal>(of_seal(n)).await;
        world.erase::<AuditEntry>(of_entry(n)).await;
    }
    assert_eq!(problems(world).await[..1], ["tail_missing 10".to_owned()]);
    let end = [
        ("seq", Column::Int(7)),
        ("hash", Column::text(&seals[6].hash)),
        ("checkpoint_seq", Column::Int(5)),
    ];
    let head = Filter::eq("chain", "platform:p-1");
    world.tamper::<AuditHead>(head.clone(), &end).await;
    assert_eq!(problems(world).await, ["tail_missing 10"]);
    // A checkpoint that is changed to match the remaining chain is reported, and so is a deleted one.
    let last = Filter::eq("seq", 10).and(head.clone());
    let here = [
        ("seq", Column::Int(7)),
        ("hash", Column::text(&seals[6].hash)),
    ];
    world.tamper::<AuditCheckpoint>(last, &here).await;
    assert_eq!(problems(world).await, ["checkpoint_changed 7"]);
    world
        .erase::<AuditCheckpoint>(Filter::eq("seq", 7).and(head.clone()))
        .await;
    world
        .erase::<AuditCheckpoint>(Filter::eq("seq", 5).and(head.clone()))
        .await;
    assert_eq!(problems(world).await, ["checkpoint_missing 5"]);
    world.erase::<AuditHead>(head).await;
    assert_eq!(problems(world).await, ["head_changed 7"]);
}

#[tokio::test]
async fn a_chain_can_be_verified_in_consecutive_parts() {
    let world = World::new();
    let entries: Vec<_> = (0..1_200)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.seal().await;
    world.erase::<AuditEntry>(of_entry(700)).await;
    world
        .forge(&AuditEntry {
            id: AuditId::parse(&format!("{}f", &entry_id(900)[..35])).unwrap(),
            ..audit_entry(900, Some("p-1"), "a.b")
        })
        .await;
    let (mut after, mut told) = (0, Vec::new());
    loop {
        let report = world
            .verify(
                &operator(),
                &format!("platformId=p-1&after={after}&limit=500"),
            )
            .await;
        told.push(json!([
            report["from"],
            report["to"],
            report["checked"],
            report["complete"],
            kinds(&report)
        ]));
        after = report["to"].as_i64().unwrap();
        if report["complete"] == true {
            break;
        }
    }
    let none: [&str; 0] = [];
    assert_eq!(
        told,
        [
            json!([1, 500, 500, false, none]),
            json!([
                501,
                1_000,
                500,
                false,
                ["entry_missing", "entry_not_sealed"]
            ]),
            json!([1_001, 1_200, 200, true, none]),
        ]
    );
    let report = world.verify(&operator(), "platformId=p-1&after=1201").await;
    assert_eq!(
        (kinds(&report), &report["complete"]),
        (vec!["seals_missing"], &json!(false))
    );
}

#[tokio::test]
async fn callers_other_than_operators_verify_only_their_own_platform() {
    let world = World::new();
    let (platform, other) = (
        world.create_platform("engines").await,
        world.create_platform("looms").await,
    );
    world.sign_checkpoints().await;
    let member = plain_member(&platform);
    let report = world.verify(&member, "").await;
    assert_eq!(
        (&report["chain"], &report["valid"]),
        (&json!(format!("platform:{platform}")), &json!(true))
    );
    let own = world
        .registry
        .get(&member, "/api/v1/audit/checkpoints")
        .await
        .expect(200);
    assert_eq!(own.each("platformId"), [&platform]);
    let all = world.get_record("/api/v1/audit/checkpoints").await;
    assert_eq!(all.total(), Some(2));
    let installation = world.verify(&operator(), "").await;
    assert_eq!(installation["chain"], "installation");
    for path in ["verify", "checkpoints", "export"] {
        for (caller, query) in [
            (owner(&platform), format!("platformId={other}")),
            (user_without_organization(), String::new()),
        ] {
            let path = format!("/api/v1/audit/{path}?{query}");
            world
                .registry
                .get(&caller, &path)
                .await
                .expect_error(404, "NOT_FOUND");
        }
    }
    for bad in ["after=-1", "after=x", "limit=0"] {
        let path = format!("/api/v1/audit/verify?{bad}");
        world
            .registry
            .get(&operator(), &path)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
}
