//! The effects that commits of IAM announce, and the requests that make IAM write.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::kernel::{Effect, Effects, Limits, SessionId, StoreError, UserId};
use core_domain::port::{AnnouncingStore, CommitListener, Mode, Store, UnitOfWork};
use serde_json::{Value, json};

use super::{
    ADA, BOOTSTRAP, CORE_SESSION, DAY, EVE, GET_SESSION, NEW_PASSWORD, ORG_SETUP, SESSIONS,
    SIGN_OUT,
};
use crate::world::{PASSWORD, Person, World, operator};

/// Counts the units of work that write, and records the announced effects.
#[derive(Debug, Default)]
struct EffectRecorder {
    writes: AtomicUsize,
    effects: Mutex<Vec<Effect>>,
}

impl EffectRecorder {
    /// Returns the number of writing units of work begun since the last call.
    fn writes(&self) -> usize {
        self.writes.swap(0, Ordering::SeqCst)
    }

    /// Returns the effects announced since the last call, sorted. Leaves out those of queued jobs, messages, mails and
    /// audit entries.
    fn access_changes(&self) -> Vec<Effect> {
        let mut heard = std::mem::take(&mut *self.effects.lock().unwrap());
        heard.retain(|effect| {
            !matches!(
                effect,
                Effect::JobReady
                    | Effect::JobProgressed(_)
                    | Effect::MessageQueued
                    | Effect::MailQueued
                    | Effect::AuditWritten
            )
        });
        heard.sort();
        heard
    }

    /// Returns the ids of the sessions and platforms announced since the last call.
    fn take_changed_ids(&self) -> Vec<String> {
        let heard = std::mem::take(&mut *self.effects.lock().unwrap());
        let changed = heard.into_iter().filter_map(|effect| match effect {
            Effect::SessionChanged(id) => Some(id.to_string()),
            Effect::PlatformAccessChanged(id) => Some(id.to_string()),
            _ => None,
        });
        changed.collect()
    }
}

impl CommitListener for EffectRecorder {
    fn on_committed(&self, effects: &Effects) {
        self.effects.lock().unwrap().extend(effects.iter().cloned());
    }
}

#[derive(Debug)]
struct WatchedStore(Arc<dyn Store>, Arc<EffectRecorder>);

#[async_trait]
impl Store for WatchedStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        if mode == Mode::Write {
            self.1.writes.fetch_add(1, Ordering::SeqCst);
        }
        self.0.begin(mode).await
    }

    async fn back_off(&self, run: u32) {
        self.0.back_off(run).await;
    }
}

fn world_with_recorder() -> (World, Arc<EffectRecorder>) {
    let watch = Arc::new(EffectRecorder::default());
    let world = World::with(|app| {
        let store = WatchedStore(Arc::clone(&app.store), Arc::clone(&watch));
        let listener = Arc::clone(&watch);
        app.store = Arc::new(AnnouncingStore::new(Arc::new(store), listener));
    });
    (world, watch)
}

#[tokio::test]
async fn only_ended_sessions_are_announced() {
    let (world, watch) = world_with_recorder();
    let ada = world.sign_up(ADA).await;
    world.sign_up(EVE).await;
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let other = world.session_of(other.text("token")).await;
    let _ = world.sign_in(ADA, super::WRONG_PASSWORD).await.expect(401);
    assert_eq!(watch.take_changed_ids(), [""; 0]);
    let path = format!("{SESSIONS}/{other}");
    let ended = world.iam.delete(&ada.caller(), &path).await;
    let _ = ended.expect(200);
    assert_eq!(watch.take_changed_ids(), [other]);
    for announced in [vec![ada.session_id.clone()], Vec::new()] {
        let _ = world
            .send_with_bearer(&ada.token, "POST", SIGN_OUT)
            .await
            .expect(200);
        assert_eq!(watch.take_changed_ids(), announced);
    }
    let entries = world.audit("session.revoked").await;
    assert_eq!(entries[0].actor_id, ada.user_id);
}

/// The actions that end sessions of Ada: of her own, with a mailed token, or of an operator.
const ENDS: [&str; 6] = [
    "change-password",
    "reset-password",
    "revoke-sessions",
    "revoke-other-sessions",
    "ban",
    "take-over",
];

async fn end_sessions(world: &World, ada: &Person, by: &str) {
    let path = format!("/api/auth/{by}");
    let ended = match by {
        "change-password" => {
            let body = json!({
                "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD, "revokeOtherSessions": true,
            });
            world.iam.post(&ada.caller(), &path, body).await
        }
        "reset-password" => world.reset_password(ADA, NEW_PASSWORD).await,
        "ban" => {
            let path = format!("/api/core/users/{}/ban", ada.user_id);
            world.iam.post(&operator(), &path, json!({})).await
        }
        // Her address is not confirmed. The reader of its mail is the owner; the person who signed up may be another.
        "take-over" => {
            let [token, ..] = world.link_tokens(ADA).await;
            world.follow_magic_link(&token).await
        }
        _ => world.iam.post(&ada.caller(), &path, json!({})).await,
    };
    let _ = ended.expect(200);
}

#[tokio::test]
async fn every_action_that_ends_sessions_announces_exactly_the_ended_ones() {
    for by in ENDS {
        let (world, watch) = world_with_recorder();
        let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
        let mut tokens = vec![ada.token.clone()];
        let mut ended = vec![ada.session_id.clone()];
        for _ in 0..2 {
            let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
            let token = signed_in.text("token").to_owned();
            ended.push(world.session_of(&token).await);
            tokens.push(token);
            let _ = world.sign_in(EVE, PASSWORD).await.expect(200);
        }
        if by == "revoke-other-sessions" {
            ended.remove(0);
            tokens.remove(0);
        }
        watch.access_changes();
        end_sessions(&world, &ada, by).await;
        let ended = ended.iter().map(|id| SessionId::parse(id).unwrap());
        let mut expected: Vec<Effect> = ended.map(Effect::SessionChanged).collect();
        if by == "ban" {
            let user = UserId::parse(&ada.user_id).unwrap();
            expected.push(Effect::UserAccessChanged(user));
        }
        expected.sort();
        assert_eq!(watch.access_changes(), expected, "{by}");
        for token in &tokens {
            let refused = world.send_with_bearer(token, "GET", SESSIONS).await;
            refused.expect_error(401, "UNAUTHORIZED");
        }
        let _ = world
            .send_with_bearer(&eve.token, "GET", SESSIONS)
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn requests_without_a_session_write_nothing() {
    let (world, watch) = world_with_recorder();
    let ada = world.sign_up(ADA).await;
    watch.writes();
    let garbage = "x".repeat(43);
    let [bearer, forged] = [&garbage, "abc.def"].map(|token| format!("Bearer {token}"));
    let bare = format!("better-auth.session_token={}", ada.token);
    let session = format!("{SESSIONS}/{}", ada.session_id);
    for headers in [
        &[][..],
        &[("authorization", bearer.as_str())],
        &[("authorization", &forged)],
        &[("cookie", &bare), ("origin", crate::world::ORIGIN)],
    ] {
        for (method, path, body) in [
            ("GET", GET_SESSION, Value::Null),
            ("GET", CORE_SESSION, Value::Null),
            ("GET", SESSIONS, Value::Null),
            ("POST", SIGN_OUT, Value::Null),
            ("DELETE", &session, Value::Null),
            ("POST", ORG_SETUP, json!({ "name": "A", "slug": "abc" })),
            ("POST", BOOTSTRAP, json!({})),
        ] {
            world.send_unidentified(method, path, headers, body).await;
            assert_eq!(watch.writes(), 0, "{method} {path} {headers:?}");
        }
    }
    assert_eq!(watch.take_changed_ids(), [""; 0]);
    for (hours, path, writes) in [
        (23, GET_SESSION, 0),
        (0, CORE_SESSION, 0),
        (1, GET_SESSION, 1),
        (24, CORE_SESSION, 1),
        (0, CORE_SESSION, 0),
    ] {
        world.tick(hours * 3_600);
        let _ = world
            .send_with_bearer(&ada.token, "GET", path)
            .await
            .expect(200);
        assert_eq!(watch.writes(), writes, "{hours} {path}");
    }
}

#[tokio::test]
async fn the_101st_session_evicts_and_announces_the_oldest() {
    let (world, watch) = world_with_recorder();
    let ada = world.sign_up(ADA).await;
    for _ in 1..100 {
        world.tick(1);
        let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    }
    assert_eq!(watch.take_changed_ids(), [""; 0]);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(watch.take_changed_ids(), [ada.session_id.as_str()]);
    let listed = world.iam.get(&ada.caller(), SESSIONS).await.expect(200);
    let ids = listed.each("id");
    assert!(ids.len() == 100 && !ids.contains(&&*ada.session_id));
    let entries = world.audit("session.evicted").await;
    assert_eq!(entries.len(), 1);
    let whose = (&entries[0].entity_id, &entries[0].actor_id);
    assert_eq!(whose, (&ada.session_id, &ada.user_id));
    // Expired sessions do not count.
    world.tick(7 * DAY);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(watch.take_changed_ids(), [""; 0]);
    assert_eq!(world.audit("session.evicted").await.len(), 1);
}

#[tokio::test]
async fn a_lower_session_limit_evicts_all_excess_sessions() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for _ in 0..4 {
        world.tick(1);
        let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    }
    let world = world.with_limits(Limits {
        sessions_per_user: 2,
        ..Limits::default()
    });
    world.tick(1);
    let token = world.sign_in(ADA, PASSWORD).await.expect(200);
    let listed = world
        .send_with_bearer(token.text("token"), "GET", SESSIONS)
        .await;
    assert_eq!(listed.expect(200).each("id").len(), 2);
    let ended = world.audit("session.evicted").await;
    assert_eq!(ended.len(), 4);
    assert!(ended.iter().any(|entry| entry.entity_id == ada.session_id));
}

#[tokio::test]
async fn changing_the_active_organization_is_announced_and_audited() {
    let (world, watch) = world_with_recorder();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    world.sign_in(ADA, PASSWORD).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    assert_eq!(watch.take_changed_ids(), [&*ada.session_id]);
    let entries = world.audit("session.organization_changed").await;
    assert_eq!(entries.len(), 1);
    let whose = (&entries[0].entity_id, &entries[0].actor_id);
    assert_eq!(whose, (&ada.session_id, &ada.user_id));
    let after = entries[0].after.as_ref().unwrap().value();
    assert_eq!(after["activeOrganizationId"], made.text("orgId"));
    let body = json!({ "ownerId": eve.user_id });
    let _ = world
        .post_with_service_key(BOOTSTRAP, &body)
        .await
        .expect(201);
    assert_eq!(watch.take_changed_ids(), [&*eve.session_id]);
    let platform = made.text("platformId");
    for (status, changes) in [
        ("suspended", 1),
        ("suspended", 0),
        ("active", 1),
        ("active", 0),
    ] {
        world.set_platform_status(platform, status).await;
        assert_eq!(
            watch.take_changed_ids(),
            vec![platform; changes],
            "{status}"
        );
    }
}
