//! The organization plugin, with the routes and responses of better-auth.

use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION};
use crate::world::{Answer, Person, World, on_every_store, operator};

const BOB: &str = "bob@example.org";

/// Seconds until an organization may invite the same address again.
const PAUSE: u64 = 300;

async fn read(world: &World, person: &Person, call: &str) -> Answer {
    let path = format!("/api/auth/organization/{call}");
    world.iam.get(&person.caller(), &path).await
}

#[tokio::test]
async fn organizations_are_created_activated_updated_read_and_deleted() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let body = json!({ "name": "Acme", "slug": "acme", "metadata": { "a": 1 } });
    let created = world
        .call_organization(&ada, "create", body)
        .await
        .expect(200);
    let id = created.id();
    assert_eq!(created.json["metadata"], json!({ "a": 1 }));
    assert_eq!(created.json["members"][0]["role"], "owner");
    let session = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["session"]["activeOrganizationId"], id);
    let taken = world
        .call_organization(&ada, "create", json!({ "name": "B", "slug": "acme" }))
        .await;
    taken.expect_error(400, "ORGANIZATION_ALREADY_EXISTS");
    let taken = world
        .call_organization(&ada, "check-slug", json!({ "slug": "acme" }))
        .await;
    taken.expect_error(400, "ORGANIZATION_SLUG_ALREADY_TAKEN");
    let free = world
        .call_organization(&ada, "check-slug", json!({ "slug": "free" }))
        .await
        .expect(200);
    assert_eq!(free.json, json!({ "status": true }));
    let list = read(&world, &ada, "list").await.expect(200);
    assert_eq!(list.json[0]["metadata"], "{\"a\":1}");
    let by_post = world
        .call_organization(&ada, "list", Value::Null)
        .await
        .expect(200);
    assert_eq!(by_post.json, list.json);
    let change =
        json!({ "data": { "name": "Acme 2", "logo": "https://x.test/l.png", "metadata": null } });
    let changed = world
        .call_organization(&ada, "update", change)
        .await
        .expect(200);
    assert_eq!(
        (&changed.json["name"], &changed.json["metadata"]),
        (&json!("Acme 2"), &Value::Null)
    );
    let none = world
        .call_organization(&ada, "set-active", json!({ "organizationId": null }))
        .await;
    assert_eq!(none.expect(200).json, Value::Null);
    let full = read(&world, &ada, "get-full-organization")
        .await
        .expect(200);
    assert_eq!(full.json, Value::Null);
    let by_slug = world
        .call_organization(&ada, "set-active", json!({ "organizationSlug": "acme" }))
        .await;
    assert_eq!(by_slug.expect(200).id(), id);
    let full = read(&world, &ada, "get-full-organization")
        .await
        .expect(200);
    assert_eq!(full.json["members"][0]["user"]["email"], ADA);
    let gone = world
        .call_organization(&ada, "delete", json!({ "organizationId": id }))
        .await
        .expect(200);
    assert_eq!(gone.id(), id);
    let again = world
        .call_organization(&ada, "delete", json!({ "organizationId": id }))
        .await;
    again.expect_error(400, "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION");
    let session = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["session"]["activeOrganizationId"], Value::Null);
}

#[tokio::test]
async fn organizations_with_a_platform_are_not_deleted_and_other_peoples_look_missing() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let id = made.text("orgId");
    let refused = world
        .call_organization(&ada, "delete", json!({ "organizationId": id }))
        .await;
    refused.expect_error(409, "CONFLICT");
    for (call, body, status, code) in [
        (
            "set-active",
            json!({ "organizationId": id }),
            403,
            "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
        ),
        (
            "update",
            json!({ "organizationId": id, "data": {} }),
            400,
            "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
        ),
        (
            "invite-member",
            json!({ "organizationId": id, "email": BOB, "role": "member" }),
            400,
            "MEMBER_NOT_FOUND",
        ),
        (
            "leave",
            json!({ "organizationId": id }),
            400,
            "MEMBER_NOT_FOUND",
        ),
    ] {
        let foreign = world.call_organization(&eve, call, body.clone()).await;
        let foreign = foreign.expect_error(status, code);
        let missing = body.to_string().replace(id, "unknown");
        let missing = world
            .call_organization(&eve, call, serde_json::from_str(&missing).unwrap())
            .await;
        assert_eq!(
            missing.expect_error(status, code).json["message"],
            foreign.json["message"]
        );
    }
    let none = world
        .call_organization(
            &eve,
            "invite-member",
            json!({ "email": BOB, "role": "member" }),
        )
        .await;
    none.expect_error(400, "ORGANIZATION_NOT_FOUND");
    let none = read(&world, &eve, "list-members").await;
    none.expect_error(400, "NO_ACTIVE_ORGANIZATION");
    let foreign = read(&world, &eve, &format!("list-members?organizationId={id}")).await;
    foreign.expect_error(403, "YOU_ARE_NOT_A_MEMBER_OF_THIS_ORGANIZATION");
}

#[tokio::test]
async fn only_the_recipient_answers_an_invitation_and_only_once() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let bob = world.sign_up(BOB).await;
    let organization = world.create_organization(&ada, "acme").await;
    let id = world
        .invite(&ada, &organization, "EVE@example.org", "member")
        .await;
    let link = world.mailed_link(EVE).await;
    let expected = format!("http://iam.test/accept-invitation?id={id}.");
    assert!(link.starts_with(&expected), "{link}");
    let twice = json!({ "email": EVE, "role": "member" });
    let twice = world.call_organization(&ada, "invite-member", twice).await;
    twice.expect_error(400, "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION");
    let again = json!({ "email": EVE, "role": "member", "resend": true });
    world.tick(PAUSE);
    let again = world
        .call_organization(&ada, "invite-member", again)
        .await
        .expect(200);
    assert_eq!(again.id(), id);
    let of = json!({ "invitationId": id });
    let refused = world
        .call_organization(&bob, "accept-invitation", of.clone())
        .await;
    refused.expect_error(403, "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION");
    let refused = read(&world, &bob, &format!("get-invitation?id={id}")).await;
    refused.expect_error(403, "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION");
    let refused = read(&world, &eve, "list-user-invitations").await;
    refused.expect_error(403, "EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION");
    world.confirm(&eve).await;
    let shown = read(&world, &eve, &format!("get-invitation?id={id}"))
        .await
        .expect(200);
    let told = (&shown.json["organizationSlug"], &shown.json["inviterEmail"]);
    assert_eq!(told, (&json!("acme"), &json!(ADA)));
    let listed = read(&world, &eve, "list-user-invitations")
        .await
        .expect(200);
    assert_eq!(listed.json[0]["organizationName"], "acme");
    let accepted = world
        .call_organization(&eve, "accept-invitation", of.clone())
        .await
        .expect(200);
    assert_eq!(accepted.json["invitation"]["status"], "accepted");
    assert_eq!(accepted.json["member"]["role"], "member");
    let session = world
        .send_with_bearer(&eve.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(
        session.json["session"]["activeOrganizationId"],
        organization
    );
    for call in ["accept-invitation", "reject-invitation"] {
        let refused = world.call_organization(&eve, call, of.clone()).await;
        refused.expect_error(400, "INVITATION_NOT_FOUND");
    }
    let member = json!({ "email": EVE, "role": "admin", "organizationId": organization });
    let member = world.call_organization(&ada, "invite-member", member).await;
    member.expect_error(400, "USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION");
}

#[tokio::test]
async fn rejected_canceled_and_expired_invitations_can_be_replaced() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    world.confirm(&eve).await;
    let organization = world.create_organization(&ada, "acme").await;
    let id = world.invite(&ada, &organization, EVE, "member").await;
    let rejected = world
        .call_organization(&eve, "reject-invitation", json!({ "invitationId": id }))
        .await;
    let rejected = rejected.expect(200);
    assert_eq!(
        (
            &rejected.json["invitation"]["status"],
            &rejected.json["member"]
        ),
        (&json!("rejected"), &Value::Null)
    );
    world.tick(PAUSE);
    let id = world.invite(&ada, &organization, EVE, "member").await;
    let of = json!({ "invitationId": id });
    let bob = world.sign_up(BOB).await;
    world.join([&ada, &bob], &organization, "member").await;
    for (who, status, code) in [
        // A caller who is not a member cannot see the invitation.
        (&eve, 400, "INVITATION_NOT_FOUND"),
        (&bob, 403, "YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION"),
    ] {
        let refused = world
            .call_organization(who, "cancel-invitation", of.clone())
            .await;
        refused.expect_error(status, code);
    }
    for _ in 0..2 {
        let canceled = world
            .call_organization(&ada, "cancel-invitation", of.clone())
            .await
            .expect(200);
        assert_eq!(canceled.json["status"], "canceled");
    }
    world.tick(PAUSE);
    let id = world.invite(&ada, &organization, EVE, "member").await;
    // A second has passed since the invitation was sent.
    world.tick(48 * 3_600 - 1);
    let late = world
        .call_organization(&eve, "accept-invitation", json!({ "invitationId": id }))
        .await;
    late.expect_error(400, "INVITATION_NOT_FOUND");
    world.invite(&ada, &organization, EVE, "member").await;
    let listed = read(&world, &ada, "list-invitations").await.expect(200);
    let statuses: Vec<&str> = listed
        .json
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["status"].as_str().unwrap())
        .collect();
    assert_eq!(
        statuses,
        ["pending", "expired", "accepted", "canceled", "rejected"]
    );
}

#[tokio::test]
async fn callers_assign_only_known_roles_within_their_own_permissions() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let bob = world.sign_up(BOB).await;
    let organization = world.create_organization(&ada, "acme").await;
    let eves = world.join([&ada, &eve], &organization, "admin").await;
    let bobs = world.join([&ada, &bob], &organization, "member").await;
    let unknown = json!({ "email": "x@example.org", "role": "boss" });
    let unknown = world
        .call_organization(&ada, "invite-member", unknown)
        .await;
    assert_eq!(
        unknown.expect_error(400, "ROLE_NOT_FOUND").json["message"],
        "ROLE_NOT_FOUND: boss"
    );
    let owner = json!({ "email": "x@example.org", "role": "owner" });
    let owner = world.call_organization(&eve, "invite-member", owner).await;
    owner.expect_error(403, "YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE");
    let member = json!({ "email": "x@example.org", "role": "member" });
    let member = world.call_organization(&bob, "invite-member", member).await;
    member.expect_error(
        403,
        "YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION",
    );
    let update = |member: &str, role: Value| json!({ "memberId": member, "role": role });
    for (who, member, role) in [(&eve, &eves, "owner"), (&bob, &bobs, "admin")] {
        let refused = world
            .call_organization(who, "update-member-role", update(member, json!(role)))
            .await;
        refused.expect_error(403, "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER");
    }
    let several = update(&bobs, json!(["admin", "member"]));
    let several = world
        .call_organization(&ada, "update-member-role", several)
        .await
        .expect(200);
    assert_eq!(several.json["role"], "admin,member");
    let may =
        json!({ "permissions": { "member": ["create", "update"], "invitation": ["cancel"] } });
    for (who, success) in [(&ada, true), (&bob, true)] {
        let asked = world
            .call_organization(who, "has-permission", may.clone())
            .await
            .expect(200);
        assert_eq!(asked.json, json!({ "error": null, "success": success }));
    }
    let end = json!({ "permissions": { "organization": ["delete"] } });
    let asked = world
        .call_organization(&bob, "has-permission", end)
        .await
        .expect(200);
    assert_eq!(asked.json["success"], false);
    let role = read(&world, &bob, "get-active-member-role")
        .await
        .expect(200);
    assert_eq!(role.json["role"], "admin,member");
}

#[tokio::test]
async fn members_leave_and_are_removed_but_the_last_owner_stays() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let organization = world.create_organization(&ada, "acme").await;
    let eves = world.join([&ada, &eve], &organization, "member").await;
    let of = json!({ "organizationId": organization });
    let refused = world.call_organization(&ada, "leave", of.clone()).await;
    refused.expect_error(400, "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER");
    let members = read(&world, &ada, "list-members").await.expect(200);
    assert_eq!(members.json["total"], 2);
    let adas = members.json["members"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let demote = json!({ "memberId": adas, "role": "member" });
    let refused = world
        .call_organization(&ada, "update-member-role", demote)
        .await;
    refused.expect_error(400, "YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER");
    let refused = world
        .call_organization(&eve, "remove-member", json!({ "memberIdOrEmail": ADA }))
        .await;
    refused.expect_error(400, "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER");
    let promote = json!({ "memberId": eves, "role": "owner" });
    let _ = world
        .call_organization(&ada, "update-member-role", promote)
        .await
        .expect(200);
    let removed = world
        .call_organization(&eve, "remove-member", json!({ "memberIdOrEmail": ADA }))
        .await;
    assert_eq!(removed.expect(200).json["member"]["user"]["email"], ADA);
    let session = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["session"]["activeOrganizationId"], Value::Null);
    let gone = world
        .call_organization(&eve, "remove-member", json!({ "memberIdOrEmail": adas }))
        .await;
    gone.expect_error(400, "MEMBER_NOT_FOUND");
}

#[tokio::test]
async fn the_suites_invitation_routes_use_epoch_seconds_own_codes_and_permissions() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let organization = world.create_organization(&ada, "acme").await;
    let path = format!("/api/core/organizations/{organization}/invitations");
    let made = world
        .iam
        .post(&ada.caller(), &path, json!({ "email": EVE }))
        .await
        .expect(201);
    assert_eq!(
        (&made.json["role"], &made.json["status"]),
        (&json!("member"), &json!("pending"))
    );
    let lifetime =
        made.json["expiresAt"].as_i64().unwrap() - made.json["createdAt"].as_i64().unwrap();
    assert_eq!(lifetime, 48 * 3_600);
    let twice = world
        .iam
        .post(&ada.caller(), &path, json!({ "email": EVE }))
        .await;
    twice.expect_error(409, "CONFLICT");
    let member = world
        .iam
        .post(&ada.caller(), &path, json!({ "email": ADA }))
        .await;
    member.expect_error(409, "CONFLICT");
    world
        .iam
        .get(&eve.caller(), &path)
        .await
        .expect_error(404, "NOT_FOUND");
    let one = format!("{path}/{}", made.id());
    let gone = world.iam.delete(&ada.caller(), &one).await.expect(200);
    assert_eq!(gone.json, json!({ "id": made.id() }));
    world
        .iam
        .delete(&ada.caller(), &one)
        .await
        .expect_error(404, "NOT_FOUND");
    let owners = world
        .iam
        .post(&operator(), &path, json!({ "email": BOB }))
        .await
        .expect(201);
    assert_eq!(owners.json["inviterId"], ada.user_id.as_str());
}

/// Eight concurrent accepts of one invitation create one member.
async fn concurrent_accepts_of_one_invitation_create_one_member(world: World) {
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let organization = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let name = world.mailed_invitation(EVE).await;
    let accepts = (0..8).map(|_| {
        world.call_organization(&eve, "accept-invitation", json!({ "invitationId": name }))
    });
    let answers = futures_util::future::join_all(accepts).await;
    let done = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(
        done,
        1,
        "{:?}",
        answers
            .iter()
            .map(|a| a.json.to_string())
            .collect::<Vec<_>>()
    );
    let members = read(&world, &ada, "list-members").await.expect(200);
    assert_eq!(members.json["total"], 2);
}

/// Two owners leave, or demote themselves, at the same time: one of them stays an owner.
async fn one_owner_stays_when_all_owners_leave_at_once(world: World) {
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    for (round, call) in ["leave", "update-member-role"].into_iter().enumerate() {
        let organization = world
            .create_organization(&ada, &format!("acme-{round}"))
            .await;
        let eves = world.join([&ada, &eve], &organization, "owner").await;
        let path = format!("list-members?organizationId={organization}");
        let members = read(&world, &ada, &path).await.expect(200);
        let adas = members.json["members"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let body = |member: &str| match call {
            "leave" => json!({ "organizationId": organization }),
            _ => json!({ "organizationId": organization, "memberId": member, "role": "member" }),
        };
        let both = [
            world.call_organization(&ada, call, body(&adas)),
            world.call_organization(&eve, call, body(&eves)),
        ];
        let answers = futures_util::future::join_all(both).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(done, 1, "{call}");
    }
}

on_every_store! {
    concurrent_accepts_of_one_invitation_create_one_member,
    one_owner_stays_when_all_owners_leave_at_once,
}

#[tokio::test]
async fn metadata_has_at_most_16_kib() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let metadata = |bytes: usize| json!({ "a": "x".repeat(bytes - r#"{"a":""}"#.len()) });
    let body = |bytes| json!({ "name": "Acme", "slug": "acme", "metadata": metadata(bytes) });
    let refused = world
        .call_organization(&ada, "create", body(16 * 1024 + 1))
        .await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.issues(), ["metadata: too_long"]);
    let _ = world
        .call_organization(&ada, "create", body(16 * 1024))
        .await
        .expect(200);
    let change = json!({ "data": { "metadata": metadata(16 * 1024 + 1) } });
    let refused = world.call_organization(&ada, "update", change).await;
    assert_eq!(refused.issues(), ["data.metadata: too_long"]);
    let change = json!({ "data": { "metadata": { "a": "new" } } });
    let changed = world
        .call_organization(&ada, "update", change)
        .await
        .expect(200);
    assert_eq!(changed.json["metadata"], json!({ "a": "new" }));
}
