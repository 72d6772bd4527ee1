//! The dead-letter queue over HTTP.

use serde_json::json;

use crate::world::{Answer, World, on_every_store, operator, send_concurrently};

const DLQ: &str = "/api/v1/provision/dlq";

impl World {
    async fn replay_dead_letter(&self, entry: &str) -> Answer {
        let path = format!("{DLQ}/{entry}/replay");
        self.provisioning.post(&operator(), &path, json!({})).await
    }

    async fn entries(&self, query: &str) -> Vec<String> {
        let path = format!("{DLQ}{query}");
        let listed = self.provisioning.get(&operator(), &path).await.expect(200);
        let ids = listed.each("entryId").into_iter();
        ids.map(str::to_owned).collect()
    }
}

async fn a_dead_letter_shows_its_failed_job_and_is_replayed_once(world: World) {
    let platform = world.create_platform("engines").await;
    let (job, entry) = world.dead_letter(&platform).await;
    let path = format!("{DLQ}/{entry}");
    let shown = world.provisioning.get(&operator(), &path).await.expect(200);
    assert_eq!(shown.header("etag"), "\"1\"");
    let failed = world.job(&job).await;
    let wanted = json!({
        "entryId": entry, "id": entry, "jobId": job, "platformId": platform, "kind": "platform",
        "environment": "prod", "status": "PENDING", "failureKind": "PERMANENT_ERROR", "failedStep": "d1",
        "error": failed["error"], "attempts": failed["attempts"], "input": failed["input"],
        "requestId": failed["requestId"], "traceId": null, "replayCount": 0, "replayedAt": null,
        "replayedBy": null, "resolvedAt": null, "createdAt": failed["finishedAt"],
        "updatedAt": failed["finishedAt"],
    });
    assert_eq!(shown.json, wanted);
    world.tick(1);
    let at = format!("{path}/replay");
    let replays = (0..4).map(|_| {
        let (api, path) = (world.provisioning.clone(), at.clone());
        async move { api.post(&operator(), &path, json!({})).await }
    });
    let mut answers = send_concurrently(replays).await;
    answers.sort_by_key(|answer| answer.status);
    let done = answers.remove(0).expect(200);
    assert_eq!(
        done.json,
        json!({ "jobId": job, "status": "QUEUED", "entryId": entry })
    );
    for refused in answers {
        let refused = refused.expect_error(409, "DLQ_ENTRY_NOT_REPLAYABLE");
        let details = json!({ "status": "REPLAYED", "allowedFrom": ["PENDING"] });
        assert_eq!(refused.json["error"]["details"], details);
    }
    let moves = world.event_types(&job).await;
    let replays = moves.iter().filter(|name| *name == "job.replayed");
    assert_eq!(replays.count(), 1, "{moves:?}");
    assert_eq!(world.audit("job.replayed").await.len(), 1);
    let shown = world.provisioning.get(&operator(), &path).await.expect(200);
    let now = [&shown.json["status"], &shown.json["replayedBy"]];
    assert_eq!(now, ["REPLAYED", "service-key"]);
    // The job fails again: the same dead letter is pending again, and is resolved when the job completes.
    world.provider.set_failing(true);
    world.run_jobs().await;
    world.provider.set_failing(false);
    let again = world.replay_dead_letter(&entry).await.expect(200);
    assert_eq!(again.text("jobId"), job);
    world.run_jobs().await;
    let shown = world.provisioning.get(&operator(), &path).await.expect(200);
    let now = [&shown.json["status"], &shown.json["replayCount"]];
    assert_eq!(now, [&json!("RESOLVED"), &json!(2)]);
    assert!(shown.json["resolvedAt"].is_string());
}

on_every_store! { a_dead_letter_shows_its_failed_job_and_is_replayed_once }

#[tokio::test]
async fn the_list_shows_pending_dead_letters_by_default() {
    let world = World::new();
    let mut letters = Vec::new();
    for slug in ["engines", "looms", "mills"] {
        let platform = world.create_platform(slug).await;
        let (job, entry) = world.dead_letter(&platform).await;
        letters.push((platform, job, entry));
        world.tick(1);
    }
    let _ = world.replay_dead_letter(&letters[0].2).await.expect(200);
    let _ = world.replay_dead_letter(&letters[1].2).await.expect(200);
    let _ = world
        .operate_over_http("cancel", &letters[1].1, json!({}))
        .await
        .expect(200);
    let of_first = format!("?platformId={}", letters[0].0);
    let all_of_first = format!("{of_first}&status=all");
    for (query, wanted) in [
        ("", vec![2]),
        ("?status=PENDING", vec![2]),
        ("?status=REPLAYED", vec![0]),
        ("?status=DISCARDED", vec![1]),
        ("?status=RESOLVED", vec![]),
        ("?status=all", vec![2, 1, 0]),
        ("?status=all&kind=platform", vec![2, 1, 0]),
        ("?kind=deploy", vec![]),
        (&of_first, vec![]),
        (&all_of_first, vec![0]),
    ] {
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|at: usize| letters[at].2.clone())
            .collect();
        assert_eq!(world.entries(query).await, wanted, "{query}");
    }
    let page = format!("{DLQ}?status=all&limit=2");
    let page = world.provisioning.get(&operator(), &page).await.expect(200);
    let cursor = page.json["pagination"]["cursor"].as_str().unwrap();
    let limit = &page.json["pagination"]["limit"];
    assert_eq!((limit, page.each("entryId").len()), (&json!(2), 2));
    let rest = format!("?status=all&limit=2&cursor={cursor}");
    assert_eq!(world.entries(&rest).await, [letters[0].2.as_str()]);
    for (query, code) in [
        ("?status=pending".to_owned(), "VALIDATION_ERROR"),
        (format!("?status=PENDING&cursor={cursor}"), "INVALID_CURSOR"),
    ] {
        let path = format!("{DLQ}{query}");
        let refused = world.provisioning.get(&operator(), &path).await;
        refused.expect_error(400, code);
    }
    // The job of a discarded dead letter was cancelled by an operator, and is undone.
    world.finish_jobs().await;
    let discarded = world.replay_dead_letter(&letters[1].2).await;
    discarded.expect_error(409, "DLQ_ENTRY_NOT_REPLAYABLE");
    world
        .replay_dead_letter("nothing")
        .await
        .expect_error(404, "NOT_FOUND");
}
