//! Sign-up and sign-in if addresses must be confirmed first.

use core_http::iam::IamOptions;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::pages::OWN_ORIGIN;
use super::{
    ADA, EVE, GET_SESSION, NEW_PASSWORD, SIGN_UP, WRONG_PASSWORD, cookies, without_request_id,
};
use crate::world::{Answer, ORIGIN, PASSWORD, World, on_every_store};

const REQUIRED: IamOptions = IamOptions {
    require_email_verification: true,
    auto_sign_in_after_verification: false,
};

fn world() -> World {
    World::new().with_iam(REQUIRED)
}

async fn sign_up(world: &World, email: &str) -> Answer {
    let body = json!({ "name": "Ada", "email": email, "password": PASSWORD });
    let answer = world.post(SIGN_UP, body).await.expect(200);
    assert!(cookies(&answer).is_empty());
    assert_eq!(answer.json["token"], Value::Null);
    answer
}

/// Opens the page of a link, and enters the password there if the page asks for it.
async fn follow_link(world: &World, link: &str) -> Answer {
    let path = link.strip_prefix(ORIGIN).unwrap();
    let page = world.page(path, &[]).await;
    if page.status != 200 {
        return page;
    }
    let (_, query) = link.split_once('?').unwrap();
    let link: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap();
    let link = link.iter().map(|(name, value)| (&**name, &**value));
    let fields: Vec<_> = link.chain([("password", PASSWORD)]).collect();
    world.form("/verify-email", &fields, &[OWN_ORIGIN]).await
}

async fn subjects(world: &World) -> Vec<String> {
    let mails = world.mails().await.into_iter();
    mails.map(|mail| mail.subject).collect()
}

#[tokio::test]
async fn only_the_mail_of_a_sign_up_reveals_whether_the_address_is_taken() {
    let world = world();
    let mut free = sign_up(&world, ADA).await;
    world.tick(1);
    let mut taken = sign_up(&world, "ADA@example.org").await;
    let entries = world.audit("user.sign_up_refused").await;
    assert_eq!(entries[0].entity_id, free.json["user"]["id"]);
    assert_ne!(taken.json["user"]["id"], free.json["user"]["id"]);
    for answer in [&mut free, &mut taken] {
        let user = &mut answer.json["user"];
        assert_eq!(user["createdAt"], user["updatedAt"]);
        let id = user["id"].as_str().unwrap();
        assert_eq!(id.len(), 36);
        for of_each in ["id", "createdAt", "updatedAt"] {
            user[of_each] = Value::Null;
        }
    }
    assert_eq!(without_request_id(free), without_request_id(taken));
    let expected = ["Confirm your e-mail address", "You already have an account"];
    assert_eq!(subjects(&world).await, expected);
    let told = world.mails().await.pop().unwrap();
    assert_eq!(told.to.as_str(), ADA);
    assert!(told.text.contains("http://iam.test/sign-in\n"));
    assert!(!told.text.contains("token") && !told.html.contains("token"));
}

#[tokio::test]
async fn an_address_gets_at_most_five_mails_of_a_kind_per_hour() {
    let world = world();
    for _ in 0..8 {
        sign_up(&world, ADA).await;
    }
    // One mail with a link, and five that report the existing account.
    assert_eq!(subjects(&world).await.len(), 6);
    world.tick(3_600);
    for _ in 0..8 {
        let refused = world.sign_in(ADA, PASSWORD).await;
        refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    }
    assert_eq!(subjects(&world).await.len(), 11);
    let told = world.audit("user.sign_in_refused").await;
    let sent = told.iter().filter(|entry| {
        let details = entry.after.as_ref().unwrap().as_str();
        details.contains(r#""linkSent":true"#)
    });
    assert_eq!((told.len(), sent.count()), (8, 5));
}

#[tokio::test]
async fn only_the_right_password_reveals_an_unconfirmed_address_and_sends_a_link() {
    let world = world();
    sign_up(&world, ADA).await;
    for (email, password) in [(ADA, WRONG_PASSWORD), (EVE, PASSWORD)] {
        let refused = world.sign_in(email, password).await;
        refused.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
    }
    assert_eq!(subjects(&world).await.len(), 1);
    let body = json!({ "email": ADA, "password": PASSWORD, "callbackURL": "/dash" });
    world.tick(1);
    let refused = world.post(super::SIGN_IN, body).await;
    assert_eq!(refused.text("message"), "Email not verified");
    let refused = refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    assert!(cookies(&refused).is_empty());
    let link = world.mailed_link(ADA).await;
    let confirmed = follow_link(&world, &link).await.expect(303);
    assert_eq!(confirmed.header("location"), "http://iam.test/dash");
    assert!(
        cookies(&confirmed).is_empty(),
        "a confirmation link does not sign in"
    );
    let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(signed_in.json["user"]["emailVerified"], true);
    let again = follow_link(&world, &link).await.expect(303);
    let target = "http://iam.test/dash?error=INVALID_TOKEN";
    assert_eq!(again.header("location"), target);
}

#[tokio::test]
async fn sign_in_links_and_reset_links_also_confirm_the_address() {
    let world = world();
    sign_up(&world, ADA).await;
    sign_up(&world, EVE).await;
    world.tick(1);
    let asked = world.post("/api/auth/sign-in/magic-link", json!({ "email": ADA }));
    let _ = asked.await.expect(200);
    let token = world.mailed_token(ADA).await;
    let signed_in = world.follow_magic_link(&token).await.expect(200);
    assert_eq!(signed_in.json["user"]["emailVerified"], true);
    let _ = world.reset_password(EVE, NEW_PASSWORD).await.expect(200);
    let _ = world.sign_in(EVE, NEW_PASSWORD).await.expect(200);
}

#[tokio::test]
async fn a_confirmation_link_signs_in_once_if_the_option_is_set() {
    let world = World::new().with_iam(IamOptions {
        auto_sign_in_after_verification: true,
        ..REQUIRED
    });
    sign_up(&world, ADA).await;
    let link = world.mailed_link(ADA).await;
    let confirmed = follow_link(&world, &link).await.expect(303);
    assert_eq!(confirmed.header("location"), "http://iam.test/");
    let token = confirmed.header("set-auth-token");
    let session = world
        .send_with_bearer(token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["user"]["email"], ADA);
    assert_eq!(world.audit("user.signed_in").await.len(), 1);
    let again = follow_link(&world, &link).await.expect(303);
    assert!(cookies(&again).is_empty());
    // A confirmed address gets no confirmation link.
    let before = subjects(&world).await;
    let send = json!({ "email": ADA });
    let sent = world.post("/api/auth/send-verification-email", send).await;
    let _ = sent.expect(200);
    assert_eq!(subjects(&world).await, before);
}

async fn concurrent_sign_ups_with_one_address_create_one_user(world: World) {
    let world = world.with_iam(REQUIRED);
    let answers = join_all((0..8).map(|_| sign_up(&world, ADA))).await;
    let signed_up = world.audit("user.signed_up").await;
    assert_eq!(signed_up.len(), 1);
    let user = json!(signed_up[0].entity_id);
    let of_user = answers.iter().filter(|one| one.json["user"]["id"] == user);
    assert_eq!(of_user.count(), 1);
    assert_eq!(world.audit("user.sign_up_refused").await.len(), 7);
    assert_eq!(subjects(&world).await.len(), 6);
}

#[tokio::test]
async fn repeated_sign_ups_do_not_block_the_confirmation_link_of_the_owner() {
    let world = world();
    sign_up(&world, ADA).await;
    for _ in 0..8 {
        world.tick(1);
        sign_up(&world, ADA).await;
    }
    let sent = subjects(&world).await.len();
    world.tick(1);
    let refused = world.sign_in(ADA, PASSWORD).await;
    refused.expect_error(403, "EMAIL_NOT_VERIFIED");
    assert_eq!(subjects(&world).await.len(), sent + 1);
    let confirmed = follow_link(&world, &world.mailed_link(ADA).await).await;
    let _ = confirmed.expect(303);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
}

on_every_store! { concurrent_sign_ups_with_one_address_create_one_user }
