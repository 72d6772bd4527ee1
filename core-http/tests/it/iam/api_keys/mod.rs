//! API keys: creation, use, rotation and refusal.

mod at_iam;
mod at_the_gateway;
mod limits;
mod managing;
mod personal;
mod rotation;
mod scopes;
mod stores;
mod validation;

use core_domain::kernel::Caller;
use http::HeaderMap;
use serde_json::{Value, json};

use super::{ADA, DAY};
use crate::world::{Answer, PASSWORD, Person, VALIDATE, World};

const CREATE: &str = "/api/auth/api-key/create";
const LIST: &str = "/api/auth/api-key/list";
const GET: &str = "/api/auth/api-key/get";
const UPDATE: &str = "/api/auth/api-key/update";
const DELETE: &str = "/api/auth/api-key/delete";
const ROTATE: &str = "/api/auth/api-key/rotate";
const ROLES: &str = "/api/core/roles";

/// Ada, who owns an organization with a platform.
pub(super) struct OrganizationOwner {
    pub(super) person: Person,
    pub(super) org: String,
    pub(super) platform: String,
}

impl OrganizationOwner {
    pub(super) async fn create_in(world: &World) -> Self {
        let person = world.sign_up(ADA).await;
        let made = world
            .set_up_organization(&person, "engines")
            .await
            .expect(201);
        Self {
            person,
            org: made.text("orgId").to_owned(),
            platform: made.text("platformId").to_owned(),
        }
    }

    /// Creates a key of Ada. Returns its id and secret.
    pub(super) async fn key(&self, world: &World, body: Value) -> (String, String) {
        let made = world
            .send_as_person(&self.person, "POST", CREATE, body)
            .await;
        let made = made.expect(200);
        (made.id(), made.text("key").to_owned())
    }

    async fn post(&self, world: &World, path: &str, body: Value) -> Answer {
        world.send_as_person(&self.person, "POST", path, body).await
    }

    /// Proves her identity with her password, which sensitive actions require.
    async fn proves_who_she_is(&self, world: &World) {
        let path = "/api/auth/verify-password";
        let body = json!({ "password": PASSWORD });
        let _ = self.post(world, path, body).await.expect(200);
    }

    async fn get(&self, world: &World, path: &str) -> Answer {
        let nothing = Value::Null;
        world
            .send_as_person(&self.person, "GET", path, nothing)
            .await
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

/// Returns the key id of a program that a gateway has identified.
fn key_id_of(caller: &Caller) -> &str {
    caller.api_key_id().unwrap().as_str()
}
