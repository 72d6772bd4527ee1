//! Webhooks: who is told what, how often, and what becomes of messages nobody takes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{WebhookAnswer, WebhookRequest, WebhookSendError, transact};
use core_domain::shared::{ChangeEvent, WebhookSecret, WebhookTargets};
use core_domain::use_case::shared::webhook::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, claim_deliveries, remove_ended_deliveries,
    settle_delivery,
};
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use crate::world::{WEBHOOKS, World, answered, on_every_store, operator, owner, webhooks_of};

on_every_store! {
    a_change_is_told_once_to_each_webhook_that_asked_for_it,
    a_message_that_is_not_taken_is_tried_ten_times_and_then_given_up_until_it_is_replayed,
    dispatchers_at_once_send_each_message_once,
    a_receiver_with_many_messages_leaves_places_to_others,
    the_messages_of_a_suspended_platform_wait_and_those_of_a_deleted_one_end,
}

const DAY: u64 = 24 * 3_600;

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

fn secret(issued: &Value) -> WebhookSecret {
    WebhookSecret::parse(issued["secret"].as_str().unwrap()).unwrap()
}

/// The signature of a request with a secret.
fn signature(request: &WebhookRequest, secret: &WebhookSecret) -> String {
    let at = Timestamp::from_seconds(request.timestamp.parse().unwrap());
    secret.sign(&request.id, at, &request.body)
}

fn body(request: &WebhookRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

impl World {
    async fn test_webhook(&self, one: &str) -> Answer {
        self.registry
            .post(&operator(), &format!("{one}/test"), Value::Null)
            .await
    }

    async fn replay(&self, one: &str, message: &str) -> Answer {
        let path = format!("{one}/deliveries/{message}/replay");
        self.registry.post(&operator(), &path, Value::Null).await
    }

    async fn message(&self, one: &str, message: &str) -> Value {
        self.shown(&format!("{one}/deliveries/{message}"))
            .await
            .json
    }

    async fn claim(&self, concurrency: u32, concurrency_per_webhook: u32) -> Vec<ClaimedDelivery> {
        let limits = DispatchLimits {
            concurrency,
            concurrency_per_webhook,
        };
        let store = self.app.store.as_ref();
        claim_deliveries(store, limits, &BTreeMap::new())
            .await
            .unwrap()
    }

    async fn remove_ended(&self) -> u64 {
        let removed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(remove_ended_deliveries(uow))
        });
        removed.await.unwrap()
    }
}

async fn a_change_is_told_once_to_each_webhook_that_asked_for_it(world: World) {
    let (platform, other) = (
        world.platform("engines").await,
        world.platform("looms").await,
    );
    let create = async |all: &str, types: Value| {
        let body = json!({ "url": "https://hooks.example.org/", "eventTypes": types });
        let created = world
            .registry
            .post(&operator(), all, body)
            .await
            .expect(201)
            .json;
        (id(&created), secret(&created))
    };
    let everything = create(WEBHOOKS, json!(["*"])).await;
    let of_kind = create(&webhooks_of(&platform), json!(["nothing", "platform"])).await;
    let exact = create(&webhooks_of(&platform), json!(["platform.created"])).await;
    create(
        &webhooks_of(&platform),
        json!(["platform.deleted", "plat", "created"]),
    )
    .await;
    let foreign = create(&webhooks_of(&other), json!(["*"])).await;
    let off = create(&webhooks_of(&platform), json!(["*"])).await;
    let off = format!("{}/{}", webhooks_of(&platform), off.0);
    let _ = world
        .patched(&off, json!({ "status": "disabled" }))
        .await
        .expect(200);

    // Newest first; sealed together, and once more after a crash, with one that is new.
    let mut events = world.changes("platform.created", 1).await;
    assert_eq!(events.len(), 2);
    world.tell(&events).await;
    events.extend(
        world
            .changes("webhook.created", 3)
            .await
            .into_iter()
            .take(1),
    );
    world.tell(&events).await;
    let mut told: Vec<(String, String)> = Vec::new();
    let requests = world.dispatch(|_| answered(204)).await;
    for request in &requests {
        let receivers = [&everything, &of_kind, &exact, &foreign];
        let receiver = receivers
            .iter()
            .find(|(_, secret)| signature(request, secret) == request.signature);
        let message = body(request);
        let event = events
            .iter()
            .find(|event| event.id == message["data"]["id"])
            .unwrap();
        let wanted =
            json!({ "type": event.event_type, "timestamp": event.created_at, "data": event });
        assert_eq!(message, wanted);
        told.push((receiver.unwrap().0.clone(), event.id.clone()));
    }
    told.sort();
    let position = |platform: &str| {
        let event: &ChangeEvent = events
            .iter()
            .find(|event| event.entity_id == platform)
            .unwrap();
        event.id.clone()
    };
    let mut wanted = vec![
        (everything.0.clone(), position(&platform)),
        (everything.0.clone(), position(&other)),
        (everything.0, "3".to_owned()),
        (of_kind.0, position(&platform)),
        (exact.0, position(&platform)),
        (foreign.0, position(&other)),
    ];
    wanted.sort();
    assert_eq!(told, wanted);
    assert!(world.dispatch(|_| answered(204)).await.is_empty());
}

async fn a_message_that_is_not_taken_is_tried_ten_times_and_then_given_up_until_it_is_replayed(
    world: World,
) {
    let platform = world.platform("engines").await;
    let webhook = world.webhook(&webhooks_of(&platform), "in").await;
    let one = format!("{}/{}", webhooks_of(&platform), id(&webhook));
    let message = world.test_webhook(&one).await.expect(202).id();
    let mut bodies = Vec::new();
    let (mut at, pauses) = (
        world.clock.now(),
        [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400],
    );
    for attempt in 1..=10 {
        let sent = world
            .dispatch(|_| answered(if attempt == 1 { 302 } else { 500 }))
            .await;
        assert_eq!(
            (sent.len(), sent[0].id.as_str()),
            (1, message.as_str()),
            "{attempt}"
        );
        bodies.push(sent[0].body.clone());
        let shown = world.message(&one, &message).await;
        assert_eq!(shown["attempts"], attempt);
        let Some(pause) = pauses.get(attempt - 1) else {
            break;
        };
        world
            .replay(&one, &message)
            .await
            .refused(409, "INVALID_STATE");
        let next = Timestamp::parse_rfc3339(shown["nextAttemptAt"].as_str().unwrap()).unwrap();
        let pause = Duration::from_secs(*pause);
        assert!(
            next >= at.plus(pause) && next <= at.plus(pause * 11 / 10),
            "{attempt}: {next}"
        );
        world
            .clock
            .advance(next.since(at) - Duration::from_millis(1));
        assert!(
            world.dispatch(|_| answered(200)).await.is_empty(),
            "not before it is due"
        );
        world.clock.advance(Duration::from_millis(1));
        at = next;
    }
    let shown = world.message(&one, &message).await;
    let ended =
        ["status", "nextAttemptAt", "lastStatus", "lastError"].map(|field| shown[field].clone());
    assert_eq!(
        ended,
        [
            json!("failed"),
            Value::Null,
            json!(500),
            json!("the receiver answered 500")
        ]
    );
    let log = shown["attemptLog"].as_array().unwrap();
    assert_eq!(
        (log.len(), &log[0]["status"], &log[9]["durationMs"]),
        (10, &json!(302), &json!(7))
    );
    assert_eq!(world.shown(&one).await.json["consecutiveFailures"], 10);

    let replayed = world.replay(&one, &message).await.expect(202).json;
    assert_eq!(
        (&replayed["status"], &replayed["attempts"]),
        (&json!("pending"), &json!(0))
    );
    let sent = world.dispatch(|_| answered(200)).await;
    assert_eq!(sent[0].id, message);
    bodies.push(sent[0].body.clone());
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the same bytes each time");
    assert_eq!(body(&sent[0]), shown["payload"]);
    let shown = world.message(&one, &message).await;
    assert_eq!(
        (&shown["status"], &shown["lastError"]),
        (&json!("succeeded"), &Value::Null)
    );
    assert_eq!(world.shown(&one).await.json["failingSince"], Value::Null);
    assert_eq!(world.audit("webhook.delivery_replayed").await.len(), 1);
    world.tick(30 * DAY);
    assert_eq!(world.remove_ended().await, 0);
    world.tick(1);
    assert_eq!(world.remove_ended().await, 1);
}

async fn dispatchers_at_once_send_each_message_once(world: World) {
    let platform = world.platform("engines").await;
    let mut queued = Vec::new();
    for name in ["one", "two"] {
        let webhook = world.webhook(&webhooks_of(&platform), name).await;
        let one = format!("{}/{}", webhooks_of(&platform), id(&webhook));
        for _ in 0..6 {
            queued.push(world.test_webhook(&one).await.expect(202).id());
        }
    }
    let world = Arc::new(world);
    let dispatchers = [(); 3].map(|()| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let mut sent = Vec::new();
            // One that finds all that is due claimed by the others has nothing to do.
            for claimed in world
                .claim(5, 3)
                .await
                .into_iter()
                .chain(world.claim(5, 3).await)
            {
                let result = DeliveryResult::Tried(answered(200), 1);
                settle_delivery(&world.cx(), world.app.store.as_ref(), &claimed, &result)
                    .await
                    .unwrap();
                sent.push(claimed.id().to_string());
            }
            sent
        })
    });
    let mut sent = Vec::new();
    for dispatcher in dispatchers {
        sent.extend(dispatcher.await.unwrap());
    }
    sent.extend(
        world
            .dispatch(|_| answered(200))
            .await
            .into_iter()
            .map(|request| request.id),
    );
    sent.sort();
    queued.sort();
    assert_eq!(sent, queued);
}

async fn a_receiver_with_many_messages_leaves_places_to_others(world: World) {
    let mut webhooks = Vec::new();
    for (name, messages) in [("many", 9), ("few", 2), ("one", 1)] {
        let webhook = id(&world.webhook(WEBHOOKS, name).await);
        for _ in 0..messages {
            let _ = world
                .test_webhook(&format!("{WEBHOOKS}/{webhook}"))
                .await
                .expect(202);
            world.tick(1);
        }
        webhooks.push(webhook);
    }
    let claimed = world.claim(6, 3).await;
    let to = |webhook: &String| {
        claimed
            .iter()
            .filter(|c| c.webhook_id().as_str() == webhook)
            .count()
    };
    assert_eq!(webhooks.iter().map(to).collect::<Vec<_>>(), [3, 2, 1]);
    // What is given back was not tried; what its dispatcher dies with comes again a minute later, and cannot be settled then.
    let store = world.app.store.as_ref();
    settle_delivery(&world.cx(), store, &claimed[5], &DeliveryResult::Released)
        .await
        .unwrap();
    let again = world.claim(1, 1).await;
    let oldest_left = again[0].webhook_id().as_str() == webhooks[0];
    assert!(oldest_left && claimed.iter().all(|c| c.id() != again[0].id()));
    world.tick(60);
    let taken_over = world.dispatch(|_| answered(200)).await;
    assert_eq!(taken_over.len(), 12);
    let late = DeliveryResult::Tried(Err(WebhookSendError::TimedOut), 15_000);
    settle_delivery(&world.cx(), store, &claimed[0], &late)
        .await
        .unwrap();
    let path = format!("{WEBHOOKS}/{}/deliveries?status=succeeded", webhooks[0]);
    let ended = world.shown(&path).await;
    assert_eq!(ended.total(), Some(9));
    let mut attempts: Vec<i64> = ended.json["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["attempts"].as_i64().unwrap())
        .collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 1, 1, 1, 2, 2, 2, 2]);
}

async fn the_messages_of_a_suspended_platform_wait_and_those_of_a_deleted_one_end(world: World) {
    let platform = world.platform("engines").await;
    let all = webhooks_of(&platform);
    let one = format!("{all}/{}", id(&world.webhook(&all, "in").await));
    let first = world.test_webhook(&one).await.expect(202).id();
    world.move_on(&platform, "suspend").await;
    assert!(world.dispatch(|_| answered(200)).await.is_empty());
    let shown = world.message(&one, &first).await;
    assert_eq!(
        (&shown["status"], &shown["attempts"]),
        (&json!("pending"), &json!(0))
    );
    world.move_on(&platform, "restore").await;
    world.tick(300);
    assert_eq!(world.dispatch(|_| answered(200)).await.len(), 1);
    let second = world.test_webhook(&one).await.expect(202).id();
    world.move_on(&platform, "soft-delete").await;
    assert!(world.dispatch(|_| answered(200)).await.is_empty());
    assert_eq!(world.message(&one, &second).await["status"], "failed");
    world.move_on(&platform, "restore").await;
    world.move_on(&platform, "delete").await;
    world.run_jobs().await;
    world.missing(&one).await;
    // Nothing of it is left: neither to send, nor to sweep.
    world.tick(40 * DAY);
    assert_eq!(
        (
            world.dispatch(|_| answered(200)).await.len(),
            world.remove_ended().await
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn a_secret_is_shown_when_it_is_made_and_nowhere_else() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let all = webhooks_of(&platform);
    let body = json!({ "url": "https://hooks.example.org/in?key=hidden", "eventTypes": ["entity", "*"], "description": "d" });
    let created = world
        .registry
        .post(&owner(&platform), &all, body.clone())
        .await
        .expect(201);
    assert_eq!(
        (created.header("etag"), created.header("cache-control")),
        ("\"1\"", "no-store")
    );
    let now = "2027-01-15T08:00:01.000Z";
    let wanted = json!({
        "id": created.id(), "platformId": platform, "url": body["url"], "eventTypes": body["eventTypes"],
        "description": "d", "status": "enabled", "disabledReason": null, "consecutiveFailures": 0,
        "failingSince": null, "createdAt": now, "updatedAt": now,
    });
    let one = format!("{all}/{}", created.id());
    assert_eq!(world.shown(&one).await.json, wanted);
    let rotated = world
        .registry
        .post(&operator(), &format!("{one}/rotate-secret"), Value::Null)
        .await
        .expect(200);
    let secrets = [&created, &rotated].map(|issued| secret(&issued.json));
    assert_ne!(secrets[0], secrets[1]);
    let mut told =
        world.shown(&all).await.json.to_string() + &world.shown(&one).await.json.to_string();
    for action in ["webhook.created", "webhook.secret_rotated"] {
        let entries = world.audit(action).await;
        assert_eq!(entries.len(), 1, "{action}");
        let kept = format!("{entries:?}");
        assert!(
            !kept.contains("hidden") && kept.contains("https://hooks.example.org"),
            "{kept}"
        );
        told += &kept;
    }
    for secret in &secrets {
        assert!(!told.contains(secret.expose()));
    }
}

#[tokio::test]
async fn both_secrets_sign_for_a_day_after_a_rotation() {
    let world = World::new();
    let webhook = world.webhook(WEBHOOKS, "in").await;
    let one = format!("{WEBHOOKS}/{}", id(&webhook));
    let rotate = async || {
        world
            .registry
            .post(&operator(), &format!("{one}/rotate-secret"), Value::Null)
            .await
    };
    let (old, new) = (secret(&webhook), secret(&rotate().await.expect(200).json));
    for (passes, signing) in [
        (0, vec![&new, &old]),
        (DAY - 1, vec![&new, &old]),
        (1, vec![&new]),
    ] {
        world.tick(passes);
        let _ = world.test_webhook(&one).await.expect(202);
        let sent = world.dispatch(|_| answered(200)).await.remove(0);
        let wanted: Vec<String> = signing
            .into_iter()
            .map(|secret| signature(&sent, secret))
            .collect();
        assert_eq!(sent.signature, wanted.join(" "));
        let told = body(&sent);
        assert_eq!(
            (&told["type"], &told["data"]["webhookId"]),
            (&json!("webhook.test"), &webhook["id"])
        );
        assert!(!format!("{sent:?}").contains(&sent.signature));
    }
    for _ in 0..4 {
        let _ = rotate().await.expect(200);
    }
    rotate().await.refused(409, "CONFLICT");
}

#[tokio::test]
async fn receivers_are_public_and_have_tls_unless_the_installation_allows_others() {
    let world = World::new();
    let create = async |world: &World, url: &str| {
        let body = json!({ "url": url, "eventTypes": ["*"] });
        world.registry.post(&operator(), WEBHOOKS, body).await
    };
    let one = format!("{WEBHOOKS}/{}", id(&world.webhook(WEBHOOKS, "in").await));
    for (url, code) in [
        ("http://hooks.example.org/", "url: not_https"),
        ("https://127.0.0.1/", "url: private_address"),
        ("https://169.254.169.254/latest/", "url: private_address"),
        ("https://[::ffff:10.0.0.1]/", "url: private_address"),
        ("https://[fd00::1]:8443/", "url: private_address"),
        ("https://localhost/", "url: private_address"),
        ("https://user@hooks.example.org/", "url: pattern"),
        ("https://hooks.example.org:0/", "url: pattern"),
        ("https://2130706433/", "url: pattern"),
    ] {
        let created = create(&world, url).await;
        let changed = world.patched(&one, json!({ "url": url })).await;
        for answer in [created, changed] {
            assert!(
                answer
                    .refused(400, "VALIDATION_ERROR")
                    .issues()
                    .contains(&code.to_owned()),
                "{url}"
            );
        }
    }
    // Patterns cannot count.
    create(&world, "https://1.2.3.256/")
        .await
        .refused(400, "VALIDATION_ERROR");
    let lenient = World::with(|app| {
        app.options.webhooks = WebhookTargets {
            allow_http: true,
            allow_private_addresses: true,
        };
    });
    let _ = create(&lenient, "http://127.0.0.1:8080/in")
        .await
        .expect(201);
}

#[tokio::test]
async fn a_platform_has_twenty_webhooks_and_the_installation_as_many_besides() {
    let world = World::new();
    let platform = world.platform("engines").await;
    for all in [webhooks_of(&platform), WEBHOOKS.to_owned()] {
        for number in 0..20 {
            world.webhook(&all, &format!("{number}")).await;
        }
        let body = json!({ "url": "https://hooks.example.org/", "eventTypes": ["*"] });
        world
            .registry
            .post(&operator(), &all, body.clone())
            .await
            .refused(409, "CONFLICT");
        let first = world.shown(&format!("{all}?limit=1")).await.each("id")[0].to_owned();
        world.removed(&format!("{all}/{first}")).await;
        world.missing(&format!("{all}/{first}")).await;
        let _ = world
            .registry
            .post(&operator(), &all, body)
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn what_belongs_to_another_webhook_or_platform_is_not_found() {
    let world = World::new();
    let (platform, other) = (
        world.platform("engines").await,
        world.platform("looms").await,
    );
    let all = webhooks_of(&platform);
    let [webhook, message] = world.webhook_with_messages(&all).await;
    let sibling = id(&world.webhook(&all, "sibling").await);
    let foreign = id(&world.webhook(&webhooks_of(&other), "foreign").await);
    for wrong in [
        format!("{all}/{foreign}"),
        format!("{}/{webhook}", webhooks_of(&other)),
        format!("{WEBHOOKS}/{webhook}"),
        format!("{all}/{sibling}/deliveries/{message}"),
        format!("{}/{foreign}/deliveries/{message}", webhooks_of(&other)),
        format!("{WEBHOOKS}/{webhook}/deliveries/{message}"),
        format!("{WEBHOOKS}/{webhook}/deliveries"),
    ] {
        world.missing(&wrong).await;
    }
    world
        .replay(&format!("{all}/{sibling}"), &message)
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_silent_for_five_days_is_disabled_until_its_owner_enables_it() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let all = webhooks_of(&platform);
    let one = format!("{all}/{}", id(&world.webhook(&all, "in").await));
    let waiting = world.test_webhook(&one).await.expect(202).id();
    let gone = async |status| world.dispatch(|_| answered(status)).await.len();
    assert_eq!(gone(500).await, 1);
    let _ = world.test_webhook(&one).await.expect(202);
    assert_eq!(gone(410).await, 1);
    let disabled = world.shown(&one).await.json;
    assert_eq!(
        (&disabled["status"], &disabled["disabledReason"]),
        (
            &json!("disabled"),
            &json!("The receiver answered 410 Gone.")
        )
    );
    for path in ["test", "recover", &format!("deliveries/{waiting}/replay")] {
        let body = if path == "recover" {
            json!({ "since": "2027-01-15T08:00:00Z" })
        } else {
            Value::Null
        };
        let refused = world
            .registry
            .post(&operator(), &format!("{one}/{path}"), body)
            .await;
        refused.refused(409, "INVALID_STATE");
    }
    world.tick(6);
    assert_eq!(gone(200).await, 0);
    let ended = world.message(&one, &waiting).await;
    assert_eq!(
        (&ended["status"], &ended["lastError"]),
        (&json!("failed"), &json!("The webhook is disabled."))
    );

    let enabled = world
        .patched(&one, json!({ "status": "enabled" }))
        .await
        .expect(200)
        .json;
    assert_eq!(
        (&enabled["disabledReason"], &enabled["consecutiveFailures"]),
        (&Value::Null, &json!(0))
    );
    let recover = async |since: Timestamp| {
        let body = json!({ "since": since });
        world
            .registry
            .post(&owner(&platform), &format!("{one}/recover"), body)
            .await
            .expect(200)
            .json
    };
    assert_eq!(
        recover(world.clock.now()).await,
        json!({ "replayed": 0, "hasMore": false })
    );
    assert_eq!(
        recover(Timestamp::EPOCH).await,
        json!({ "replayed": 2, "hasMore": false })
    );
    assert_eq!(gone(503).await, 2);
    world.tick(5 * DAY);
    assert_eq!(gone(503).await, 2);
    let disabled = world.shown(&one).await.json;
    assert_eq!(
        disabled["disabledReason"],
        "Every attempt of five days has failed."
    );
    let entries = world.audit("webhook.disabled").await;
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry.entity_id.clone())
            .collect::<Vec<_>>(),
        [id(&disabled), id(&disabled)]
    );
}

#[tokio::test]
async fn a_receiver_may_ask_for_time_and_its_answer_is_kept_to_be_looked_at() {
    let world = World::new();
    let one = format!("{WEBHOOKS}/{}", id(&world.webhook(WEBHOOKS, "in").await));
    let message = world.test_webhook(&one).await.expect(202).id();
    let sent_at = world.clock.now();
    let busy = |_: &WebhookRequest| {
        let answer = WebhookAnswer {
            status: 503,
            retry_after: Some("120".to_owned()),
            body: "come\0back".to_owned(),
        };
        Ok(answer)
    };
    world.dispatch(busy).await;
    let shown = world.message(&one, &message).await;
    assert_eq!(
        shown["nextAttemptAt"],
        json!(sent_at.plus(Duration::from_secs(120)))
    );
    world.tick(120);
    world.dispatch(|_| Err(WebhookSendError::Forbidden)).await;
    let shown = world.message(&one, &message).await;
    let wanted = json!([
        { "at": sent_at, "status": 503, "durationMs": 7, "error": "the receiver answered 503", "body": "come\0back" },
        { "at": sent_at.plus(Duration::from_secs(120)), "status": null, "durationMs": 7,
          "error": "the address is not one that this installation sends to", "body": null },
    ]);
    assert_eq!(shown["attemptLog"], wanted);
    assert_eq!(
        (&shown["lastStatus"], &shown["status"]),
        (&Value::Null, &json!("pending"))
    );
}
