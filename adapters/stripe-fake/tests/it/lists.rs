//! Tests of lists and their pages.

use std::time::Duration;

use serde_json::Value;

use crate::world::World;

fn ids(list: &Value) -> Vec<String> {
    let data = list["data"].as_array().unwrap().iter();
    data.map(|own| own["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn pages_go_forward_and_backward_newest_first() {
    let world = World::start().await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.insert(0, world.customer().await);
    }
    let first = world.get("/v1/customers?limit=2").await.object();
    assert_eq!(
        (ids(&first), &first["has_more"]),
        (all[..2].to_vec(), &true.into())
    );
    let last = world
        .get(&format!("/v1/customers?limit=9&starting_after={}", all[2]))
        .await
        .object();
    assert_eq!(
        (ids(&last), &last["has_more"]),
        (all[3..].to_vec(), &false.into())
    );
    let before = world
        .get(&format!("/v1/customers?limit=2&ending_before={}", all[4]))
        .await
        .object();
    assert_eq!(
        (ids(&before), &before["has_more"]),
        (all[2..4].to_vec(), &true.into())
    );
    for query in [
        "limit=101",
        "limit=x",
        "starting_after=cus_none",
        "colour=red",
    ] {
        let reply = world.get(&format!("/v1/customers?{query}")).await;
        assert!(reply.status >= 400, "{query}");
    }
}

#[tokio::test]
async fn an_invoice_embeds_ten_lines_and_lists_all() {
    let world = World::start().await;
    let customer = world.customer().await;
    let id = world.draft(&customer, 100).await;
    let lines: Vec<_> = (0..14)
        .map(|line| format!("lines[{line}][amount]=1"))
        .collect();
    let invoice = world
        .of_invoice(&id, "add_lines", &lines.join("&"))
        .await
        .object();
    assert_eq!(
        (ids(&invoice["lines"]).len(), &invoice["lines"]["has_more"]),
        (10, &true.into())
    );
    assert_eq!(invoice["amount_due"], 114);
    let all = world
        .get(&format!("/v1/invoices/{id}/lines?limit=100"))
        .await
        .object();
    assert_eq!(ids(&all).len(), 15);
}

#[tokio::test]
async fn lists_are_filtered_by_creation_time() {
    let world = World::start().await;
    let start = world.fake.now();
    world.customer().await;
    world.fake.advance(Duration::from_secs(60));
    let second = world.customer().await;
    let after = world
        .get(&format!("/v1/customers?created[gt]={start}"))
        .await
        .object();
    assert_eq!(ids(&after), [second]);
    let before = world
        .get(&format!("/v1/customers?created[lte]={start}"))
        .await
        .object();
    assert_eq!(ids(&before).len(), 1);
    let unknown = world.get("/v1/customers?created[since]=1").await;
    assert_eq!(unknown.failure().2, "parameter_unknown");
}

#[tokio::test]
async fn events_are_listed_for_thirty_days() {
    let world = World::start().await;
    world.customer().await;
    world.fake.advance(Duration::from_hours(24 * 30));
    world.customer().await;
    assert_eq!(ids(&world.get("/v1/events").await.object()).len(), 2);
    world.fake.advance(Duration::from_secs(1));
    assert_eq!(ids(&world.get("/v1/events").await.object()).len(), 1);
}
