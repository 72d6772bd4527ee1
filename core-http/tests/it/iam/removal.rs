//! Removal of invitations, members and keys with their organization, and of expired records by the sweep.

use core_domain::access::RecordKey;
use core_domain::iam::{ApiKeyQuery, InvitationQuery, MemberQuery, SessionQuery};
use core_domain::kernel::{OrganizationId, PlatformId, Timestamp, UserId};
use core_domain::port::{Mode, Persisted, Within, transact};
use core_domain::use_case::iam::{api_key, passkey, session};
use serde_json::json;

use super::trusted_devices::{
    ada_with_device, device_of, requires_second_factor, sign_in, trust_device,
};
use super::{ADA, DAY, EVE, GET_SESSION};
use crate::world::{PASSWORD, Person, World, on_every_store};

on_every_store! {
    deleting_a_platform_deletes_its_members_invitations_and_keys,
    deleting_an_organization_deletes_its_invitations,
    ending_a_membership_deletes_the_members_keys_for_good,
    expired_sessions_and_keys_are_swept,
    only_expired_device_trust_is_swept,
    only_expired_passkey_challenges_are_swept,
}

impl World {
    async fn count_records<R: Persisted>(&self, query: R::Query) -> u64 {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let records = R::repository(uow.repositories(RecordKey::for_tests()));
        records.count(Within::Installation, &query).await.unwrap()
    }

    async fn key_of(&self, person: &Person, organization: &str) -> String {
        let body = json!({ "organizationId": organization });
        let made = self
            .create_api_key(&person.caller(), body)
            .await
            .expect(200);
        made.text("key").to_owned()
    }
}

fn organization_id(organization: &str) -> OrganizationId {
    OrganizationId::parse(organization).unwrap()
}

async fn deleting_a_platform_deletes_its_members_invitations_and_keys(world: World) {
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let (organization, platform) = (made.text("orgId"), made.text("platformId"));
    world.invite(&ada, organization, EVE, "member").await;
    let key = world.key_of(&ada, organization).await;
    world.change_lifecycle_as_operator(platform, "delete").await;
    world.run_jobs().await;
    let invitations = InvitationQuery::OfOrganization(organization_id(organization));
    assert_eq!(
        world
            .count_records::<core_domain::iam::Invitation>(invitations)
            .await,
        0
    );
    let members = MemberQuery::OfOrganization(organization_id(organization));
    assert_eq!(
        world
            .count_records::<core_domain::iam::Member>(members)
            .await,
        0
    );
    let keys = ApiKeyQuery::OfPlatform(PlatformId::parse(platform).unwrap());
    assert_eq!(
        world.count_records::<core_domain::iam::ApiKey>(keys).await,
        0
    );
    assert_eq!(world.key_verdict(&key).await, "NOT_FOUND");
}

async fn deleting_an_organization_deletes_its_invitations(world: World) {
    let ada = world.sign_up(ADA).await;
    let organization = world.create_organization(&ada, "looms").await;
    world.invite(&ada, &organization, EVE, "member").await;
    let body = json!({ "organizationId": organization });
    let deleted = world.call_organization(&ada, "delete", body).await;
    let _ = deleted.expect(200);
    let invitations = InvitationQuery::OfOrganization(organization_id(&organization));
    assert_eq!(
        world
            .count_records::<core_domain::iam::Invitation>(invitations)
            .await,
        0
    );
}

async fn ending_a_membership_deletes_the_members_keys_for_good(world: World) {
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let organization = made.text("orgId");
    let hers = world.key_of(&ada, organization).await;
    world.join([&ada, &eve], organization, "admin").await;
    for call in ["leave", "remove-member"] {
        let key = world.key_of(&eve, organization).await;
        assert_eq!(world.key_verdict(&key).await, "VALID");
        if call == "leave" {
            world.leave(&eve, organization).await;
        } else {
            let body = json!({ "organizationId": organization, "memberIdOrEmail": EVE });
            let _ = world.call_organization(&ada, call, body).await.expect(200);
        }
        assert_eq!(world.key_verdict(&key).await, "NOT_FOUND");
        let user = UserId::parse(&eve.user_id).unwrap();
        let keys = ApiKeyQuery::OfMember(organization_id(organization), user);
        assert_eq!(
            world.count_records::<core_domain::iam::ApiKey>(keys).await,
            0
        );
        // The same address may be invited again after 300 seconds.
        world.tick(300);
        world.join([&ada, &eve], organization, "admin").await;
        assert_eq!(world.key_verdict(&key).await, "NOT_FOUND");
    }
    assert_eq!(world.key_verdict(&hers).await, "VALID");
}

async fn expired_sessions_and_keys_are_swept(world: World) {
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let organization = made.text("orgId");
    let body = json!({ "organizationId": organization, "expiresIn": DAY });
    let _ = world.create_api_key(&ada.caller(), body).await.expect(200);
    let kept = world.key_of(&ada, organization).await;
    let store = world.app.store.as_ref();
    let swept = async || {
        let sessions = transact(store, |uow, _| {
            Box::pin(session::remove_expired(uow, 1_000))
        })
        .await;
        let keys = transact(store, |uow, _| Box::pin(api_key::remove_ended(uow, 1_000))).await;
        (sessions.unwrap(), keys.unwrap())
    };
    world.tick(5 * DAY);
    let later = world.sign_in(EVE, PASSWORD).await.expect(200);
    world.tick(2 * DAY - 1);
    assert_eq!(swept().await, (0, 0));
    world.tick(1);
    // Only the first session of each person has expired. An expired key stays for 30 days, so that its owner can look
    // it up.
    assert_eq!(swept().await, (2, 0));
    assert_eq!(swept().await, (0, 0));
    let session = world
        .send_with_bearer(later.text("token"), "GET", GET_SESSION)
        .await;
    assert_eq!(session.json["user"]["id"], eve.user_id.as_str());
    world.tick(24 * DAY - 1);
    assert_eq!(swept().await, (1, 0));
    world.tick(1);
    assert_eq!(swept().await, (0, 1));
    assert_eq!(world.key_verdict(&kept).await, "VALID");
    let all = SessionQuery::ExpiredAt(Timestamp::from_seconds(4_000_000_000));
    assert_eq!(
        world.count_records::<core_domain::iam::Session>(all).await,
        0
    );
}

async fn only_expired_device_trust_is_swept(world: World) {
    let eve = world.sign_up(EVE).await;
    let of_eve = world.enable_second_factor(&eve).await;
    let of_eve = trust_device(&world, EVE, &of_eve).await;
    let trusted_at = world.clock_seconds() - 30;
    let (_, _, device) = ada_with_device(&world).await;
    world.tick(29 * DAY);
    let renewed = sign_in(&world, ADA, PASSWORD, &device).await;
    let renewed = device_of(&renewed).unwrap();
    let store = world.app.store.as_ref();
    let swept = async || {
        let swept = transact(store, |uow, _| {
            Box::pin(session::remove_expired_trust(uow, 1_000))
        });
        swept.await.unwrap()
    };
    let passed = u64::try_from(world.clock_seconds() - trusted_at).unwrap();
    world.tick(30 * DAY - passed - 1);
    assert_eq!(swept().await, 0);
    world.tick(1);
    assert_eq!((swept().await, swept().await), (1, 0));
    assert!(requires_second_factor(
        &sign_in(&world, EVE, PASSWORD, &of_eve).await
    ));
    assert!(!requires_second_factor(
        &sign_in(&world, ADA, PASSWORD, &renewed).await
    ));
}

async fn only_expired_passkey_challenges_are_swept(world: World) {
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let (_, _) = (
        world.begin_passkey(&ada).await,
        world.begin_passkey_sign_in().await,
    );
    world.tick(299);
    let begun = world.begin_passkey(&ada).await;
    let asked = world.begin_passkey_sign_in().await;
    let store = world.app.store.as_ref();
    let swept = async || {
        let swept = transact(store, |uow, _| {
            Box::pin(passkey::remove_expired_passkey_challenges(uow, 1_000))
        });
        swept.await.unwrap()
    };
    assert_eq!(swept().await, 0);
    world.tick(1);
    assert_eq!((swept().await, swept().await), (2, 0));
    let made = world.authenticator(2).create(&begun.options);
    let registered = world.finish_passkey(&ada, &begun.cookie, &made).await;
    let _ = registered.expect(200);
    let shown = phone.get(&asked.options);
    let signed_in = world
        .finish_passkey_sign_in(&ada.caller(), &asked.cookie, &shown)
        .await;
    let _ = signed_in.expect(200);
}
