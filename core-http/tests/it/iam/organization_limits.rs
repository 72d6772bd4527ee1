//! Limits of organizations and keys per owner, and of members, invitations and roles per organization.

use core_domain::kernel::{Caller, Limits};
use serde_json::{Value, json};

use super::{ADA, EVE, ORG_SETUP};
use crate::world::{
    Answer, Person, World, assert_limit, assert_room_at_once, on_every_store, operator, vouched_for,
};

const BOB: &str = "bob@example.org";

fn with_limits(change: impl FnOnce(&mut Limits)) -> World {
    let mut limits = Limits::default();
    change(&mut limits);
    World::new().with_limits(limits)
}

async fn create(world: &World, person: &Person, slug: &str) -> Answer {
    let body = json!({ "name": slug, "slug": slug });
    world.call_organization(person, "create", body).await
}

async fn onboard(world: &World, caller: &Caller, slug: &str) -> Answer {
    let body = json!({ "platformName": slug, "slug": slug });
    world
        .registry
        .post(caller, "/api/v1/onboarding/start", body)
        .await
}

async fn accept(world: &World, person: &Person) -> Answer {
    let body = json!({ "invitationId": world.mailed_invitation(&person.email).await });
    world
        .call_organization(person, "accept-invitation", body)
        .await
}

async fn concurrent_requests_respect_the_limit_of_organizations_per_person(world: World) {
    let ada = world.sign_up(ADA).await;
    let create = |number| {
        let (api, caller) = (world.iam.clone(), ada.caller());
        let body = json!({ "name": "Looms", "slug": format!("looms-{number}") });
        async move {
            let path = "/api/auth/organization/create";
            api.post(&caller, path, body).await
        }
    };
    assert_room_at_once((20, 20), "organizations", create).await;
}

async fn concurrent_requests_respect_the_limit_of_invitations_per_organization(world: World) {
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "acme").await;
    let invite = |number| {
        // An organization may mail 100 invitations a day, so the second half follows a day later.
        if number == 50 {
            world.tick(24 * 3_600);
        }
        let (api, caller) = (world.iam.clone(), ada.caller());
        let email = format!("p{number}@example.org");
        let body = json!({ "email": email, "role": "member", "organizationId": organization });
        async move {
            let path = "/api/auth/organization/invite-member";
            api.post(&caller, path, body).await
        }
    };
    assert_room_at_once((100, 100), "invitations", invite).await;
}

async fn concurrent_requests_respect_the_limit_of_api_keys_per_owner(world: World) {
    let limits = Limits {
        api_keys_per_owner: 3,
        ..Limits::default()
    };
    let world = world.with_limits(limits);
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    for organization_owned in [false, true] {
        let make = |_| {
            let (api, caller) = (world.iam.clone(), ada.caller());
            let organization = made.text("orgId");
            let body = json!({
                "organizationId": organization, "organizationOwned": organization_owned,
            });
            async move { api.post(&caller, "/api/auth/api-key/create", body).await }
        };
        assert_room_at_once((3, 3), "API keys", make).await;
    }
}

on_every_store! {
    concurrent_requests_respect_the_limit_of_organizations_per_person,
    concurrent_requests_respect_the_limit_of_invitations_per_organization,
    concurrent_requests_respect_the_limit_of_api_keys_per_owner,
}

#[tokio::test]
async fn every_route_that_creates_an_organization_is_limited_except_for_operators() {
    let world = with_limits(|limits| limits.organizations_per_owner = 1);
    let ada = world.sign_up(ADA).await;
    world.create_organization(&ada, "acme").await;
    assert_limit(&create(&world, &ada, "b").await, 1, "create");
    let body = json!({ "name": "Looms", "slug": "c" });
    let cookie = [("cookie", &*ada.cookie), ("origin", crate::world::ORIGIN)];
    let set_up = world
        .send_unidentified("POST", ORG_SETUP, &cookie, body)
        .await;
    assert_limit(&set_up, 1, ORG_SETUP);
    let started = onboard(&world, &ada.caller(), "d").await;
    assert_limit(&started, 1, "onboarding");
    let vouched = onboard(&world, &vouched_for(ada.caller()), "e").await;
    assert_limit(&vouched, 1, "onboarding for a person");
    let body = json!({ "name": "Looms", "slug": "looms", "ownerId": ada.user_id });
    let path = "/api/core/organizations";
    let created = world.iam.post(&operator(), path, body).await;
    let _ = created.expect(201);
}

#[tokio::test]
async fn unfinished_onboardings_count_as_organizations() {
    let world = with_limits(|limits| limits.organizations_per_owner = 2);
    let ada = world.sign_up(ADA).await;
    for slug in ["a", "b"] {
        let _ = onboard(&world, &ada.caller(), slug).await.expect(202);
    }
    assert_limit(&onboard(&world, &ada.caller(), "c").await, 2, "onboarding");
}

#[tokio::test]
async fn organizations_and_unfinished_onboardings_share_one_limit_on_every_route() {
    let world = with_limits(|limits| limits.organizations_per_owner = 2);
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let looms = world.create_organization(&eve, "looms").await;
    world.invite(&eve, &looms, ADA, "owner").await;
    let _ = onboard(&world, &ada.caller(), "a").await.expect(202);
    world.create_organization(&ada, "b").await;
    assert_limit(&create(&world, &ada, "c").await, 2, "create");
    assert_limit(&world.set_up_organization(&ada, "d").await, 2, ORG_SETUP);
    let started = onboard(&world, &ada.caller(), "e").await;
    assert_limit(&started, 2, "onboarding");
    assert_limit(&accept(&world, &ada).await, 2, "as an owner");
}

#[tokio::test]
async fn becoming_an_owner_of_an_existing_organization_is_limited() {
    let world = with_limits(|limits| limits.organizations_per_owner = 1);
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let acme = world.create_organization(&ada, "acme").await;
    let looms = world.create_organization(&eve, "looms").await;
    world.invite(&ada, &acme, EVE, "owner").await;
    assert_limit(&accept(&world, &eve).await, 1, "as an owner");
    world.tick(300);
    let body = json!({ "organizationId": looms });
    let _ = world
        .call_organization(&eve, "delete", body)
        .await
        .expect(200);
    let _ = accept(&world, &eve).await.expect(200);
    let bob = world.sign_up(BOB).await;
    let looms = world.create_organization(&bob, "looms").await;
    let member = world.join([&bob, &ada], &looms, "member").await;
    let body = json!({ "memberId": member, "role": "owner", "organizationId": looms });
    let promoted = world
        .call_organization(&bob, "update-member-role", body)
        .await;
    assert_limit(&promoted, 1, "update-member-role");
}

#[tokio::test]
async fn a_full_organization_accepts_no_member_by_route_or_page() {
    let world = with_limits(|limits| limits.members_per_organization = 1);
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let acme = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &acme, EVE, "member").await;
    assert_limit(&accept(&world, &eve).await, 1, "accept-invitation");
    let name = world.mailed_invitation(EVE).await;
    let (body, form) = (format!("action=accept&id={name}"), super::FORM_CONTENT_TYPE);
    let headers = [
        ("cookie", &*eve.cookie),
        ("origin", crate::world::ORIGIN),
        ("content-type", form),
    ];
    let page = world.post_with("/accept-invitation", &headers, &body).await;
    assert_eq!(page.status, 409, "{}", page.json);
}

#[tokio::test]
async fn both_invitation_routes_limit_the_pending_invitations() {
    let world = with_limits(|limits| limits.invitations_per_organization = 1);
    let ada = world.sign_up(ADA).await;
    let acme = world.create_organization(&ada, "acme").await;
    let id = world.invite(&ada, &acme, EVE, "member").await;
    let own = format!("/api/core/organizations/{acme}/invitations");
    let invite = async |body: Value| {
        let invited = world.call_organization(&ada, "invite-member", body).await;
        let created = world
            .iam
            .post(&ada.caller(), &own, json!({ "email": BOB }))
            .await;
        [invited, created]
    };
    let body = json!({ "email": BOB, "role": "member", "organizationId": acme });
    for answer in invite(body.clone()).await {
        assert_limit(&answer, 1, "invitations");
    }
    let cancel = json!({ "invitationId": id });
    let canceled = world
        .call_organization(&ada, "cancel-invitation", cancel)
        .await;
    let _ = canceled.expect(200);
    let [invited, _] = invite(body).await;
    let _ = invited.expect(200);
}

#[tokio::test]
async fn role_mappings_per_organization_are_limited() {
    let world = with_limits(|limits| limits.role_mappings_per_organization = 1);
    let ada = world.sign_up(ADA).await;
    let acme = world.create_organization(&ada, "acme").await;
    let map = async |role: &str| {
        let body = json!({ "orgId": acme, "role": role, "permissions": ["job:read"] });
        world.iam.post(&ada.caller(), "/api/core/roles", body).await
    };
    let _ = map("auditor").await.expect(200);
    assert_limit(&map("reader").await, 1, "roles");
    let _ = map("auditor").await.expect(200);
}
