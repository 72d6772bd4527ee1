//! Limits of invitation mails, and the names that may appear in mails.

use std::sync::Arc;

use core_domain::kernel::Limits;
use serde_json::{Value, json};

use super::{ADA, DAY, EVE, ORG_SETUP, SIGN_UP};
use crate::world::{Answer, PASSWORD, Person, World, operator};

const BOB: &str = "bob@example.org";
const HOUR: u64 = 3_600;

/// Invites an address as a member, or resends its invitation.
async fn invite(world: &World, person: &Person, organization: &str, email: &str) -> Answer {
    let body = json!({
        "email": email, "role": "member", "organizationId": organization, "resend": true,
    });
    world.call_organization(person, "invite-member", body).await
}

async fn mail_count(world: &World, email: &str) -> usize {
    let mails = world.mails().await.into_iter();
    mails.filter(|mail| mail.to.as_str() == email).count()
}

async fn pending(world: &World, person: &Person, organization: &str) -> usize {
    let path = format!("/api/auth/organization/list-invitations?organizationId={organization}");
    let listed = world.iam.get(&person.caller(), &path).await.expect(200);
    listed.json.as_array().unwrap().len()
}

/// Returns the limit and the seconds to wait from a refusal.
#[track_caller]
fn limit_of(answer: Answer) -> (u64, u64) {
    let code = answer.code().to_owned();
    assert_eq!((answer.status.as_u16(), &*code), (409, "LIMIT_REACHED"));
    let details = answer
        .json
        .pointer("/details")
        .or(answer.json.pointer("/error/details"));
    let number = |name: &str| details.unwrap()[name].as_u64().unwrap();
    (number("limit"), number("retryAfter"))
}

#[tokio::test]
async fn invitation_mails_to_an_address_are_limited_across_organizations() {
    let world = World::new();
    let people = [world.sign_up(ADA).await, world.sign_up(BOB).await];
    let mut organizations = Vec::new();
    for number in 0..11 {
        let person = &people[number % 2];
        organizations.push((
            person,
            world
                .create_organization(person, &format!("acme-{number}"))
                .await,
        ));
    }
    let mut waits = Vec::new();
    for (sent, (person, organization)) in organizations.iter().enumerate() {
        let mut answer = invite(&world, person, organization, EVE).await;
        if answer.status != 200 {
            assert_eq!(mail_count(&world, EVE).await, sent);
            assert_eq!(pending(&world, person, organization).await, 0);
            let (limit, wait) = limit_of(answer);
            waits.push((sent, limit));
            world.tick(wait - 1);
            let early = invite(&world, person, organization, EVE).await;
            assert_eq!(limit_of(early), (limit, 1));
            world.tick(1);
            answer = invite(&world, person, organization, EVE).await;
        }
        let _ = answer.expect(200);
    }
    assert_eq!(waits, [(3, 3), (6, 3), (9, 3), (10, 10)]);
    assert_eq!(mail_count(&world, EVE).await, 11);
}

#[tokio::test]
async fn an_invitation_is_mailed_again_only_after_a_pause() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "acme").await;
    let id = world.invite(&ada, &organization, EVE, "member").await;
    let name = world.mailed_invitation(EVE).await;
    let refused = invite(&world, &ada, &organization, EVE).await;
    assert_eq!(limit_of(refused), (1, 299));
    // The same pause applies after a cancellation, on both invitation routes.
    let body = json!({ "invitationId": id });
    let canceled = world
        .call_organization(&ada, "cancel-invitation", body)
        .await;
    let _ = canceled.expect(200);
    let refused = invite(&world, &ada, &organization, EVE).await;
    assert_eq!(limit_of(refused), (1, 299));
    let own = format!("/api/core/organizations/{organization}/invitations");
    let refused = world
        .iam
        .post(&ada.caller(), &own, json!({ "email": EVE }))
        .await;
    assert_eq!(limit_of(refused), (1, 299));
    assert_eq!(world.mailed_invitation(EVE).await, name);
    world.tick(299);
    let _ = invite(&world, &ada, &organization, EVE).await.expect(200);
    assert_eq!(mail_count(&world, EVE).await, 2);
}

#[tokio::test]
async fn a_refused_resend_leaves_the_mailed_secret_valid() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let organization = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let name = world.mailed_invitation(EVE).await;
    limit_of(invite(&world, &ada, &organization, EVE).await);
    let body = json!({ "invitationId": name });
    let accepted = world
        .call_organization(&eve, "accept-invitation", body)
        .await;
    let _ = accepted.expect(200);
}

#[tokio::test]
async fn a_request_refused_by_a_limit_succeeds_later_under_the_same_idempotency_key() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let body = json!({
        "email": EVE, "role": "member", "organizationId": organization, "resend": true,
    });
    let resend = async || {
        let path = "/api/auth/organization/invite-member";
        let key = [("idempotency-key", "resend-1")];
        let caller = ada.caller();
        world
            .iam
            .send(&caller, "POST", path, &key, body.clone())
            .await
    };
    let (_, wait) = limit_of(resend().await);
    world.tick(wait);
    let _ = resend().await.expect(200);
}

#[tokio::test]
async fn invitation_mails_of_an_organization_are_limited_per_day() {
    let world = World::with(|app| {
        let mut limits = Limits::default();
        limits.mail.invitations_per_organization_and_day = 2;
        app.options.limits = Arc::new(limits);
    });
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "acme").await;
    for email in ["a@example.org", "b@example.org"] {
        let _ = invite(&world, &ada, &organization, email).await.expect(200);
        world.tick(HOUR);
    }
    let refused = invite(&world, &ada, &organization, EVE).await;
    assert_eq!(limit_of(refused), (2, DAY - 2 * HOUR));
    let other = world.create_organization(&ada, "looms").await;
    let _ = invite(&world, &ada, &other, EVE).await.expect(200);
}

/// Returns every route that stores a name: its method, its path, and a body with the name.
fn rows_with_names(
    name: &str,
    ada: &Person,
    slug: &str,
) -> Vec<(&'static str, &'static str, Value)> {
    let named = json!({ "name": name, "slug": slug });
    vec![
        (
            "POST",
            SIGN_UP,
            json!({ "name": name, "email": EVE, "password": PASSWORD }),
        ),
        (
            "POST",
            "/api/auth/sign-in/magic-link",
            json!({ "name": name, "email": EVE }),
        ),
        ("POST", "/api/auth/update-user", json!({ "name": name })),
        ("PATCH", "/api/auth/profile", json!({ "name": name })),
        ("POST", "/api/auth/organization/create", named.clone()),
        (
            "POST",
            "/api/auth/organization/update",
            json!({ "data": { "name": name } }),
        ),
        ("POST", ORG_SETUP, named),
        (
            "POST",
            "/api/core/organizations",
            json!({ "name": name, "slug": slug, "ownerId": ada.user_id }),
        ),
        (
            "POST",
            "/api/core/bootstrap",
            json!({ "name": name, "ownerId": ada.user_id }),
        ),
        (
            "POST",
            "/api/v1/onboarding/start",
            json!({ "platformName": name, "slug": slug }),
        ),
    ]
}

/// Sends a name to every route that stores one. Returns the paths and answers.
async fn store_name(world: &World, name: &str) -> Vec<(&'static str, Answer)> {
    let ada = world.sign_up(ADA).await;
    world.create_organization(&ada, "first").await;
    let mut answers = Vec::new();
    let rows = rows_with_names(name, &ada, "acme").into_iter();
    for (number, (method, path, mut body)) in rows.enumerate() {
        if body.get("slug").is_some() {
            body["slug"] = json!(format!("acme-{number}"));
        }
        let cookie = [("cookie", &*ada.cookie), ("origin", crate::world::ORIGIN)];
        let answer = match path {
            "/api/core/organizations" | "/api/core/bootstrap" => {
                world.iam.post(&operator(), path, body).await
            }
            "/api/v1/onboarding/start" => world.registry.post(&ada.caller(), path, body).await,
            _ => world.send_unidentified(method, path, &cookie, body).await,
        };
        answers.push((path, answer));
    }
    answers
}

#[tokio::test]
async fn no_route_stores_a_name_with_a_web_address_or_a_line_break() {
    for name in [
        "Win at evil.example/now",
        "https://evil.example",
        "Ada\nLovelace",
    ] {
        let world = World::new();
        for (path, answer) in store_name(&world, name).await {
            assert_eq!(answer.status, 400, "{path} {name:?}: {}", answer.json);
        }
    }
}

#[tokio::test]
async fn every_route_stores_a_name_that_ends_like_a_domain() {
    let world = World::new();
    for (path, answer) in store_name(&world, "Booking.com").await {
        assert!(
            answer.status.is_success(),
            "{path}: {} {}",
            answer.status,
            answer.json
        );
    }
}
