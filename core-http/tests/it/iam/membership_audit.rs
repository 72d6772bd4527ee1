//! Changes of an organization in the audit log, the change feed and the webhooks of its platform.

use std::collections::BTreeSet;

use core_domain::iam::TokenHash;
use core_domain::kernel::TextValue;
use serde_json::{Value, json};

use super::api_keys::OrganizationOwner;
use super::{ADA, EVE};
use crate::world::{Person, World, operator, reply_with_status, webhooks_of};

const BOB: &str = "bob@example.org";

/// The audit actions that the test causes: changes of members, invitations, roles, grants and the organization.
const CHANGES: [&str; 12] = [
    "grant.created",
    "invitation.accepted",
    "invitation.canceled",
    "invitation.created",
    "invitation.rejected",
    "invitation.resent",
    "member.added",
    "member.left",
    "member.removed",
    "member.role_changed",
    "organization.updated",
    "role.mapped",
];

/// Makes every kind of change to an organization. Returns the reference of an invitation, which contains its secret.
async fn change_everything(
    world: &World,
    ada: &OrganizationOwner,
    [eve, bob]: [&Person; 2],
) -> String {
    let (owner, organization) = (&ada.person, ada.org.as_str());
    let call = async |person: &Person, call: &str, mut body: Value| {
        body["organizationId"] = json!(organization);
        let done = world.call_organization(person, call, body).await;
        world.tick(1);
        done.expect(200)
    };
    let invite = json!({ "email": EVE, "role": "member", "resend": true });
    call(owner, "invite-member", invite.clone()).await;
    world.tick(300);
    call(owner, "invite-member", invite).await;
    let name = world.mailed_invitation(EVE).await;
    let accepted = call(eve, "accept-invitation", json!({ "invitationId": name })).await;
    let member = accepted.json["member"]["id"].clone();
    let role = json!({ "memberId": member, "role": "admin" });
    call(owner, "update-member-role", role).await;
    let grant = json!({
        "orgId": organization, "userId": eve.user_id, "permission": "entity:write",
        "granted": true, "grantedBy": owner.user_id,
    });
    let granted = world.iam.post(&operator(), "/api/core/grants", grant).await;
    let _ = granted.expect(201);
    let role = json!({ "orgId": organization, "role": "auditor", "permissions": ["audit:read"] });
    let mapped = world.iam.post(&operator(), "/api/core/roles", role).await;
    let _ = mapped.expect(200);
    call(owner, "update", json!({ "data": { "name": "Looms" } })).await;
    call(owner, "remove-member", json!({ "memberIdOrEmail": EVE })).await;
    let invite = json!({ "email": BOB, "role": "member" });
    call(owner, "invite-member", invite.clone()).await;
    let rejected = json!({ "invitationId": world.mailed_invitation(BOB).await });
    call(bob, "reject-invitation", rejected).await;
    world.tick(300);
    let again = call(owner, "invite-member", invite).await;
    call(
        owner,
        "cancel-invitation",
        json!({ "invitationId": again.id() }),
    )
    .await;
    world.tick(3_600);
    world.join([owner, bob], organization, "member").await;
    call(bob, "leave", json!({})).await;
    name
}

/// Returns the events in the change feed of a platform, as text.
async fn feed(world: &World, platform: &str) -> String {
    let path = format!("/api/v1/events?follow=false&lastEventId=0&platformId={platform}");
    let answer = world.registry.get(&operator(), &path).await.expect(200);
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

/// Returns those of [`CHANGES`] that a text contains.
fn named_in(text: &str) -> Vec<&'static str> {
    CHANGES
        .into_iter()
        .filter(|change| text.contains(&format!("\"{change}\"")))
        .collect()
}

#[tokio::test]
async fn organization_changes_appear_only_in_audit_feed_and_webhooks_of_the_platform() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let [eve, bob] = [world.sign_up(EVE).await, world.sign_up(BOB).await];
    let other = world.set_up_organization(&bob, "other").await.expect(201);
    let platforms = [ada.platform.as_str(), other.text("platformId")];
    for (platform, name) in platforms.iter().zip(["own", "other"]) {
        world.create_webhook(&webhooks_of(platform), name).await;
    }
    let name = change_everything(&world, &ada, [&eve, &bob]).await;
    world.seal().await;
    let sent = world.dispatch(|_| reply_with_status(204)).await;
    let mut shown = String::new();
    for ((platform, webhook), expected) in platforms
        .iter()
        .zip(["own", "other"])
        .zip([&CHANGES[..], &[]])
    {
        let path = format!("/api/v1/platforms/{platform}/audit?limit=100");
        let audit = world.registry.get(&operator(), &path).await.expect(200);
        let of_webhook = sent
            .iter()
            .filter(|request| request.url.to_string().ends_with(webhook));
        let bodies: Vec<&str> = of_webhook.map(|request| &*request.body).collect();
        for (what, text) in [
            ("audit", audit.json.to_string()),
            ("feed", feed(&world, platform).await),
            ("webhooks", bodies.concat()),
        ] {
            assert_eq!(named_in(&text), expected, "{what} of {webhook}");
            shown.push_str(&text);
        }
        // Changes of personal accounts do not appear in the audit log of a platform.
        let kinds: BTreeSet<&str> = audit.each("entityType").into_iter().collect();
        for own in ["session", "user", "account", "two_factor", "passkey"] {
            assert!(!kinds.contains(own), "{own} in {kinds:?}");
        }
    }
    let (_, secret) = name.rsplit_once('.').unwrap();
    let hash = TokenHash::of(secret);
    assert!(!shown.contains(secret) && !shown.contains(hash.as_text()));
    assert!(!shown.contains("secretHash"));
}

#[tokio::test]
async fn changes_of_an_organization_without_a_platform_belong_to_the_installation() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let [entry] = <[_; 1]>::try_from(world.audit("invitation.created").await).unwrap();
    assert_eq!(entry.platform_id, None);
}
