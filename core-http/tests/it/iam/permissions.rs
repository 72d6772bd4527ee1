//! Role mappings of organizations, and permissions granted to or denied for single members.

use serde_json::{Value, json};

use super::{ADA, CORE_SESSION, EVE};
use crate::world::{Answer, Person, World, operator, platform_path};

const ROLES: &str = "/api/core/roles";
const GRANTS: &str = "/api/core/grants";

/// An owner and a member, with their organization and its platform. The session of the member acts for the
/// organization.
struct Team {
    world: World,
    ada: Person,
    eve: Person,
    organization: String,
    platform: String,
}

impl Team {
    async fn new() -> Self {
        let world = World::new();
        let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
        let made = world.set_up_organization(&ada, "engines").await.expect(201);
        let organization = made.text("orgId").to_owned();
        world.join([&ada, &eve], &organization, "member").await;
        Self {
            platform: made.text("platformId").to_owned(),
            world,
            ada,
            eve,
            organization,
        }
    }

    /// Returns the permissions of a person, as the enriched session reports them.
    async fn permissions(&self, person: &Person) -> Vec<String> {
        let found = self
            .world
            .send_with_bearer(&person.token, "GET", CORE_SESSION)
            .await;
        let shown = found.expect(200).json["permissions"].clone();
        serde_json::from_value(shown).unwrap()
    }

    async fn may(&self, person: &Person, permission: &str) -> bool {
        let permissions = self.permissions(person).await;
        permissions
            .iter()
            .any(|pattern| core_domain::kernel::pattern_includes(pattern, permission))
    }

    async fn post(&self, by: &Person, path: &str, body: Value) -> Answer {
        self.world.iam.post(&by.caller(), path, body).await
    }

    async fn delete(&self, by: &Person, path: &str) -> Answer {
        self.world.iam.delete(&by.caller(), path).await
    }

    async fn grant(&self, by: &Person, to: &Person, permission: &str, granted: bool) -> Answer {
        let body = json!({
            "userId": to.user_id, "orgId": self.organization, "permission": permission,
            "granted": granted, "grantedBy": by.user_id,
        });
        self.post(by, GRANTS, body).await
    }
}

#[tokio::test]
async fn a_role_mapping_applies_at_once_and_its_removal_restores_the_built_in_role() {
    let team = Team::new().await;
    assert!(!team.may(&team.eve, "entity:write").await);
    let body = json!({ "orgId": team.organization, "role": "member", "permissions": ["entity:*"] });
    let mapped = team.post(&team.ada, ROLES, body).await.expect(200);
    assert_eq!(mapped.json["mapped"], true);
    assert_eq!(team.permissions(&team.eve).await, ["entity:*"]);
    let path = format!("{ROLES}/{}/member", team.organization);
    let _ = team.delete(&team.ada, &path).await.expect(200);
    assert!(team.may(&team.eve, "deployment:create").await);
    let again = team.delete(&team.ada, &path).await;
    again.expect_error(404, "NOT_FOUND");
    let entries = team.world.audit("role.mapped").await;
    assert_eq!(
        entries[0].entity_id,
        format!("{}/member", team.organization)
    );
}

#[tokio::test]
async fn denials_override_grants_grants_override_roles_and_expired_grants_are_ignored() {
    let team = Team::new().await;
    let granted = team
        .grant(&team.ada, &team.eve, "entity:write", true)
        .await
        .expect(201);
    assert!(team.may(&team.eve, "entity:write").await);
    let denied = team
        .grant(&team.ada, &team.eve, "entity:*", false)
        .await
        .expect(201);
    assert!(!team.may(&team.eve, "entity:write").await);
    assert!(!team.may(&team.eve, "entity:read").await);
    for id in [denied.id(), granted.id()] {
        let path = format!("{GRANTS}/{id}");
        let _ = team.delete(&team.ada, &path).await.expect(200);
        let again = team.delete(&team.ada, &path).await;
        again.expect_error(404, "NOT_FOUND");
    }
    assert!(team.may(&team.eve, "entity:read").await);
    let body = json!({
        "userId": team.eve.user_id, "orgId": team.organization, "permission": "job:create",
        "granted": true, "grantedBy": team.ada.user_id, "expiresAt": 1_800_000_100,
    });
    let short = team.post(&team.ada, GRANTS, body).await.expect(201);
    assert_eq!(short.json["expiresAt"], 1_800_000_100);
    let now = team.world.clock_seconds();
    team.world.tick((1_800_000_099 - now).unsigned_abs());
    assert!(team.may(&team.eve, "job:create").await);
    team.world.tick(1);
    assert!(!team.may(&team.eve, "job:create").await);
}

#[tokio::test]
async fn callers_grant_only_permissions_they_have_and_only_owners_change_owners() {
    let team = Team::new().await;
    let body = json!({ "memberId": team.member_id(&team.eve).await, "role": "admin" });
    let promoted = team
        .world
        .call_organization(&team.ada, "update-member-role", body)
        .await;
    let _ = promoted.expect(200);
    let refused = team
        .grant(&team.eve, &team.eve, "platform:manage", true)
        .await;
    refused.expect_error(403, "FORBIDDEN");
    let refused = team.grant(&team.eve, &team.ada, "entity:read", false).await;
    refused.expect_error(403, "FORBIDDEN");
    for (role, permissions) in [("boss", "*:*"), ("owner", "entity:read")] {
        let body =
            json!({ "orgId": team.organization, "role": role, "permissions": [permissions] });
        let refused = team.post(&team.eve, ROLES, body).await;
        refused.expect_error(403, "FORBIDDEN");
    }
    // A person cannot grant in the name of another person.
    let body = json!({
        "userId": team.eve.user_id, "orgId": team.organization, "permission": "entity:read",
        "granted": true, "grantedBy": team.ada.user_id,
    });
    let refused = team.post(&team.eve, GRANTS, body.clone()).await;
    refused.expect_error(403, "FORBIDDEN");
    // A service may name the granting person, who must have the permission.
    let mut of_eve = body;
    of_eve["grantedBy"] = team.eve.user_id.clone().into();
    of_eve["permission"] = "platform:manage".into();
    let refused = team.world.iam.post(&operator(), GRANTS, of_eve).await;
    refused.expect_error(403, "FORBIDDEN");
}

#[tokio::test]
async fn a_duplicate_grant_is_a_conflict_and_a_grant_to_a_non_member_is_not_found() {
    let team = Team::new().await;
    let _ = team
        .grant(&team.ada, &team.eve, "job:create", true)
        .await
        .expect(201);
    let again = team.grant(&team.ada, &team.eve, "job:create", true).await;
    again.expect_error(409, "CONFLICT");
    let bob = team.world.sign_up("bob@example.org").await;
    let stranger = team.grant(&team.ada, &bob, "job:create", true).await;
    stranger.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn only_operators_can_see_which_rule_decides() {
    let team = Team::new().await;
    let denied = team
        .grant(&team.ada, &team.eve, "job:*", false)
        .await
        .expect(201);
    let asked = |permission: &str| {
        let (organization, user) = (&team.organization, &team.eve.user_id);
        format!("{GRANTS}?orgId={organization}&userId={user}&permission={permission}&explain=true")
    };
    for (permission, allowed, rule) in [
        (
            "job:read",
            false,
            json!({ "type": "denial", "id": denied.id() }),
        ),
        (
            "entity:read",
            true,
            json!({ "type": "role", "id": "member" }),
        ),
        ("entity:write", false, json!({ "type": "nothing" })),
    ] {
        let path = asked(permission);
        let shown = team.world.iam.get(&operator(), &path).await.expect(200);
        let decision = json!({ "allowed": allowed, "rule": rule });
        assert_eq!(shown.json["decision"], decision, "{permission}");
        let refused = team.world.iam.get(&team.ada.caller(), &path).await;
        refused.expect_error(403, "FORBIDDEN");
    }
    let path = format!("{GRANTS}?orgId={}&explain=true", team.organization);
    let refused = team.world.iam.get(&operator(), &path).await;
    refused.expect_error(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_grant_applies_in_the_registry_until_it_is_removed() {
    let team = Team::new().await;
    let path = platform_path(&team.platform, "/entities");
    let create = async |slug: &str| {
        let body = json!({ "name": slug, "slug": slug, "type": "tenant" });
        let caller = team.acting(&team.eve).await;
        team.world.registry.post(&caller, &path, body).await
    };
    create("first").await.expect_error(403, "FORBIDDEN");
    let granted = team
        .grant(&team.ada, &team.eve, "entity:write", true)
        .await
        .expect(201);
    let _ = create("first").await.expect(201);
    let id = granted.id();
    let removed = team.delete(&team.ada, &format!("{GRANTS}/{id}")).await;
    let _ = removed.expect(200);
    create("second").await.expect_error(403, "FORBIDDEN");
}

impl Team {
    async fn member_id(&self, person: &Person) -> String {
        let path = format!(
            "/api/auth/organization/list-members?organizationId={}",
            self.organization
        );
        let listed = self
            .world
            .iam
            .get(&self.ada.caller(), &path)
            .await
            .expect(200);
        let members = listed.json["members"].as_array().unwrap().clone();
        let found = members
            .iter()
            .find(|m| m["userId"] == person.user_id.as_str());
        found.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the caller that a gateway derives from the session of a person.
    async fn acting(&self, person: &Person) -> core_domain::kernel::Caller {
        use core_http::gateway::Authority;
        let authority = core_http::iam::SessionAuthority::new(
            self.world.app.store.clone(),
            &crate::world::iam_config(),
        );
        let secret = core_domain::kernel::Secret::new(person.token.clone());
        let credential = core_domain::gateway::Credential::Bearer(secret);
        let resolved = authority.resolve(&credential).await.unwrap();
        (*resolved.caller).clone()
    }
}

#[tokio::test]
async fn operators_create_organizations_and_only_members_find_them_by_slug() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let body = json!({ "name": "Looms", "slug": "looms", "ownerId": ada.user_id });
    let path = "/api/core/organizations";
    let made = world
        .iam
        .post(&operator(), path, body.clone())
        .await
        .expect(201);
    assert_eq!(
        (&made.json["type"], &made.json["platformId"]),
        (&json!("tenant"), &Value::Null)
    );
    let again = world.iam.post(&operator(), path, body).await;
    again.expect_error(409, "SLUG_TAKEN");
    let nobodys = json!({ "name": "X", "slug": "x", "ownerId": "nobody" });
    let refused = world.iam.post(&operator(), path, nobodys).await;
    refused.expect_error(404, "NOT_FOUND");
    let found = world
        .iam
        .get(&ada.caller(), &format!("{path}/looms"))
        .await
        .expect(200);
    assert_eq!(found.id(), made.id());
    let foreign = world.iam.get(&eve.caller(), &format!("{path}/looms")).await;
    foreign.expect_error(404, "NOT_FOUND");
}
