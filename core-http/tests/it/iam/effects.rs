//! What follows from a commit of IAM and nothing else, and who makes it write at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::kernel::{Effect, Effects, Limits, SessionId, StoreError, UserId};
use core_domain::port::{AnnouncingStore, CommitListener, Mode, Store, UnitOfWork};
use serde_json::{Value, json};

use super::{
    ADA, BOOTSTRAP, CORE_SESSION, DAY, EVE, GET_SESSION, NEW, ORG_SETUP, SESSIONS, SIGN_OUT,
};
use crate::world::{PASSWORD, Person, World, operator};

/// Sees every unit that writes, and hears what is announced.
#[derive(Debug, Default)]
struct Watch {
    writes: AtomicUsize,
    heard: Mutex<Vec<Effect>>,
}

impl Watch {
    /// How many units that write were opened since it was asked last.
    fn writes(&self) -> usize {
        self.writes.swap(0, Ordering::SeqCst)
    }

    /// What was announced since it was asked last, in order, but for the jobs, messages, mails and audit entries that wait.
    fn access_changes(&self) -> Vec<Effect> {
        let mut heard = std::mem::take(&mut *self.heard.lock().unwrap());
        heard.retain(|effect| {
            !matches!(
                effect,
                Effect::JobReady
                    | Effect::MessageQueued
                    | Effect::MailQueued
                    | Effect::AuditWritten
            )
        });
        heard.sort();
        heard
    }

    /// The sessions and platforms that were announced since it was asked last.
    fn changed(&self) -> Vec<String> {
        let heard = std::mem::take(&mut *self.heard.lock().unwrap());
        let changed = heard.into_iter().filter_map(|effect| match effect {
            Effect::SessionChanged(id) => Some(id.to_string()),
            Effect::PlatformAccessChanged(id) => Some(id.to_string()),
            _ => None,
        });
        changed.collect()
    }
}

impl CommitListener for Watch {
    fn committed(&self, effects: &Effects) {
        self.heard.lock().unwrap().extend(effects.iter().cloned());
    }
}

#[derive(Debug)]
struct WatchedStore(Arc<dyn Store>, Arc<Watch>);

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

fn watched() -> (World, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    let world = World::with(|app| {
        let store = WatchedStore(Arc::clone(&app.store), Arc::clone(&watch));
        let listener = Arc::clone(&watch);
        app.store = Arc::new(AnnouncingStore::new(Arc::new(store), listener));
    });
    (world, watch)
}

#[tokio::test]
async fn a_session_that_ends_is_announced_and_no_other_one() {
    let (world, watch) = watched();
    let ada = world.sign_up(ADA).await;
    world.sign_up(EVE).await;
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let other = world.session_of(other.text("token")).await;
    let _ = world.sign_in(ADA, super::WRONG).await.expect(401);
    assert_eq!(watch.changed(), [""; 0]);
    let path = format!("{SESSIONS}/{other}");
    let ended = world.iam.delete(&ada.caller(), &path).await;
    let _ = ended.expect(200);
    assert_eq!(watch.changed(), [other]);
    for announced in [vec![ada.session_id.clone()], Vec::new()] {
        let _ = world.held(&ada.token, "POST", SIGN_OUT).await.expect(200);
        assert_eq!(watch.changed(), announced);
    }
    let entries = world.audit("session.revoked").await;
    assert_eq!(entries[0].actor_id, ada.user_id);
}

/// What ends sessions of Ada, within her session or by a token that was mailed to her.
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
                "currentPassword": PASSWORD, "newPassword": NEW, "revokeOtherSessions": true,
            });
            world.iam.post(&ada.caller(), &path, body).await
        }
        "reset-password" => world.reset_password(ADA, NEW).await,
        "ban" => {
            let path = format!("/api/core/users/{}/ban", ada.user_id);
            world.iam.post(&operator(), &path, json!({})).await
        }
        // Her address is not confirmed: whoever reads its mail is its owner, and whoever signed up may not be.
        "take-over" => {
            let [token, ..] = world.link_tokens(ADA).await;
            world.follow_magic_link(&token).await
        }
        _ => world.iam.post(&ada.caller(), &path, json!({})).await,
    };
    let _ = ended.expect(200);
}

#[tokio::test]
async fn whatever_ends_sessions_of_a_person_announces_each_of_them_and_none_of_anybody_else() {
    for by in ENDS {
        let (world, watch) = watched();
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
            let refused = world.held(token, "GET", SESSIONS).await;
            refused.refused(401, "UNAUTHORIZED");
        }
        let _ = world.held(&eve.token, "GET", SESSIONS).await.expect(200);
    }
}

#[tokio::test]
async fn who_shows_no_session_makes_nobody_write() {
    let (world, watch) = watched();
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
            world.ask(method, path, headers, body).await;
            assert_eq!(watch.writes(), 0, "{method} {path} {headers:?}");
        }
    }
    assert_eq!(watch.changed(), [""; 0]);
    for (hours, path, writes) in [
        (23, GET_SESSION, 0),
        (0, CORE_SESSION, 0),
        (1, GET_SESSION, 1),
        (24, CORE_SESSION, 1),
        (0, CORE_SESSION, 0),
    ] {
        world.tick(hours * 3_600);
        let _ = world.held(&ada.token, "GET", path).await.expect(200);
        assert_eq!(watch.writes(), writes, "{hours} {path}");
    }
}

#[tokio::test]
async fn a_sign_in_beyond_the_hundredth_session_ends_the_oldest_and_says_so() {
    let (world, watch) = watched();
    let ada = world.sign_up(ADA).await;
    for _ in 1..100 {
        world.tick(1);
        let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    }
    assert_eq!(watch.changed(), [""; 0]);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(watch.changed(), [ada.session_id.as_str()]);
    let listed = world.iam.get(&ada.caller(), SESSIONS).await.expect(200);
    let ids = listed.each("id");
    assert!(ids.len() == 100 && !ids.contains(&&*ada.session_id));
    let entries = world.audit("session.evicted").await;
    assert_eq!(entries.len(), 1);
    let whose = (&entries[0].entity_id, &entries[0].actor_id);
    assert_eq!(whose, (&ada.session_id, &ada.user_id));
    // Those that are over make room by themselves.
    world.tick(7 * DAY);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(watch.changed(), [""; 0]);
    assert_eq!(world.audit("session.evicted").await.len(), 1);
}

#[tokio::test]
async fn a_lower_limit_of_sessions_ends_all_that_are_too_many() {
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
    let listed = world.held(token.text("token"), "GET", SESSIONS).await;
    assert_eq!(listed.expect(200).each("id").len(), 2);
    let ended = world.audit("session.evicted").await;
    assert_eq!(ended.len(), 4);
    assert!(ended.iter().any(|entry| entry.entity_id == ada.session_id));
}

#[tokio::test]
async fn a_session_that_acts_for_another_organization_is_announced_and_recorded() {
    let (world, watch) = watched();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    world.sign_in(ADA, PASSWORD).await;
    let made = world.set_up(&ada, "engines").await.expect(201);
    assert_eq!(watch.changed(), [&*ada.session_id]);
    let entries = world.audit("session.organization_changed").await;
    assert_eq!(entries.len(), 1);
    let whose = (&entries[0].entity_id, &entries[0].actor_id);
    assert_eq!(whose, (&ada.session_id, &ada.user_id));
    let after = entries[0].after.as_ref().unwrap().value();
    assert_eq!(after["activeOrganizationId"], made.text("orgId"));
    let body = json!({ "ownerId": eve.user_id });
    let _ = world.as_service(BOOTSTRAP, &body).await.expect(201);
    assert_eq!(watch.changed(), [&*eve.session_id]);
    let platform = made.text("platformId");
    for (status, changes) in [
        ("suspended", 1),
        ("suspended", 0),
        ("active", 1),
        ("active", 0),
    ] {
        world.flag(platform, status).await;
        assert_eq!(watch.changed(), vec![platform; changes], "{status}");
    }
}
