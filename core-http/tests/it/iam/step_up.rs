//! Actions that require a fresh proof of identity.

use core_domain::kernel::{Caller, Role};
use serde_json::{Value, json};

use super::{ADA, EVE};
use crate::world::{Answer, PASSWORD, Person, World, api_key, operator, platform_path};

const VERIFY_PASSWORD: &str = "/api/auth/verify-password";

impl World {
    async fn hard_delete(&self, caller: &Caller, platform: &str) -> Answer {
        let path = platform_path(platform, "/delete");
        self.registry.post(caller, &path, Value::Null).await
    }

    async fn verify_password(&self, person: &Person) {
        let body = json!({ "password": PASSWORD });
        let caller = &person.caller();
        let shown = self.iam.post(caller, VERIFY_PASSWORD, body).await;
        let _ = shown.expect(200);
    }
}

fn methods(refused: &Answer) -> Value {
    refused.json["error"]["details"]["methods"].clone()
}

#[tokio::test]
async fn hard_deleting_a_platform_requires_a_fresh_proof() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let ada = world.sign_up(ADA).await;
    let owner = ada.member_of(&platform, Role::OWNER);
    world.tick(600);
    let refused = world.hard_delete(&owner, &platform).await;
    let refused = refused.expect_error(403, "STEP_UP_REQUIRED");
    assert_eq!(methods(&refused), json!(["password"]));
    // A caller without the permission is refused and not asked for a proof.
    let member = ada.member_of(&platform, Role::MEMBER);
    let forbidden = world.hard_delete(&member, &platform).await;
    forbidden.expect_error(403, "FORBIDDEN");
    let missing = world.hard_delete(&owner, "nothing").await;
    missing.expect_error(404, "NOT_FOUND");
    let wrong = json!({ "password": "wrong horse battery" });
    let wrong = world.iam.post(&ada.caller(), VERIFY_PASSWORD, wrong).await;
    wrong.expect_error(400, "INVALID_PASSWORD");
    let refused = world.hard_delete(&owner, &platform).await;
    refused.expect_error(403, "STEP_UP_REQUIRED");
    world.verify_password(&ada).await;
    world.tick(599);
    let _ = world.hard_delete(&owner, &platform).await.expect(200);
    let told = world.audit("session.reauthenticated").await;
    assert_eq!((told.len(), &told[0].entity_id), (1, &ada.session_id));
}

#[tokio::test]
async fn with_a_second_factor_only_that_factor_is_a_fresh_proof() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let ada = world.sign_up(ADA).await;
    let owner = ada.member_of(&platform, Role::OWNER);
    let authenticator = world.enable_second_factor(&ada).await;
    world.tick(600);
    world.verify_password(&ada).await;
    let refused = world.hard_delete(&owner, &platform).await;
    let refused = refused.expect_error(403, "STEP_UP_REQUIRED");
    assert_eq!(methods(&refused), json!(["totp", "backup-code"]));
    let code = json!({ "code": authenticator.code(&world) });
    let shown = world.call_two_factor(&ada, "verify-totp", code).await;
    let _ = shown.expect(200);
    let _ = world.hard_delete(&owner, &platform).await.expect(200);
}

#[tokio::test]
async fn ended_sessions_and_other_peoples_sessions_prove_nothing() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let ada = world.sign_up(ADA).await;
    let eve = world.sign_up(EVE).await;
    let stolen = Person {
        session_id: eve.session_id.clone(),
        ..ada.clone()
    };
    let out = world
        .send_with_bearer(&ada.token, "POST", super::SIGN_OUT)
        .await;
    let _ = out.expect(200);
    for person in [&ada, &stolen] {
        let owner = person.member_of(&platform, Role::OWNER);
        let refused = world.hard_delete(&owner, &platform).await;
        refused.expect_error(401, "UNAUTHORIZED");
    }
    let mut by_nobodys_word = eve.member_of(&platform, Role::OWNER);
    if let Caller::User { session_id, .. } = &mut by_nobodys_word {
        *session_id = None;
    }
    let refused = world.hard_delete(&by_nobodys_word, &platform).await;
    refused.expect_error(403, "STEP_UP_REQUIRED");
}

#[tokio::test]
async fn services_and_keys_need_no_proof_and_people_without_a_session_are_refused() {
    let world = World::new();
    let [first, second, third] = [
        world.create_platform("first").await,
        world.create_platform("second").await,
        world.create_platform("third").await,
    ];
    let ada = world.sign_up(ADA).await;
    world.tick(3_600);
    let mut vouched_for = ada.member_of(&third, Role::OWNER);
    if let Caller::User {
        session_id,
        service,
        ..
    } = &mut vouched_for
    {
        *session_id = None;
        *service = Some("cli".to_owned());
    }
    for (caller, platform) in [(operator(), &first), (api_key(&second), &second)] {
        let _ = world.hard_delete(&caller, platform).await.expect(200);
    }
    let refused = world.hard_delete(&vouched_for, &third).await;
    refused.expect_error(403, "STEP_UP_REQUIRED");
}

#[tokio::test]
async fn adding_and_removing_owners_requires_a_fresh_proof() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    for person in [&ada, &eve] {
        world.confirm(person).await;
    }
    let organization = world.create_organization(&ada, "adas").await;
    let member = world.join([&ada, &eve], &organization, "member").await;
    let change = async |role: &str| {
        let body = json!({ "memberId": member, "role": role, "organizationId": organization });
        world
            .call_organization(&ada, "update-member-role", body)
            .await
    };
    world.tick(600);
    let _ = change("admin").await.expect(200);
    change("owner").await.expect_error(403, "STEP_UP_REQUIRED");
    let invite = json!({
        "email": "bob@example.org", "role": "owner", "organizationId": organization,
    });
    let invited = world
        .call_organization(&ada, "invite-member", invite.clone())
        .await;
    invited.expect_error(403, "STEP_UP_REQUIRED");
    world.verify_password(&ada).await;
    let invited = world.call_organization(&ada, "invite-member", invite).await;
    let _ = invited.expect(200);
    let _ = change("owner").await.expect(200);
    world.tick(600);
    change("admin").await.expect_error(403, "STEP_UP_REQUIRED");
    let body = json!({ "memberIdOrEmail": member, "organizationId": organization });
    let removed = world
        .call_organization(&ada, "remove-member", body.clone())
        .await;
    removed.expect_error(403, "STEP_UP_REQUIRED");
    world.verify_password(&ada).await;
    let removed = world.call_organization(&ada, "remove-member", body).await;
    let _ = removed.expect(200);
}
