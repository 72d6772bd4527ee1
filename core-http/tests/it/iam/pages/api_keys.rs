//! The page with the API keys of a person.

use super::{ADA, EVE, PASSWORD, World, location, text};
use crate::world::Person;

const KEYS: &str = "/account/api-keys";
const CONFIRM: &str = "/account/confirm";

/// Returns the form fields of a read-only key that lasts 30 days.
fn new_key<'a>(name: &'a str, organization: &'a str) -> [(&'static str, &'a str); 4] {
    [
        ("name", name),
        ("organization", organization),
        ("access", "reads"),
        ("lifetime", "30"),
    ]
}

/// Returns the id of the only key on a page.
fn key_of(page: &str) -> String {
    let (_, after) = page.split_once("name=\"key\" value=\"").unwrap();
    after.split('"').next().unwrap().to_owned()
}

/// Creates Ada with an organization. Returns her and the id of the organization.
async fn owner(world: &World) -> (Person, String) {
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let organization = made.text("orgId").to_owned();
    (ada, organization)
}

#[tokio::test]
async fn people_create_a_key_see_its_secret_once_and_delete_it() {
    let world = World::new();
    let (ada, organization) = owner(&world).await;
    let new = new_key("Nightly build", &organization);
    let made = world.form_of(&ada, KEYS, &new).await;
    let shown = text(&made, 200);
    assert_eq!(made.header("cache-control"), "no-store");
    let (_, secret) = shown.split_once("<code class=\"secret\">").unwrap();
    let secret = secret.split('<').next().unwrap();
    assert_eq!(world.key_verdict(secret).await, "VALID");
    let page = text(&world.page_of(&ada, KEYS).await, 200);
    assert!(!page.contains(secret) && page.contains(&secret[..12]));
    assert!(page.contains("Nightly build") && page.contains("may *:read"));
    // Another person cannot delete the key.
    let eve = world.sign_up(EVE).await;
    let key = key_of(&page);
    let delete = "/account/api-keys/delete";
    let foreign = world.form_of(&eve, delete, &[("key", &key)]).await;
    let _ = text(&foreign, 404);
    assert_eq!(world.key_verdict(secret).await, "VALID");
    let deleted = world.form_of(&ada, delete, &[("key", &key)]).await;
    assert_eq!(location(&deleted), "/account/api-keys?notice=deleted");
    assert_eq!(world.key_verdict(secret).await, "REVOKED");
    assert!(text(&world.page_of(&ada, KEYS).await, 200).contains("You have none."));
}

#[tokio::test]
async fn people_without_an_organization_create_personal_keys() {
    let world = World::new();
    let eve = world.sign_up(EVE).await;
    let page = text(&world.page_of(&eve, KEYS).await, 200);
    assert!(page.contains("None: for you alone"), "{page}");
    let made = world.form_of(&eve, KEYS, &new_key("Mine", "")).await;
    let _ = text(&made, 200);
    let page = text(&world.page_of(&eve, KEYS).await, 200);
    assert!(page.contains("for you alone, made"), "{page}");
    for unknown in ["nothing", "%00"] {
        let refused = world.form_of(&eve, KEYS, &new_key("Mine", unknown)).await;
        let _ = text(&refused, 404);
    }
}

#[tokio::test]
async fn a_read_only_key_of_a_member_has_the_read_permissions_of_members() {
    let world = World::new();
    let (ada, organization) = owner(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada, &eve], &organization, "member").await;
    let new = new_key("Reports", &organization);
    let shown = text(&world.form_of(&eve, KEYS, &new).await, 200);
    assert!(shown.contains("The key was made."));
    let page = text(&world.page_of(&eve, KEYS).await, 200);
    let (_, may) = page.split_once(", may ").unwrap();
    let may: Vec<&str> = may.split(", made").next().unwrap().split(", ").collect();
    assert!(may.contains(&"deployment:read"), "{may:?}");
    assert!(may.iter().all(|pattern| pattern.ends_with(":read")));
}

#[tokio::test]
async fn creating_a_key_requires_a_membership_in_its_organization() {
    let world = World::new();
    let (_, organization) = owner(&world).await;
    let eve = world.sign_up(EVE).await;
    let new = new_key("Reports", &organization);
    let refused = text(&world.form_of(&eve, KEYS, &new).await, 404);
    assert!(refused.contains("You are not in this organization any more."));
}

#[tokio::test]
async fn errors_of_a_new_key_appear_beside_their_field_and_the_input_is_kept() {
    let world = World::new();
    let (ada, organization) = owner(&world).await;
    let long = "x".repeat(33);
    let refused = world
        .form_of(&ada, KEYS, &new_key(&long, &organization))
        .await;
    let page = text(&refused, 400);
    assert!(page.contains("A name has 1 to 32 characters.") && page.contains(&long));
    assert!(page.contains("<option value=\"30\" selected>"), "{page}");
}

#[tokio::test]
async fn creating_a_key_requires_a_fresh_proof() {
    let world = World::new();
    let (ada, organization) = owner(&world).await;
    world.tick(11 * 60);
    let page = text(&world.page_of(&ada, KEYS).await, 200);
    assert!(!page.contains("Make the key") && page.contains("Confirm that it is you"));
    let sent_on = world
        .form_of(&ada, KEYS, &new_key("CI", &organization))
        .await;
    let confirm = "/account/confirm?next=%2Faccount%2Fapi-keys";
    assert_eq!(location(&sent_on), confirm);
    let page = text(&world.page_of(&ada, confirm).await, 200);
    assert!(page.contains("type=\"password\""), "{page}");
    let show = async |password: &str| {
        let fields = [("password", password), ("next", KEYS)];
        world.form_of(&ada, CONFIRM, &fields).await
    };
    let refused = text(&show("wrong horse battery").await, 400);
    assert!(refused.contains("The password is wrong."));
    assert_eq!(location(&show(PASSWORD).await), KEYS);
    let made = world
        .form_of(&ada, KEYS, &new_key("CI", &organization))
        .await;
    let _ = text(&made, 200);
}

#[tokio::test]
async fn with_a_second_factor_only_a_code_is_a_fresh_proof() {
    let world = World::new();
    let (ada, _) = owner(&world).await;
    let authenticator = world.enable_second_factor(&ada).await;
    world.tick(11 * 60);
    let page = text(&world.page_of(&ada, CONFIRM).await, 200);
    assert!(page.contains("one-time-code") && !page.contains("type=\"password\""));
    let shown = [("password", PASSWORD), ("next", KEYS)];
    assert_eq!(location(&world.form_of(&ada, CONFIRM, &shown).await), KEYS);
    let page = text(&world.page_of(&ada, KEYS).await, 200);
    assert!(page.contains("Confirm that it is you"));
    let code = authenticator.code(&world);
    let shown = [("code", code.as_str()), ("next", KEYS)];
    assert_eq!(location(&world.form_of(&ada, CONFIRM, &shown).await), KEYS);
    let page = text(&world.page_of(&ada, KEYS).await, 200);
    assert!(page.contains("Make the key"));
}
