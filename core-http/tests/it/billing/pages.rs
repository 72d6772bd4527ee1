//! The pages of billing: the invoice as a document, its payment by link, and the portal.

use core_domain::kernel::Caller;
use core_http::kernel::bytes_body;
use core_stripe_fake::{Fault, Matcher};
use http::{Method, Request};
use serde_json::json;

use super::paying_platform;
use super::webhooks::{deliver, waiting};
use crate::world::{Answer, BILLING_ORIGIN, World, on_every_store, operator};

/// Sends a form of a page of this origin, with the cookie of the portal.
async fn send_form(world: &World, path: &str, origin: &str, secret: &str, form: &str) -> Answer {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("origin", origin)
        .header("cookie", format!("theme=dark; billing_portal={secret}"))
        .header("content-type", "application/x-www-form-urlencoded");
    let body = bytes_body(form.to_owned());
    world.billing.raw(request.body(body).unwrap()).await
}

fn text_of(page: &Answer) -> String {
    String::from_utf8(page.bytes.to_vec()).unwrap()
}

async fn show_portal(world: &World, secret: &str, query: &str) -> Answer {
    let headers = [("cookie", format!("billing_portal={secret}"))];
    let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let path = format!("/portal{query}");
    let null = serde_json::Value::Null;
    world
        .billing
        .send(&Caller::Anonymous, "GET", &path, &headers, null)
        .await
}

/// Creates a platform whose first invoice is open because it has no card. Returns it with the path of the invoice's page.
async fn owing(world: &World) -> (String, String) {
    let platform = world.create_platform("engines").await;
    world.customer(&platform).await;
    let _ = world.subscribe(&platform, "starter").await.expect(201);
    let token = world.pay_token(&world.last_invoice(&platform).await);
    (platform, format!("/pay/{token}"))
}

async fn an_invoice_is_paid_on_its_page(world: World) {
    let (platform, page) = owing(&world).await;
    let shown = world
        .billing
        .get(&Caller::Anonymous, &page)
        .await
        .expect(200);
    for text in [
        "29.00 USD",
        "billing@example.org",
        "Test mode",
        "Starter plan",
    ] {
        assert!(
            text_of(&shown).contains(text),
            "{text}: {}",
            text_of(&shown)
        );
    }
    let pay = |card: &'static str| {
        let (world, page) = (&world, page.clone());
        async move {
            let form = format!("action=pay&card={card}");
            send_form(world, &page, BILLING_ORIGIN, "", &form).await
        }
    };
    let declined = pay("pm_card_chargeCustomerFail").await;
    assert_eq!(declined.status, 402);
    assert!(text_of(&declined).contains("The card was declined."));
    assert_eq!(
        world.subscription_of(&platform).await["status"],
        "incomplete"
    );
    let _ = pay("pm_card_visa").await.expect(303);
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    let shown = world
        .billing
        .get(&Caller::Anonymous, &page)
        .await
        .expect(200);
    assert!(text_of(&shown).contains("Nothing has to be paid."));
    assert_eq!(pay("pm_card_visa").await.status, 409);
    assert_eq!(world.count_charges(&platform).await, 2);
    world.assert_books_balance().await;
}
on_every_store!(an_invoice_is_paid_on_its_page);

#[tokio::test]
async fn a_charge_is_confirmed_on_the_page_of_its_invoice() {
    let world = World::new();
    let (platform, page) = owing(&world).await;
    let form = "action=pay&card=pm_card_authenticationRequired";
    let waiting = send_form(&world, &page, BILLING_ORIGIN, "", form).await;
    assert_eq!(waiting.status, 402);
    assert!(
        text_of(&waiting).contains("Confirm the charge"),
        "{}",
        text_of(&waiting)
    );
    let confirmed = send_form(&world, &page, BILLING_ORIGIN, "", "action=confirm").await;
    let _ = confirmed.expect(303);
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_charge_at_stripe_is_confirmed_on_its_page_there() {
    let world = World::new().at_stripe().await;
    let (platform, invoice) = waiting(&world).await;
    let page = format!("/pay/{}", world.pay_token(&invoice));
    let show = async || {
        let shown = world.billing.get(&Caller::Anonymous, &page).await;
        text_of(&shown.expect(200))
    };
    let stripe = world.stripe.as_ref().unwrap();
    let id = invoice["providerId"].as_str().unwrap();
    let at_stripe = stripe.invoice(id).unwrap();
    let link = format!(
        "href=\"{}\"",
        at_stripe["hosted_invoice_url"].as_str().unwrap()
    );
    let shown = show().await;
    assert!(
        shown.contains(&link) && shown.contains("Confirm the charge"),
        "{shown}"
    );
    let matcher = Matcher::new("GET", &format!("/v1/invoices/{id}"));
    let refused = Fault::Status {
        status: 401,
        retry_after: None,
        should_retry: None,
    };
    stripe.inject(matcher, refused);
    assert!(!shown.contains("Pay with the saved card"), "{shown}");
    let without = show().await;
    assert!(!without.contains(&link), "{without}");
    stripe.confirm_charge(id);
    for event in stripe.events() {
        deliver(&world, event).await;
    }
    world.run_jobs().await;
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert!(show().await.contains("Nothing has to be paid."));
    world.assert_books_balance().await;
}

async fn a_test_card_is_added_once_with_the_secret_of_a_setup_intent(world: World) {
    let (platform, _) = owing(&world).await;
    let body = json!({ "platformId": platform });
    let intent = world.billing.post(&operator(), "/setup-intent", body).await;
    let secret = intent.expect(201).text("clientSecret").to_owned();
    let page = format!("/pay/{secret}");
    let show = || world.billing.get(&Caller::Anonymous, &page);
    let shown = text_of(&show().await.expect(200));
    for text in ["Add a card", "billing@example.org", "Test mode"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let send = |form: &'static str| send_form(&world, &page, BILLING_ORIGIN, "", form);
    for bad in ["action=pay", "action=add", "action=confirm"] {
        assert_eq!(send(bad).await.status, 400, "{bad}");
    }
    let declined = send("action=add&card=pm_card_chargeDeclined").await;
    assert_eq!(declined.status, 402);
    assert!(text_of(&declined).contains("The card was declined."));
    assert_eq!(send("action=add&card=pm_card_unknown").await.status, 404);
    let _ = send("action=add&card=pm_card_visa").await.expect(303);
    // The first card pays the open invoice.
    assert_eq!(world.subscription_of(&platform).await["status"], "active");
    assert!(text_of(&show().await.expect(200)).contains("The card was added."));
    assert_eq!(send("action=add&card=pm_card_visa").await.status, 409);
    assert_eq!(world.attached_cards(&platform).await.len(), 1);
    let forged = format!("{}x", &page[..page.len() - 1]);
    let refused = world.billing.get(&Caller::Anonymous, &forged).await;
    assert_eq!(refused.status, 404);
    world.tick(24 * 60 * 60 + 1);
    assert_eq!(show().await.status, 404);
}
on_every_store!(a_test_card_is_added_once_with_the_secret_of_a_setup_intent);

#[tokio::test]
async fn pages_refuse_forged_tokens_and_forms_of_other_origins() {
    let world = World::new();
    let (_, page) = owing(&world).await;
    let forged = format!("{}x", &page[..page.len() - 1]);
    for path in [
        forged.as_str(),
        "/pay/x",
        "/pay/0192f3ab-0000-7000-8000-000000000000",
    ] {
        let refused = world.billing.get(&Caller::Anonymous, path).await;
        assert_eq!(refused.status, 404, "{path}");
    }
    let form = "action=pay&card=pm_card_visa";
    let refused = send_form(&world, &page, "https://evil.example", "", form).await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_browser_gets_an_invoice_as_a_page() {
    let world = World::new();
    let (platform, _) = paying_platform(&world, "growth").await;
    let invoice = world.last_invoice(&platform).await;
    assert_eq!(invoice["hostedInvoiceUrl"], json!(null));
    let path = format!("/invoices/{}", invoice["id"].as_str().unwrap());
    let headers = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let null = serde_json::Value::Null;
    let shown = world
        .billing
        .send(&operator(), "GET", &path, &headers, null)
        .await;
    let shown = shown.expect(200);
    assert_eq!(shown.header("content-type"), "text/html; charset=utf-8");
    let number = invoice["number"].as_str().unwrap();
    for text in [number, "Growth plan, per month", "99.00 USD"] {
        assert!(text_of(&shown).contains(text), "{text}");
    }
}

async fn a_portal_link_opens_one_session(world: World) {
    let (platform, _) = paying_platform(&world, "starter").await;
    let link = world.portal_link(&platform).await;
    let secret = world.enter_portal(&link).await;
    let path = format!("/portal/{link}");
    assert_eq!(
        world.billing.get(&Caller::Anonymous, &path).await.status,
        404
    );
    let shown = show_portal(&world, &secret, "").await.expect(200);
    for text in [
        "Starter",
        "29.00 USD",
        "Requests",
        "Visa ending in 4242",
        "https://app.example.org/",
    ] {
        assert!(
            text_of(&shown).contains(text),
            "{text}: {}",
            text_of(&shown)
        );
    }
    assert_eq!(show_portal(&world, &link, "").await.status, 401);
    world.tick(30 * 60);
    assert_eq!(show_portal(&world, &secret, "").await.status, 401);
    let late = world.portal_link(&platform).await;
    world.tick(5 * 60);
    let path = format!("/portal/{late}");
    assert_eq!(
        world.billing.get(&Caller::Anonymous, &path).await.status,
        404
    );
}
on_every_store!(a_portal_link_opens_one_session);

#[tokio::test]
async fn a_customer_manages_plan_and_cards_in_the_portal() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "starter").await;
    let secret = world
        .enter_portal(&world.portal_link(&platform).await)
        .await;
    world.set_time("2027-11-01T00:10:00Z");
    for interval in ["month", "year"] {
        let query = format!("?tier=growth&interval={interval}");
        let preview = show_portal(&world, &secret, &query).await.expect(200);
        let confirmed = format!(r#"type="hidden" name="interval" value="{interval}""#);
        for text in ["To pay now", &confirmed] {
            assert!(text_of(&preview).contains(text), "{text}");
        }
    }
    let send = |form: &'static str| {
        let (world, secret) = (&world, secret.clone());
        async move { send_form(world, "/portal/forms", BILLING_ORIGIN, &secret, form).await }
    };
    let changed = send("action=change&tier=growth").await.expect(303);
    assert!(
        changed
            .header("location")
            .ends_with("/portal?notice=plan-changed")
    );
    assert_eq!(world.subscription_of(&platform).await["tier"], "growth");
    let _ = send("action=cancel").await.expect(303);
    assert_eq!(
        world.subscription_of(&platform).await["cancelAtPeriodEnd"],
        true
    );
    let _ = send("action=keep").await.expect(303);
    assert_eq!(
        world.subscription_of(&platform).await["cancelAtPeriodEnd"],
        false
    );
    let _ = send("action=add&method=pm_card_visa").await.expect(303);
    let path = format!("/payment-methods?platformId={platform}");
    let methods = world.billing.get(&operator(), &path).await.expect(200).json;
    let other = methods["data"][1]["id"].as_str().unwrap().to_owned();
    let first = methods["data"][0]["id"].as_str().unwrap().to_owned();
    for (form, location) in [
        (
            format!("action=choose&method={other}"),
            "notice=card-chosen",
        ),
        (
            format!("action=remove&method={first}"),
            "notice=card-removed",
        ),
    ] {
        let done = send_form(&world, "/portal/forms", BILLING_ORIGIN, &secret, &form).await;
        assert!(done.expect(303).header("location").ends_with(location));
    }
    let last = format!("action=remove&method={other}");
    let refused = send_form(&world, "/portal/forms", BILLING_ORIGIN, &secret, &last).await;
    assert_eq!(refused.status, 409);
    assert!(text_of(&refused).contains("Add another one first."));
    assert_eq!(send("action=change&tier=growth").await.status, 409);
    assert_eq!(send("action=choose&method=pm_other").await.status, 404);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn the_portal_of_a_platform_without_a_customer_or_with_a_bad_return_address_is_refused() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let open = |url: &'static str| {
        let (api, platform) = (world.billing.clone(), platform.clone());
        async move {
            let body = json!({ "platformId": platform, "returnUrl": url });
            api.post(&operator(), "/portal", body).await
        }
    };
    open("https://app.example.org")
        .await
        .expect_error(404, "NOT_FOUND");
    let customer = world.customer(&platform).await;
    world.use_card(&customer, "pm_card_visa").await;
    for url in [
        "http://app.example.org",
        "javascript:alert(1)",
        "https://u@app.example.org",
    ] {
        open(url).await.expect_error(400, "VALIDATION_ERROR");
    }
    let _ = open("http://localhost:3000/x").await.expect(201);
}

#[tokio::test]
async fn the_holder_of_a_link_cannot_choose_the_card_of_a_real_customer() {
    let world = World::new();
    let (platform, page) = owing(&world).await;
    world.payments.pretend_to_be_stripe();
    for form in ["action=pay&card=pm_card_visa", "action=confirm"] {
        let refused = send_form(&world, &page, BILLING_ORIGIN, "", form).await;
        assert_eq!(refused.status, 409, "{form}");
    }
    let path = format!("/payment-methods?platformId={platform}");
    let methods = world.billing.get(&operator(), &path).await.expect(200);
    assert_eq!(methods.json["data"], json!([]));
}
