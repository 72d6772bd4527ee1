//! The conditions that end the change feed of a follower.

use std::time::Duration;

use core_domain::kernel::{ApiKeyId, Caller, OrganizationId, Role, UserId};
use core_http::kernel::Draining;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::world::{
    Follower, ORIGIN, Person, World, operator, platform_path, vouched_for, world_with_notifications,
};

/// An owner and a member of the organization of a platform.
struct Team {
    world: World,
    ada: Person,
    eve: Person,
    organization: String,
    platform: String,
}

impl Team {
    async fn of(world: World) -> Self {
        let ada = world.sign_up("ada@example.org").await;
        let eve = world.sign_up("eve@example.org").await;
        let made = world.set_up_organization(&ada, "engines").await.expect(201);
        let organization = made.text("orgId").to_owned();
        world.join([&ada, &eve], &organization, "member").await;
        world.seal().await;
        Self {
            platform: made.text("platformId").to_owned(),
            world,
            ada,
            eve,
            organization,
        }
    }

    /// Returns Eve as an in-process gateway identifies her.
    fn eve(&self) -> Caller {
        let mut eve = self.eve.member_of(&self.platform, Role::MEMBER);
        if let Caller::User { membership, .. } = &mut eve {
            let membership = membership.as_mut().unwrap();
            membership.organization_id = OrganizationId::parse(&self.organization).unwrap();
        }
        eve
    }

    /// Creates an API key of Eve. Returns it as the caller that an in-process gateway identifies, with the body that
    /// deletes it.
    async fn api_key_of_eve(&self) -> (Caller, Value) {
        let path = "/api/auth/api-key/create";
        let body = json!({ "organizationId": self.organization, "scopes": ["event:read"] });
        let made = self.world.iam.post(&self.eve.caller(), path, body).await;
        let id = made.expect(200).id();
        let program = Caller::ApiKey {
            key_id: ApiKeyId::parse(&id).unwrap(),
            user_id: UserId::parse(&self.eve.user_id),
            membership: self.eve().membership().cloned(),
        };
        (program, json!({ "keyId": id }))
    }

    async fn follower(&self, caller: &Caller) -> Follower {
        Follower::of(&self.world, caller, "", None).await
    }

    /// Creates an event that Eve would get.
    async fn change(&self) {
        self.world.tenant(&self.platform, "tenant").await;
        self.world.seal().await;
    }

    async fn end_access_by(&self, way: &str, key: Value) {
        let iam = &self.world.iam;
        let (ada, eve) = (self.ada.caller(), self.eve.caller());
        let organization = &self.organization;
        let ended = match way {
            "sign-out" => {
                let headers = [("cookie", self.eve.cookie.as_str()), ("origin", ORIGIN)];
                let path = "/api/auth/sign-out";
                iam.send(&eve, "POST", path, &headers, json!({})).await
            }
            "revoked session" => {
                let path = format!("/api/sessions/{}", self.eve.session_id);
                iam.delete(&eve, &path).await
            }
            "deleted key" => iam.post(&eve, "/api/auth/api-key/delete", key).await,
            "ban" => {
                let path = format!("/api/core/users/{}/ban", self.eve.user_id);
                iam.post(&operator(), &path, json!({})).await
            }
            "mapped role" => {
                let body =
                    json!({ "orgId": organization, "role": "member", "permissions": ["entity:*"] });
                iam.post(&ada, "/api/core/roles", body).await
            }
            "denied" => {
                let body = json!({
                    "userId": self.eve.user_id, "orgId": organization, "permission": "event:read",
                    "granted": false, "grantedBy": self.ada.user_id,
                });
                iam.post(&ada, "/api/core/grants", body).await
            }
            "removed" => {
                let body =
                    json!({ "memberIdOrEmail": self.eve.email, "organizationId": organization });
                let world = &self.world;
                world
                    .call_organization(&self.ada, "remove-member", body)
                    .await
            }
            _ => {
                let path = platform_path(&self.platform, "/suspend");
                self.world
                    .registry
                    .post(&operator(), &path, json!({}))
                    .await
            }
        };
        assert!(ended.status.is_success(), "{way}: {}", ended.json);
    }
}

/// Advances the time so that the feed is not about to check its reader's access anyway.
async fn wait_in_silence(follower: &mut Follower) {
    let silent = timeout(Duration::from_secs(2), follower.next()).await;
    assert!(silent.is_err());
}

const WAYS_TO_END_ACCESS: [&str; 8] = [
    "sign-out",
    "revoked session",
    "deleted key",
    "ban",
    "mapped role",
    "denied",
    "removed",
    "suspended",
];

#[tokio::test(start_paused = true)]
async fn the_feed_ends_at_once_when_its_reader_loses_access_in_this_process() {
    for way in WAYS_TO_END_ACCESS {
        let team = Team::of(world_with_notifications()).await;
        let (program, key) = team.api_key_of_eve().await;
        let caller = if way == "deleted key" {
            program
        } else {
            team.eve()
        };
        let mut follower = team.follower(&caller).await;
        assert_eq!(follower.next().await.unwrap(), ":\n\n", "{way}");
        wait_in_silence(&mut follower).await;
        let ended = async {
            team.end_access_by(way, key).await;
            Instant::now()
        };
        let (told, ended) = tokio::join!(follower.next(), ended);
        assert_eq!(told, None, "{way}");
        assert_eq!(ended.elapsed(), Duration::ZERO, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_feed_sends_nothing_and_ends_within_seconds_after_access_was_lost_elsewhere() {
    for way in WAYS_TO_END_ACCESS {
        for tells in [true, false] {
            let team = Team::of(World::new()).await;
            let (program, key) = team.api_key_of_eve().await;
            let caller = if way == "deleted key" {
                program
            } else {
                team.eve()
            };
            let mut follower = team.follower(&caller).await;
            assert_eq!(follower.next().await.unwrap(), ":\n\n", "{way}");
            team.end_access_by(way, key).await;
            if tells {
                team.change().await;
            }
            let began = Instant::now();
            assert_eq!(follower.next().await, None, "{way}");
            assert!(began.elapsed() <= Duration::from_secs(6), "{way}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_were_read_but_not_sent_when_access_ended_are_not_sent() {
    let team = Team::of(world_with_notifications()).await;
    let mut follower = team.follower(&team.eve()).await;
    assert_eq!(follower.next().await.unwrap(), ":\n\n");
    for name in ["one", "two"] {
        team.world.tenant(&team.platform, name).await;
    }
    team.world.seal().await;
    assert_eq!(follower.next_type().await, "entity.created");
    team.end_access_by("sign-out", Value::Null).await;
    assert_eq!(follower.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_user_named_by_a_service_follows_until_access_ends() {
    let of_a_session_or_key = ["sign-out", "revoked session", "deleted key"];
    let ways = WAYS_TO_END_ACCESS
        .iter()
        .filter(|way| !of_a_session_or_key.contains(way));
    for way in ways {
        let team = Team::of(world_with_notifications()).await;
        let mut eve = vouched_for(team.eve());
        if let Caller::User { session_id, .. } = &mut eve {
            *session_id = None;
        }
        let mut follower = team.follower(&eve).await;
        for _ in 0..8 {
            assert_eq!(follower.next().await.unwrap(), ":\n\n", "{way}");
        }
        wait_in_silence(&mut follower).await;
        let ended = async {
            team.end_access_by(way, Value::Null).await;
            Instant::now()
        };
        let (told, ended) = tokio::join!(follower.next(), ended);
        assert_eq!(told, None, "{way}");
        assert_eq!(ended.elapsed(), Duration::ZERO, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_feed_ends_when_the_server_stops() {
    let world = World::new();
    let (stop, stopped) = watch::channel(false);
    let mut follower = Follower::of(&world, &operator(), "", Some(Draining::new(stopped))).await;
    let began = Instant::now();
    let (end, _) = tokio::join!(follower.next(), async { stop.send_replace(true) });
    assert_eq!(end, None);
    assert_eq!(began.elapsed(), Duration::ZERO);
}
