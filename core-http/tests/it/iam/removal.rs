//! What is left of organizations, memberships and sessions that are gone: nothing.

use core_domain::access::RecordKey;
use core_domain::iam::{ApiKeyQuery, InvitationQuery, MemberQuery, SessionQuery};
use core_domain::kernel::{OrganizationId, PlatformId, Timestamp, UserId};
use core_domain::port::{Mode, Persisted, Within, transact};
use core_domain::use_case::iam::{api_key, session};
use serde_json::json;

use super::{ADA, EVE};
use crate::world::{Person, World, on_every_store, operator};

const DAY: u64 = 24 * 3_600;

on_every_store! {
    a_platform_takes_its_organizations_invitations_and_keys_along,
    an_organization_takes_its_invitations_along,
    whoever_leaves_or_is_removed_leaves_no_key_behind_and_gets_none_back,
    sessions_and_keys_that_nobody_ended_are_swept_when_they_are_over,
}

impl World {
    async fn left<R: Persisted>(&self, query: R::Query) -> u64 {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let records = R::repository(uow.repositories(RecordKey::for_tests()));
        records.count(Within::Installation, &query).await.unwrap()
    }

    async fn key_of(&self, person: &Person, organization: &str) -> String {
        let body = json!({ "organizationId": organization });
        let made = self.make_key(&person.caller(), body).await.expect(200);
        made.text("key").to_owned()
    }

    async fn verdict_of(&self, key: &str) -> String {
        let path = "/api/core/apikey/validate";
        let told = self
            .iam
            .post(&operator(), path, json!({ "key": key }))
            .await;
        told.expect(200).json["code"]
            .as_str()
            .unwrap_or("VALID")
            .to_owned()
    }
}

fn of(organization: &str) -> OrganizationId {
    OrganizationId::parse(organization).unwrap()
}

async fn a_platform_takes_its_organizations_invitations_and_keys_along(world: World) {
    let ada = world.sign_up(ADA).await;
    let made = world.set_up(&ada, "engines").await.expect(201);
    let (organization, platform) = (made.text("orgId"), made.text("platformId"));
    world.invite(&ada, organization, EVE, "member").await;
    let key = world.key_of(&ada, organization).await;
    world.move_on(platform, "delete").await;
    world.run_jobs().await;
    let invitations = InvitationQuery::OfOrganization(of(organization));
    assert_eq!(
        world
            .left::<core_domain::iam::Invitation>(invitations)
            .await,
        0
    );
    let members = MemberQuery::OfOrganization(of(organization));
    assert_eq!(world.left::<core_domain::iam::Member>(members).await, 0);
    let keys = ApiKeyQuery::OfPlatform(PlatformId::parse(platform).unwrap());
    assert_eq!(world.left::<core_domain::iam::ApiKey>(keys).await, 0);
    assert_eq!(world.verdict_of(&key).await, "NOT_FOUND");
}

async fn an_organization_takes_its_invitations_along(world: World) {
    let ada = world.sign_up(ADA).await;
    let organization = world.found(&ada, "looms").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let body = json!({ "organizationId": organization });
    let deleted = world.organization(&ada, "delete", body).await;
    let _ = deleted.expect(200);
    let invitations = InvitationQuery::OfOrganization(of(&organization));
    assert_eq!(
        world
            .left::<core_domain::iam::Invitation>(invitations)
            .await,
        0
    );
}

async fn whoever_leaves_or_is_removed_leaves_no_key_behind_and_gets_none_back(world: World) {
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let made = world.set_up(&ada, "engines").await.expect(201);
    let organization = made.text("orgId");
    let hers = world.key_of(&ada, organization).await;
    world.join([&ada, &eve], organization, "admin").await;
    for call in ["leave", "remove-member"] {
        let key = world.key_of(&eve, organization).await;
        assert_eq!(world.verdict_of(&key).await, "VALID");
        if call == "leave" {
            world.leave(&eve, organization).await;
        } else {
            let body = json!({ "organizationId": organization, "memberIdOrEmail": EVE });
            let _ = world.organization(&ada, call, body).await.expect(200);
        }
        assert_eq!(world.verdict_of(&key).await, "NOT_FOUND");
        let user = UserId::parse(&eve.user_id).unwrap();
        let keys = ApiKeyQuery::OfMember(of(organization), user);
        assert_eq!(world.left::<core_domain::iam::ApiKey>(keys).await, 0);
        world.join([&ada, &eve], organization, "admin").await;
        assert_eq!(world.verdict_of(&key).await, "NOT_FOUND");
    }
    assert_eq!(world.verdict_of(&hers).await, "VALID");
}

async fn sessions_and_keys_that_nobody_ended_are_swept_when_they_are_over(world: World) {
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let made = world.set_up(&ada, "engines").await.expect(201);
    let organization = made.text("orgId");
    let body = json!({ "organizationId": organization, "expiresIn": DAY });
    let _ = world.make_key(&ada.caller(), body).await.expect(200);
    let kept = world.key_of(&ada, organization).await;
    let store = world.app.store.as_ref();
    let swept = async || {
        let sessions = transact(store, |uow, _| Box::pin(session::remove_expired(uow))).await;
        let keys = transact(store, |uow, _| Box::pin(api_key::remove_forgotten(uow))).await;
        (sessions.unwrap(), keys.unwrap())
    };
    world.tick(5 * DAY);
    let later = world.sign_in(EVE, crate::world::PASSWORD).await.expect(200);
    world.tick(2 * DAY - 1);
    assert_eq!(swept().await, (0, 0));
    world.tick(1);
    // The first sessions of both; the keys' owners may still ask for those that are over.
    assert_eq!(swept().await, (2, 0));
    assert_eq!(swept().await, (0, 0));
    let found = world.session_of(later.text("token")).await;
    assert_ne!(found, eve.session_id);
    world.tick(24 * DAY - 1);
    assert_eq!(swept().await, (1, 0));
    world.tick(1);
    assert_eq!(swept().await, (0, 1));
    assert_eq!(world.verdict_of(&kept).await, "VALID");
    let all = SessionQuery::ExpiredAt(Timestamp::from_seconds(4_000_000_000));
    assert_eq!(world.left::<core_domain::iam::Session>(all).await, 0);
}
