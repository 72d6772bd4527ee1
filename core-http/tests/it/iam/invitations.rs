//! Access to invitations: reading, answering and listing them.

use core_domain::access::RecordKey;
use core_domain::iam::{InvitationRef, TokenHash};
use core_domain::kernel::TextValue;
use core_domain::port::{Mode, Within};
use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION, without_request_id};
use crate::world::{Answer, Person, World};

const BOB: &str = "bob@example.org";

/// The error code for a recipient who has not proved that the address is theirs.
const VERIFICATION_REQUIRED: &str =
    "EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION";

/// Reads, rejects and accepts an invitation, in this order. Returns the answers.
async fn all_answers(world: &World, person: &Person, name: &str) -> [Answer; 3] {
    let body = json!({ "invitationId": name });
    let path = format!("/api/auth/organization/get-invitation?id={name}");
    [
        world.iam.get(&person.caller(), &path).await,
        world
            .call_organization(person, "reject-invitation", body.clone())
            .await,
        world
            .call_organization(person, "accept-invitation", body)
            .await,
    ]
}

async fn is_confirmed(world: &World, person: &Person) -> bool {
    let session = world
        .send_with_bearer(&person.token, "GET", GET_SESSION)
        .await;
    session.expect(200).json["user"]["emailVerified"] == true
}

/// Creates an owner, and a person who has an invitation and an unconfirmed address. Returns the world, both people and
/// the id of the organization.
async fn invite_unconfirmed_person(role: &str) -> (World, Person, Person, String) {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let organization = world.create_organization(&ada, "acme").await;
    world.invite(&ada, &organization, EVE, role).await;
    (world, ada, eve, organization)
}

#[tokio::test]
async fn an_unconfirmed_recipient_cannot_answer_by_the_id_alone() {
    let (world, ada, eve, organization) = invite_unconfirmed_person("owner").await;
    let name = InvitationRef::parse(&world.mailed_invitation(EVE).await).unwrap();
    let id = name.id().as_str();
    let wrong = format!("{id}.{}", "x".repeat(43));
    let [by_id, by_wrong] = [id, &wrong].map(|name| all_answers(&world, &eve, name));
    for (by_id, by_wrong) in by_id.await.into_iter().zip(by_wrong.await) {
        by_id.clone().expect_error(403, VERIFICATION_REQUIRED);
        assert_eq!(without_request_id(by_id), without_request_id(by_wrong));
    }
    assert!(!is_confirmed(&world, &eve).await);
    let path = format!("/api/auth/organization/list-members?organizationId={organization}");
    let members = world.iam.get(&ada.caller(), &path).await.expect(200);
    assert_eq!(members.json["total"], 1);
}

#[tokio::test]
async fn the_mailed_secret_works_once_and_confirms_the_address() {
    for (call, status) in [
        ("accept-invitation", "accepted"),
        ("reject-invitation", "rejected"),
    ] {
        let (world, _, eve, _) = invite_unconfirmed_person("member").await;
        let name = world.mailed_invitation(EVE).await;
        let path = format!("/api/auth/organization/get-invitation?id={name}");
        let shown = world.iam.get(&eve.caller(), &path).await.expect(200);
        assert_eq!(shown.json["organizationName"], "acme");
        let body = json!({ "invitationId": name });
        let answered = world.call_organization(&eve, call, body.clone()).await;
        assert_eq!(answered.expect(200).json["invitation"]["status"], status);
        assert!(is_confirmed(&world, &eve).await);
        let [entry] = <[_; 1]>::try_from(world.audit("user.email_verified").await).unwrap();
        assert_eq!(
            (&*entry.entity_id, &*entry.actor_id),
            (&*eve.user_id, &*eve.user_id)
        );
        let told = world.mails().await.into_iter().rev();
        let told = told.filter(|mail| mail.subject == "Your e-mail address is confirmed");
        assert_eq!(
            told.map(|mail| mail.to.to_string()).collect::<Vec<_>>(),
            [EVE]
        );
        let again = world.call_organization(&eve, call, body).await;
        again.expect_error(400, "INVITATION_NOT_FOUND");
    }
}

#[tokio::test]
async fn resending_an_invitation_invalidates_the_former_secret() {
    let (world, ada, eve, organization) = invite_unconfirmed_person("member").await;
    let old = world.mailed_invitation(EVE).await;
    world.tick(3_600);
    let resend = json!({
        "email": EVE, "role": "member", "resend": true, "organizationId": organization,
    });
    let resent = world.call_organization(&ada, "invite-member", resend).await;
    let id = resent.expect(200).id();
    let new = world.mailed_invitation(EVE).await;
    assert!(new != old && new.starts_with(&id) && old.starts_with(&id));
    for answer in all_answers(&world, &eve, &old).await {
        answer.expect_error(403, VERIFICATION_REQUIRED);
    }
    let body = json!({ "invitationId": new });
    let accepted = world
        .call_organization(&eve, "accept-invitation", body)
        .await;
    let _ = accepted.expect(200);
}

#[tokio::test]
async fn a_canceled_invitation_accepts_no_secret() {
    let (world, ada, eve, _) = invite_unconfirmed_person("member").await;
    let name = world.mailed_invitation(EVE).await;
    let id = InvitationRef::parse(&name).unwrap().id().to_string();
    let body = json!({ "invitationId": id });
    let canceled = world
        .call_organization(&ada, "cancel-invitation", body)
        .await;
    let _ = canceled.expect(200);
    for answer in all_answers(&world, &eve, &name).await {
        answer.expect_error(403, VERIFICATION_REQUIRED);
    }
    world.confirm(&eve).await;
    for answer in all_answers(&world, &eve, &name).await {
        answer.expect_error(400, "INVITATION_NOT_FOUND");
    }
}

#[tokio::test]
async fn the_link_does_not_work_for_another_address() {
    let (world, _, _, _) = invite_unconfirmed_person("member").await;
    let bob = world.sign_up(BOB).await;
    let name = world.mailed_invitation(EVE).await;
    for is_confirmed in [false, true] {
        if is_confirmed {
            world.confirm(&bob).await;
        }
        for answer in all_answers(&world, &bob, &name).await {
            answer.expect_error(403, "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION");
        }
    }
}

#[tokio::test]
async fn a_confirmed_recipient_answers_an_invitation_without_a_secret() {
    let (world, _, eve, _) = invite_unconfirmed_person("member").await;
    let name = InvitationRef::parse(&world.mailed_invitation(EVE).await).unwrap();
    let id = name.id().as_str();
    // Invitations from the time before secrets have none.
    let mut uow = world.app.store.begin(Mode::Write).await.unwrap();
    let invitations = uow.repositories(RecordKey::for_tests()).invitations();
    let seen = invitations.get(Within::Installation, id).await;
    let seen = seen.unwrap().unwrap();
    let mut next = seen.edit();
    next.secret_hash = None;
    invitations.replace(&seen, next).await.unwrap();
    uow.commit().await.unwrap();
    for answer in all_answers(&world, &eve, &name.expose()).await {
        answer.expect_error(403, VERIFICATION_REQUIRED);
    }
    world.confirm(&eve).await;
    let body = json!({ "invitationId": id });
    let accepted = world
        .call_organization(&eve, "accept-invitation", body)
        .await;
    let _ = accepted.expect(200);
}

#[tokio::test]
async fn plain_members_cannot_see_invitations() {
    let (world, ada, _, organization) = invite_unconfirmed_person("owner").await;
    let bob = world.sign_up(BOB).await;
    world.join([&ada, &bob], &organization, "member").await;
    let own = format!("/api/core/organizations/{organization}/invitations");
    for path in [
        &format!("/api/auth/organization/list-invitations?organizationId={organization}"),
        &own,
    ] {
        let listed = world.iam.get(&ada.caller(), path).await.expect(200);
        assert!(listed.json.to_string().contains(EVE), "{path}");
        world
            .iam
            .get(&bob.caller(), path)
            .await
            .expect_error(403, "FORBIDDEN");
    }
    let path =
        format!("/api/auth/organization/get-full-organization?organizationId={organization}");
    for (who, count) in [(&ada, 2), (&bob, 0)] {
        let full = world.iam.get(&who.caller(), &path).await.expect(200);
        assert_eq!(full.json["invitations"].as_array().unwrap().len(), count);
        assert_eq!(full.json["members"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn the_secret_appears_only_in_the_mail() {
    let (world, ada, eve, organization) = invite_unconfirmed_person("member").await;
    let name = world.mailed_invitation(EVE).await;
    let (_, secret) = name.rsplit_once('.').unwrap();
    let hash = TokenHash::of(secret).as_text().to_owned();
    let mut shown: Vec<Value> = Vec::new();
    for path in [
        format!("/api/auth/organization/list-invitations?organizationId={organization}"),
        format!("/api/auth/organization/get-full-organization?organizationId={organization}"),
        format!("/api/core/organizations/{organization}/invitations"),
    ] {
        shown.push(world.iam.get(&ada.caller(), &path).await.expect(200).json);
    }
    for answer in all_answers(&world, &eve, &name).await {
        shown.push(answer.json);
    }
    let stored = world.everything_stored().await;
    for text in shown.iter().map(Value::to_string).chain([stored]) {
        assert!(!text.contains(secret) && !text.contains(&hash), "{text}");
    }
}

#[tokio::test]
async fn the_suites_invitation_list_accepts_limits_from_1_to_100() {
    let (world, ada, _, organization) = invite_unconfirmed_person("member").await;
    world.invite(&ada, &organization, BOB, "member").await;
    let list = async |query: &str| {
        let path = format!("/api/core/organizations/{organization}/invitations?{query}");
        world.iam.get(&ada.caller(), &path).await
    };
    for (query, count) in [("", 2), ("limit=1", 1), ("limit=100", 2)] {
        let listed = list(query).await.expect(200);
        assert_eq!(listed.each("id").len(), count, "{query}");
    }
    for query in ["limit=0", "limit=101", "limit=4294967296"] {
        list(query).await.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn resending_an_invitation_requires_the_right_to_give_its_role() {
    let (world, ada, _, organization) = invite_unconfirmed_person("owner").await;
    let bob = world.sign_up(BOB).await;
    world.join([&ada, &bob], &organization, "admin").await;
    let name = world.mailed_invitation(EVE).await;
    world.tick(300);
    let resend = async |person: &Person, role: &str| {
        let body = json!({
            "email": EVE, "role": role, "resend": true, "organizationId": organization,
        });
        world.call_organization(person, "invite-member", body).await
    };
    for role in ["member", "owner"] {
        let refused = resend(&bob, role).await;
        refused.expect_error(403, "YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE");
    }
    assert_eq!(world.mailed_invitation(EVE).await, name);
    // A resent invitation keeps its role.
    let resent = resend(&ada, "member").await.expect(200);
    assert_eq!(resent.json["role"], "owner");
}
