//! Corrupt rows of the audit log and of webhooks. They do not prevent other rows from being read or sealed.

use core_domain::shared::{AuditEntry, Webhook};
use core_storage::{Filter, Value as Column};

use crate::world::{World, audit_entry, entry_id, operator, webhooks_of};

#[tokio::test]
async fn an_unreadable_entry_does_not_hide_other_entries() {
    let world = World::new();
    let entries: Vec<_> = (0..7)
        .map(|n| audit_entry(n, Some("p-1"), "thing.made"))
        .collect();
    world.write_entries(&entries).await;
    world.seal().await;
    let unreadable = [("after", Column::text("{"))];
    let third = Filter::eq("id", &*entry_id(3));
    world.tamper::<AuditEntry>(third, &unreadable).await;
    world.tick(60);
    let list = "/api/v1/audit?platformId=p-1&limit=2";
    let (mut path, mut ids) = (list.to_owned(), Vec::new());
    loop {
        let page = world.get_record(&path).await;
        ids.extend(page.each("id").into_iter().map(str::to_owned));
        let Some(next) = page.json["pagination"]["nextCursor"].as_str() else {
            break;
        };
        path = format!("{list}&cursor={next}");
    }
    assert_eq!(ids, [6, 5, 4, 2, 1, 0].map(entry_id));
    let export = "/api/v1/audit/export?platformId=p-1&format=jsonl";
    let exported = world.registry.get(&operator(), export).await.expect(200);
    let lines = exported.bytes.iter().filter(|byte| **byte == b'\n');
    assert_eq!(lines.count(), 6);
    let report = world.verify(&operator(), "platformId=p-1").await;
    let problem = &report["problems"][0];
    assert_eq!(
        [&problem["kind"], &problem["entryId"]],
        ["entry_unreadable", &entry_id(3)]
    );
}

#[tokio::test]
async fn a_corrupt_webhook_gets_no_delivery_and_does_not_prevent_sealing() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let all = webhooks_of(&platform);
    let damaged = world.create_webhook(&all, "damaged").await["id"].clone();
    let sound = world.create_webhook(&all, "sound").await["id"].clone();
    world.seal().await;
    let of_damaged = Filter::eq("id", damaged.as_str().unwrap());
    let unreadable = [("secrets", Column::text("x"))];
    world.tamper::<Webhook>(of_damaged, &unreadable).await;
    world
        .write_entries(&[audit_entry(1, Some(&platform), "thing.made")])
        .await;
    assert_eq!(world.seal().await, 1);
    let path = format!("{all}/{}/deliveries", sound.as_str().unwrap());
    assert_eq!(
        world.get_record(&path).await.each("eventType")[..1],
        ["thing.made"]
    );
}
