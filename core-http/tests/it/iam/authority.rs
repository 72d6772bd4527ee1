//! Sessions as a gateway in the same process resolves them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::kernel::Secret;
use core_domain::kernel::{Caller, Clock, Role, StoreError};
use core_domain::port::{Mode, Store, UnitOfWork};
use core_http::gateway::{Authority, AuthorityError};
use core_http::iam::SessionAuthority;
use serde_json::json;

use super::{ADA, SIGN_OUT};
use crate::world::{World, iam_config};

fn authority(store: &Arc<dyn Store>) -> SessionAuthority {
    SessionAuthority::new(Arc::clone(store), &iam_config())
}

fn bearer(token: &str) -> Credential {
    Credential::Bearer(Secret::new(token))
}

#[tokio::test]
async fn the_gateway_resolves_role_platform_and_suspension_and_refuses_after_a_sign_out() {
    let world = World::new();
    let gateway = authority(&world.app.store);
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let platform = made.text("platformId");
    let signed = ada.cookie.split_once('=').unwrap().1;
    for token in [&*ada.token, signed] {
        let known = gateway.resolve(&bearer(token)).await.unwrap();
        assert!(!known.suspended);
        assert_eq!(known.caller.platform_id().unwrap().as_str(), platform);
        assert_eq!(known.caller.membership().unwrap().roles, Role::OWNER.into());
        assert_eq!(known.caller.session_id().unwrap().as_str(), ada.session_id);
    }
    for (status, suspended) in [("suspended", true), ("active", false)] {
        world.set_platform_status(platform, status).await;
        let known = gateway.resolve(&bearer(&ada.token)).await.unwrap();
        assert_eq!(known.suspended, suspended);
    }
    let _ = world
        .send_with_bearer(&ada.token, "POST", SIGN_OUT)
        .await
        .expect(200);
    let refused = gateway.resolve(&bearer(&ada.token)).await;
    assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
}

#[tokio::test]
async fn requests_through_the_gateway_extend_a_session() {
    let world = World::new();
    let gateway = authority(&world.app.store);
    let ada = world.sign_up(ADA).await;
    for (hours, left) in [(48, 168), (48, 168), (48, 168), (48, 168), (12, 156)] {
        world.tick(hours * 3_600);
        let known = gateway.resolve(&bearer(&ada.token)).await.unwrap();
        let until = known.expires_at.unwrap().since(world.clock.now());
        assert_eq!(until, Duration::from_secs(left * 3_600));
    }
}

#[derive(Debug)]
struct Failing(fn() -> StoreError);

#[async_trait]
impl Store for Failing {
    async fn begin(&self, _: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        Err((self.0)())
    }

    async fn back_off(&self, _: u32) {}
}

fn unreachable() -> StoreError {
    StoreError::Unavailable("no route".into())
}

fn corrupt() -> StoreError {
    StoreError::Corrupt {
        table: "sessions",
        column: "user_id",
        key: "a-secret-key".to_owned(),
        source: "nonsense".into(),
    }
}

#[tokio::test]
async fn a_failing_store_is_no_refusal_and_malformed_tokens_are_not_looked_up() {
    for (error, said) in [
        (unreachable as fn() -> StoreError, "no route"),
        (corrupt, "a row of sessions cannot be decoded"),
    ] {
        let store: Arc<dyn Store> = Arc::new(Failing(error));
        let gateway = authority(&store);
        match gateway.resolve(&bearer("abc")).await {
            Err(AuthorityError::Unavailable(text)) => assert!(text.contains(said), "{text}"),
            other => panic!("{other:?}"),
        }
        let key = Credential::ApiKey(Secret::new("core_x"));
        for credential in [bearer("no token"), bearer("abc.forged"), key] {
            let refused = gateway.resolve(&credential).await.unwrap_err();
            assert_eq!(refused, AuthorityError::Refused);
        }
    }
}

#[tokio::test]
async fn health_is_degraded_if_the_store_fails() {
    let broken = World::with(|app| app.store = Arc::new(Failing(unreachable)));
    for (world, status, store) in [
        (World::new(), "healthy", "ok"),
        (broken, "degraded", "failed"),
    ] {
        let told = world.iam.get(&Caller::Anonymous, "/health").await;
        let expected = json!({ "status": status, "checks": { "store": store } });
        assert_eq!(told.expect(200).json, expected);
    }
}
