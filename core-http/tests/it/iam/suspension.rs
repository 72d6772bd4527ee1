//! Actions that remain possible in the organization of a suspended platform.

use http::StatusCode;
use serde_json::{Value, json};

use super::api_keys::OrganizationOwner;
use super::{ADA, BOOTSTRAP, EVE, GET_SESSION, ORG_SETUP, SESSIONS};
use crate::world::{Answer, Person, World};

const BOB: &str = "bob@example.org";

/// The organization of a suspended platform: its owner Ada, the member Eve, and the invited Bob.
struct SuspendedOrganization {
    world: World,
    ada: OrganizationOwner,
    eve: Person,
    bob: Person,
    /// The id of Eve's membership.
    member: String,
    /// The id of Bob's invitation.
    invitation: String,
    /// The id of Ada's API key.
    key: String,
}

impl SuspendedOrganization {
    async fn new() -> Self {
        let world = World::new();
        let ada = OrganizationOwner::create_in(&world).await;
        let [eve, bob] = [world.sign_up(EVE).await, world.sign_up(BOB).await];
        world.confirm(&bob).await;
        let member = world.join([&ada.person, &eve], &ada.org, "member").await;
        let invitation = world.invite(&ada.person, &ada.org, BOB, "member").await;
        let (key, _) = ada.key(&world, json!({ "name": "CI" })).await;
        world.set_platform_status(&ada.platform, "suspended").await;
        Self {
            world,
            ada,
            eve,
            bob,
            member,
            invitation,
            key,
        }
    }

    async fn post(&self, person: &Person, path: &str, body: Value) -> Answer {
        self.world.send_as_person(person, "POST", path, body).await
    }

    /// Returns every request by which the owner changes the organization or its records.
    fn changes_by_owner(&self) -> Vec<(&'static str, Value)> {
        let org = &self.ada.org;
        let of = |body: Value| {
            let mut body = body;
            body["organizationId"] = json!(org);
            body
        };
        let invite = json!({ "email": "new@example.org", "role": "member" });
        let resend = json!({ "email": BOB, "role": "member", "resend": true });
        vec![
            (
                "/api/auth/organization/update",
                of(json!({ "data": { "name": "New" } })),
            ),
            ("/api/auth/organization/delete", of(json!({}))),
            ("/api/auth/organization/invite-member", of(invite)),
            ("/api/auth/organization/invite-member", of(resend)),
            (
                "/api/auth/organization/cancel-invitation",
                json!({ "invitationId": self.invitation }),
            ),
            (
                "/api/auth/organization/update-member-role",
                of(json!({ "memberId": self.member, "role": "admin" })),
            ),
            (
                "/api/auth/organization/remove-member",
                of(json!({ "memberIdOrEmail": EVE })),
            ),
            ("/api/auth/api-key/create", of(json!({}))),
            (
                "/api/auth/api-key/update",
                json!({ "keyId": self.key, "enabled": false }),
            ),
            ("/api/auth/api-key/rotate", json!({ "keyId": self.key })),
            ("/api/auth/api-key/delete", json!({ "keyId": self.key })),
            (
                "/api/auth/organization/create",
                json!({ "name": "Another", "slug": "another", "keepCurrentActiveOrganization": true }),
            ),
        ]
    }
}

#[tokio::test]
async fn the_organization_of_a_suspended_platform_cannot_be_changed() {
    let suspended = SuspendedOrganization::new().await;
    let (world, ada, eve) = (&suspended.world, &suspended.ada.person, &suspended.eve);
    for (path, body) in suspended.changes_by_owner() {
        let refused = suspended.post(ada, path, body.clone()).await;
        let refusal = (refused.status.as_u16(), refused.code());
        assert_eq!(refusal, (451, "PLATFORM_SUSPENDED"), "{path} {body}");
    }
    let body = json!({ "name": "Another", "slug": "another" });
    let cookie = [("cookie", ada.cookie.as_str())];
    let set_up = world
        .send_unidentified("POST", ORG_SETUP, &cookie, body)
        .await;
    set_up.expect_error(451, "PLATFORM_SUSPENDED");
    let leave = json!({ "organizationId": suspended.ada.org });
    let leave = world.call_organization(eve, "leave", leave).await;
    leave.expect_error(451, "PLATFORM_SUSPENDED");
    for call in ["accept-invitation", "reject-invitation"] {
        let answer = json!({ "invitationId": suspended.invitation });
        let answer = world.call_organization(&suspended.bob, call, answer).await;
        answer.expect_error(451, "PLATFORM_SUSPENDED");
    }
    world
        .set_platform_status(&suspended.ada.platform, "active")
        .await;
    let accept = json!({ "invitationId": suspended.invitation });
    let accept = world.call_organization(&suspended.bob, "accept-invitation", accept);
    let _ = accept.await.expect(200);
}

#[tokio::test]
async fn members_of_a_suspended_organization_can_act_for_another_one() {
    let suspended = SuspendedOrganization::new().await;
    let (world, eve) = (&suspended.world, &suspended.eve);
    let list = world.send_as_person(eve, "GET", "/api/auth/organization/list", Value::Null);
    assert_eq!(list.await.expect(200).json[0]["id"], suspended.ada.org);
    for (method, path) in [
        ("GET", GET_SESSION),
        ("GET", SESSIONS),
        ("GET", "/api/auth/profile"),
        ("POST", "/api/auth/revoke-other-sessions"),
    ] {
        let own = world.send_as_person(eve, method, path, Value::Null).await;
        assert_eq!(own.status, 200, "{path}: {}", own.json);
    }
    let none = json!({ "organizationId": null });
    let _ = suspended
        .post(eve, "/api/auth/organization/set-active", none)
        .await
        .expect(200);
    let own = world.create_organization(eve, "eves").await;
    for organization in [&suspended.ada.org, &own] {
        let body = json!({ "organizationId": organization });
        let active = suspended.post(eve, "/api/auth/organization/set-active", body);
        assert_eq!(active.await.expect(200).id(), *organization);
    }
    let rename = json!({ "data": { "name": "Eve's" } });
    let _ = suspended
        .post(eve, "/api/auth/organization/update", rename)
        .await
        .expect(200);
}

#[tokio::test]
async fn operators_can_change_the_organization_of_a_suspended_platform() {
    let suspended = SuspendedOrganization::new().await;
    let world = &suspended.world;
    let grace = world.sign_up("grace@example.com").await;
    let body = json!({ "ownerId": grace.user_id });
    let _ = world
        .post_with_service_key(BOOTSTRAP, &body)
        .await
        .expect(201);
    for (path, body) in suspended.changes_by_owner() {
        // Other people's keys are not found, even for operators.
        if path.starts_with("/api/auth/api-key") {
            continue;
        }
        let answer = suspended.post(&grace, path, body.clone()).await;
        // Some changes conflict with others of the list.
        let is_processed = answer.status.is_success() || answer.status == StatusCode::CONFLICT;
        assert!(is_processed, "{path} {body}: {}", answer.status);
    }
    let members = format!(
        "/api/auth/organization/list-members?organizationId={}",
        suspended.ada.org
    );
    let members = world
        .send_as_person(&grace, "GET", &members, Value::Null)
        .await;
    assert_eq!(members.expect(200).json["members"][0]["user"]["email"], ADA);
}
