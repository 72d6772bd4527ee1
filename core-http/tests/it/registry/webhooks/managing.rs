//! Managing webhooks and their secrets, and receivers that accept nothing.

use super::*;

#[tokio::test]
async fn a_secret_is_returned_only_when_it_is_created() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
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
    assert_eq!(world.get_record(&one).await.json, wanted);
    let rotated = world
        .registry
        .post(&operator(), &format!("{one}/rotate-secret"), Value::Null)
        .await
        .expect(200);
    let secrets = [&created, &rotated].map(|issued| secret(&issued.json));
    assert_ne!(secrets[0], secrets[1]);
    let mut told = world.get_record(&all).await.json.to_string()
        + &world.get_record(&one).await.json.to_string();
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
    let webhook = world.create_webhook(WEBHOOKS, "in").await;
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
        let sent = world.dispatch(|_| reply_with_status(200)).await.remove(0);
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
    rotate().await.expect_error(409, "CONFLICT");
}

#[tokio::test]
async fn receivers_must_be_public_and_use_tls_unless_the_installation_allows_others() {
    let world = World::new();
    let create = async |world: &World, url: &str| {
        let body = json!({ "url": url, "eventTypes": ["*"] });
        world.registry.post(&operator(), WEBHOOKS, body).await
    };
    let one = format!(
        "{WEBHOOKS}/{}",
        id(&world.create_webhook(WEBHOOKS, "in").await)
    );
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
        let changed = world.patch_record(&one, json!({ "url": url })).await;
        for answer in [created, changed] {
            assert!(
                answer
                    .expect_error(400, "VALIDATION_ERROR")
                    .issues()
                    .contains(&code.to_owned()),
                "{url}"
            );
        }
    }
    // A pattern cannot check the range of the numbers in an address.
    create(&world, "https://1.2.3.256/")
        .await
        .expect_error(400, "VALIDATION_ERROR");
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
async fn a_platform_and_the_installation_have_at_most_twenty_webhooks_each() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for all in [webhooks_of(&platform), WEBHOOKS.to_owned()] {
        for number in 0..20 {
            world.create_webhook(&all, &format!("{number}")).await;
        }
        let body = json!({ "url": "https://hooks.example.org/", "eventTypes": ["*"] });
        world
            .registry
            .post(&operator(), &all, body.clone())
            .await
            .expect_error(409, "LIMIT_REACHED");
        let first = world.get_record(&format!("{all}?limit=1")).await.each("id")[0].to_owned();
        world.delete_record(&format!("{all}/{first}")).await;
        world.assert_missing(&format!("{all}/{first}")).await;
        let _ = world
            .registry
            .post(&operator(), &all, body)
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn webhooks_and_deliveries_are_not_found_below_another_webhook_or_platform() {
    let world = World::new();
    let (platform, other) = (
        world.create_platform("engines").await,
        world.create_platform("looms").await,
    );
    let all = webhooks_of(&platform);
    let [webhook, message] = world.webhook_with_messages(&all).await;
    let sibling = id(&world.create_webhook(&all, "sibling").await);
    let foreign = id(&world.create_webhook(&webhooks_of(&other), "foreign").await);
    for wrong in [
        format!("{all}/{foreign}"),
        format!("{}/{webhook}", webhooks_of(&other)),
        format!("{WEBHOOKS}/{webhook}"),
        format!("{all}/{sibling}/deliveries/{message}"),
        format!("{}/{foreign}/deliveries/{message}", webhooks_of(&other)),
        format!("{WEBHOOKS}/{webhook}/deliveries/{message}"),
        format!("{WEBHOOKS}/{webhook}/deliveries"),
    ] {
        world.assert_missing(&wrong).await;
    }
    world
        .replay(&format!("{all}/{sibling}"), &message)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_webhook_is_disabled_after_410_or_five_days_of_failures_until_it_is_enabled() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let all = webhooks_of(&platform);
    let one = format!("{all}/{}", id(&world.create_webhook(&all, "in").await));
    let waiting = world.test_webhook(&one).await.expect(202).id();
    let gone = async |status| world.dispatch(|_| reply_with_status(status)).await.len();
    assert_eq!(gone(500).await, 1);
    let _ = world.test_webhook(&one).await.expect(202);
    assert_eq!(gone(410).await, 1);
    let disabled = world.get_record(&one).await.json;
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
        refused.expect_error(409, "INVALID_STATE");
    }
    world.tick(6);
    assert_eq!(gone(200).await, 0);
    let ended = world.message(&one, &waiting).await;
    assert_eq!(
        (&ended["status"], &ended["lastError"]),
        (&json!("failed"), &json!("The webhook is disabled."))
    );

    let enabled = world
        .patch_record(&one, json!({ "status": "enabled" }))
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
    let disabled = world.get_record(&one).await.json;
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
async fn a_receiver_can_delay_the_next_attempt_and_its_responses_are_logged() {
    let world = World::new();
    let one = format!(
        "{WEBHOOKS}/{}",
        id(&world.create_webhook(WEBHOOKS, "in").await)
    );
    let message = world.test_webhook(&one).await.expect(202).id();
    let sent_at = world.clock.now();
    let busy = |_: &WebhookRequest| {
        let answer = WebhookResponse {
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
