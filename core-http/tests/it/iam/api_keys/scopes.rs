//! The permissions of a key: the current permissions of its owner, limited by its scopes.

use serde_json::{Value, json};

use super::{OrganizationOwner, ROLES};
use crate::iam::EVE;
use crate::world::{World, operator};

async fn permissions(world: &World, secret: &str) -> Value {
    world.validate_key(secret).await["permissions"].clone()
}

#[tokio::test]
async fn scopes_limit_the_owners_permissions_and_never_extend_them() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "member").await;
    let make = async |scopes: Value| {
        let body = json!({ "organizationId": ada.org, "scopes": scopes });
        world.create_api_key(&eve.caller(), body).await
    };
    for scopes in [
        json!(["entity:write"]),
        json!(["job:read", "*:*"]),
        json!(["*:read"]),
    ] {
        make(scopes).await.expect_error(403, "FORBIDDEN");
    }
    let narrow = make(json!(["job:read", "deployment:create"]))
        .await
        .expect(200);
    let narrow = narrow.text("key");
    let expected = json!(["deployment:create", "job:read"]);
    assert_eq!(permissions(&world, narrow).await, expected);
    let whole = make(Value::Null).await.expect(200);
    let whole = whole.text("key");
    let all = permissions(&world, whole).await;
    assert!(
        all.as_array().unwrap().contains(&json!("entity:read")),
        "{all}"
    );

    // Changes to the permissions of the owner apply to the key.
    let denied = json!({
        "orgId": ada.org, "userId": eve.user_id, "permission": "job:*",
        "granted": false, "grantedBy": ada.person.user_id,
    });
    let _ = ada
        .post(&world, "/api/core/grants", denied)
        .await
        .expect(201);
    assert_eq!(
        permissions(&world, narrow).await,
        json!(["deployment:create"])
    );
    let granted = json!({
        "orgId": ada.org, "userId": eve.user_id, "permission": "entity:write",
        "granted": true, "grantedBy": ada.person.user_id, "expiresAt": 1_800_000_060,
    });
    let _ = ada
        .post(&world, "/api/core/grants", granted)
        .await
        .expect(201);
    assert_eq!(
        permissions(&world, narrow).await,
        json!(["deployment:create"])
    );
    let found = world.validate_key(whole).await;
    assert_eq!(found["expiresAt"], "2027-01-15T08:01:00.000Z");
    let now = found["permissions"].as_array().unwrap();
    assert!(now.contains(&json!("entity:write")) && !now.contains(&json!("job:read")));
    let mapped = json!({ "orgId": ada.org, "role": "member", "permissions": ["audit:read"] });
    let _ = ada.post(&world, ROLES, mapped).await.expect(200);
    assert_eq!(permissions(&world, narrow).await, json!([]));
    assert_eq!(world.key_verdict(narrow).await, "VALID");
}

#[tokio::test]
async fn an_organization_key_has_exactly_its_scopes_and_the_member_role() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    for (scopes, expected) in [
        (json!(["role:read", "job:*"]), json!(["job:*", "role:read"])),
        (Value::Null, json!(["*:*"])),
    ] {
        let body = json!({ "organizationOwned": true, "scopes": scopes });
        let (_, secret) = ada.key(&world, body).await;
        let found = world.validate_key(&secret).await;
        assert_eq!(found["permissions"], expected);
        assert_eq!(
            (&found["role"], &found["userId"]),
            (&json!("member"), &Value::Null)
        );
    }
}

#[tokio::test]
async fn a_key_reaches_no_other_organization_of_its_owner() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({})).await;
    let body = json!({ "name": "Other", "slug": "other", "ownerId": ada.person.user_id });
    let path = "/api/core/organizations";
    let other = world.iam.post(&operator(), path, body).await.expect(201);
    let own = format!("{path}/engines");
    let _ = world
        .send_with_key(&secret, "GET", &own, Value::Null)
        .await
        .expect(200);
    for path in [
        format!("{path}/other"),
        format!("{ROLES}?orgId={}", other.id()),
    ] {
        let foreign = world
            .send_with_key(&secret, "GET", &path, Value::Null)
            .await;
        foreign.expect_error(404, "NOT_FOUND");
        let person = ada.get(&world, &path).await;
        let _ = person.expect(200);
    }
}
