//! The delivery of messages to webhooks, with the same results on every store.

use super::*;

on_every_store! {
    an_event_is_sent_once_to_each_subscribed_webhook,
    a_message_is_tried_ten_times_and_fails_until_it_is_replayed,
    concurrent_dispatchers_send_each_message_once,
    a_receiver_with_many_messages_does_not_block_others,
    messages_of_a_suspended_platform_wait_and_those_of_a_deleted_one_fail,
}

async fn an_event_is_sent_once_to_each_subscribed_webhook(world: World) {
    let (platform, other) = (
        world.create_platform("engines").await,
        world.create_platform("looms").await,
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
        .patch_record(&off, json!({ "status": "disabled" }))
        .await
        .expect(200);

    // Two events that were sealed together, newest first. They are announced again with a new one, as after a crash.
    let mut events = world.changes("platform.created", 1).await;
    assert_eq!(events.len(), 2);
    world.fan_out_changes(&events).await;
    events.extend(
        world
            .changes("webhook.created", 3)
            .await
            .into_iter()
            .take(1),
    );
    world.fan_out_changes(&events).await;
    let mut told: Vec<(String, String)> = Vec::new();
    let requests = world.dispatch(|_| reply_with_status(204)).await;
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
    assert!(world.dispatch(|_| reply_with_status(204)).await.is_empty());
}

async fn a_message_is_tried_ten_times_and_fails_until_it_is_replayed(world: World) {
    let platform = world.create_platform("engines").await;
    let webhook = world.create_webhook(&webhooks_of(&platform), "in").await;
    let one = format!("{}/{}", webhooks_of(&platform), id(&webhook));
    let message = world.test_webhook(&one).await.expect(202).id();
    let mut bodies = Vec::new();
    let (mut at, pauses) = (
        world.clock.now(),
        [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400],
    );
    for attempt in 1..=10 {
        let sent = world
            .dispatch(|_| reply_with_status(if attempt == 1 { 302 } else { 500 }))
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
            .expect_error(409, "INVALID_STATE");
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
            world.dispatch(|_| reply_with_status(200)).await.is_empty(),
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
    assert_eq!(world.get_record(&one).await.json["consecutiveFailures"], 10);

    let replayed = world.replay(&one, &message).await.expect(202).json;
    assert_eq!(
        (&replayed["status"], &replayed["attempts"]),
        (&json!("pending"), &json!(0))
    );
    let sent = world.dispatch(|_| reply_with_status(200)).await;
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
    assert_eq!(
        world.get_record(&one).await.json["failingSince"],
        Value::Null
    );
    assert_eq!(world.audit("webhook.delivery_replayed").await.len(), 1);
    world.tick(30 * DAY);
    assert_eq!(world.remove_ended().await, 0);
    world.tick(1);
    assert_eq!(world.remove_ended().await, 1);
}

async fn concurrent_dispatchers_send_each_message_once(world: World) {
    let platform = world.create_platform("engines").await;
    let mut queued = Vec::new();
    for name in ["one", "two"] {
        let webhook = world.create_webhook(&webhooks_of(&platform), name).await;
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
            // A dispatcher has nothing to do if the others have claimed all due messages.
            for claimed in world
                .claim(5, 3)
                .await
                .into_iter()
                .chain(world.claim(5, 3).await)
            {
                let result = DeliveryResult::Tried(reply_with_status(200), 1);
                store_delivery_result(&world.cx(), world.app.store.as_ref(), &claimed, &result)
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
            .dispatch(|_| reply_with_status(200))
            .await
            .into_iter()
            .map(|request| request.id),
    );
    sent.sort();
    queued.sort();
    assert_eq!(sent, queued);
}

async fn a_receiver_with_many_messages_does_not_block_others(world: World) {
    let mut webhooks = Vec::new();
    for (name, messages) in [("many", 9), ("few", 2), ("one", 1)] {
        let webhook = id(&world.create_webhook(WEBHOOKS, name).await);
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
    // A released message does not count as tried. A message whose dispatcher dies is claimed again after a minute, and
    // the late result is ignored.
    let store = world.app.store.as_ref();
    store_delivery_result(&world.cx(), store, &claimed[5], &DeliveryResult::Released)
        .await
        .unwrap();
    let again = world.claim(1, 1).await;
    let oldest_left = again[0].webhook_id().as_str() == webhooks[0];
    assert!(oldest_left && claimed.iter().all(|c| c.id() != again[0].id()));
    world.tick(60);
    let taken_over = world.dispatch(|_| reply_with_status(200)).await;
    assert_eq!(taken_over.len(), 12);
    let late = DeliveryResult::Tried(Err(WebhookSendError::TimedOut), 15_000);
    store_delivery_result(&world.cx(), store, &claimed[0], &late)
        .await
        .unwrap();
    let path = format!("{WEBHOOKS}/{}/deliveries?status=succeeded", webhooks[0]);
    let ended = world.get_record(&path).await;
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

async fn messages_of_a_suspended_platform_wait_and_those_of_a_deleted_one_fail(world: World) {
    let platform = world.create_platform("engines").await;
    let all = webhooks_of(&platform);
    let one = format!("{all}/{}", id(&world.create_webhook(&all, "in").await));
    let first = world.test_webhook(&one).await.expect(202).id();
    world
        .change_lifecycle_as_operator(&platform, "suspend")
        .await;
    assert!(world.dispatch(|_| reply_with_status(200)).await.is_empty());
    let shown = world.message(&one, &first).await;
    assert_eq!(
        (&shown["status"], &shown["attempts"]),
        (&json!("pending"), &json!(0))
    );
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    world.tick(300);
    assert_eq!(world.dispatch(|_| reply_with_status(200)).await.len(), 1);
    let second = world.test_webhook(&one).await.expect(202).id();
    world
        .change_lifecycle_as_operator(&platform, "soft-delete")
        .await;
    assert!(world.dispatch(|_| reply_with_status(200)).await.is_empty());
    assert_eq!(world.message(&one, &second).await["status"], "failed");
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    world
        .change_lifecycle_as_operator(&platform, "delete")
        .await;
    world.run_jobs().await;
    world.assert_missing(&one).await;
    // Nothing is left to send or to remove.
    world.tick(40 * DAY);
    assert_eq!(
        (
            world.dispatch(|_| reply_with_status(200)).await.len(),
            world.remove_ended().await
        ),
        (0, 0)
    );
}
