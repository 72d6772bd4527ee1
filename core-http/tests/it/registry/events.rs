//! The change feed.

use std::time::Duration;

use core_domain::kernel::Caller;
use core_http::kernel::Draining;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::world::{
    Follower, World, audit_entry, on_every_store, operator, owner, plain_member,
    user_without_organization, vouched_for, world_with_notifications,
};

on_every_store! { events_are_sent_once_in_sealing_order_and_can_resume_after_any_event }

const EVENTS: &str = "/api/v1/events";

impl Follower {
    pub(super) async fn of(
        world: &World,
        caller: &Caller,
        query: &str,
        draining: Option<Draining>,
    ) -> Self {
        let path = format!("{EVENTS}?{query}");
        Self::open(&world.registry, caller, &path, draining, &[]).await
    }
}

/// Returns the id, type and data of the existing events.
async fn events(world: &World, caller: &Caller, query: &str) -> Vec<(String, String, Value)> {
    let path = format!("{EVENTS}?follow=false&{query}");
    let answer = world.registry.get(caller, &path).await.expect(200);
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().to_owned()
    };
    let events = text.split_terminator("\n\n").map(|event| {
        let data = serde_json::from_str(&field(event, "data: ")).unwrap();
        (field(event, "id: "), field(event, "event: "), data)
    });
    events.collect()
}

fn ids(events: &[(String, String, Value)]) -> Vec<&str> {
    events.iter().map(|(id, ..)| id.as_str()).collect()
}

async fn events_are_sent_once_in_sealing_order_and_can_resume_after_any_event(world: World) {
    let platform = world.create_platform("engines").await;
    let other = world.create_platform("looms").await;
    let entity = world.tenant(&platform, "tenant").await;
    // Reads are sealed too, but they are not events.
    let _ = world.get_record("/api/v1/audit").await;
    assert!(
        events(&world, &operator(), "lastEventId=0")
            .await
            .is_empty(),
        "not sealed yet"
    );
    world.seal().await;
    // An entry that was committed later comes last, even if its time is earlier.
    world
        .write_entries(&[audit_entry(0, Some(&other), "thing.made")])
        .await;
    world.seal().await;
    let all = events(&world, &operator(), "lastEventId=0").await;
    let told: Vec<_> = all.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(
        told,
        [
            "platform.created",
            "platform.created",
            "entity.created",
            "thing.made"
        ]
    );
    assert!(ids(&all).is_sorted());
    let (id, name, data) = &all[2];
    let wanted = json!({
        "id": id, "type": name, "platformId": platform, "entityType": "entity", "entityId": entity,
        "actorId": "service-key", "actorType": "service", "createdAt": data["after"]["createdAt"],
        "before": null, "after": data["after"],
    });
    assert_eq!(data, &wanted);
    for (at, (id, ..)) in all.iter().enumerate() {
        let rest = events(&world, &operator(), &format!("lastEventId={id}")).await;
        assert_eq!(ids(&rest), ids(&all)[at + 1..]);
    }
    for (caller, query, wanted) in [
        (
            vouched_for(plain_member(&platform)),
            String::new(),
            "platform.created entity.created",
        ),
        (
            operator(),
            format!("platformId={other}"),
            "platform.created thing.made",
        ),
        (
            operator(),
            "types=entity,thing.made,platform.deleted".to_owned(),
            "entity.created thing.made",
        ),
        (operator(), "types=thing".to_owned(), "thing.made"),
    ] {
        let found = events(&world, &caller, &format!("lastEventId=0&{query}")).await;
        let told: Vec<_> = found.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(told.join(" "), wanted, "{query}");
    }
    assert!(
        events(&world, &operator(), "").await.is_empty(),
        "without an id the feed starts with new events"
    );
}

#[tokio::test]
async fn unknown_event_ids_and_other_tenants_platforms_are_refused() {
    let world = World::new();
    let (platform, other) = (
        world.create_platform("engines").await,
        world.create_platform("looms").await,
    );
    world.seal().await;
    for bad in ["x", "-1", "3", "1.0", "99999999999999999999", ""] {
        let path = format!("{EVENTS}?follow=false&lastEventId={bad}");
        world
            .registry
            .get(&operator(), &path)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    let (header, path) = (
        [("last-event-id", "x")],
        format!("{EVENTS}?follow=false&lastEventId=1"),
    );
    let answer = world
        .registry
        .send(&operator(), "GET", &path, &header, Value::Null)
        .await;
    answer.expect_error(400, "VALIDATION_ERROR");
    for (caller, query) in [
        (owner(&platform), format!("platformId={other}")),
        (user_without_organization(), String::new()),
    ] {
        let path = format!("{EVENTS}?{query}");
        world
            .registry
            .get(&caller, &path)
            .await
            .expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_events_at_once_and_a_keep_alive_every_fifteen_seconds() {
    let world = world_with_notifications();
    let mut follower = Follower::of(&world, &operator(), "", None).await;
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(follower.next().await.unwrap(), ":\n\n");
    }
    assert_eq!(began.elapsed().as_secs(), 30);
    let path = "/api/v1/platforms";
    let made = async {
        let body = json!({ "name": "Engines", "slug": "engines" });
        let _ = world
            .registry
            .post(&operator(), path, body)
            .await
            .expect(201);
        world.seal().await;
        Instant::now()
    };
    let (told, sealed) = tokio::join!(follower.next_type(), made);
    assert_eq!(told, "platform.created");
    assert_eq!(sealed.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn entries_sealed_by_another_process_are_sent_within_a_second() {
    let world = World::new();
    let mut follower = Follower::of(&world, &operator(), "", None).await;
    let silent = timeout(Duration::from_millis(100), follower.next()).await;
    assert!(silent.is_err());
    world.create_platform("engines").await;
    let (cx, app) = (world.cx(), &world.app);
    core_domain::use_case::shared::seal(&cx, app.store.as_ref(), &app.audit_key)
        .await
        .unwrap();
    let began = Instant::now();
    assert_eq!(follower.next_type().await, "platform.created");
    assert!(began.elapsed() <= Duration::from_secs(1));
}
