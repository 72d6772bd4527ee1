//! The life of API keys: creation, rotation with an overlap, disabling, expiry, deletion and rate limits.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Model, Subject, Visit, machine};
use crate::iam::DAY;
use crate::world::{Answer, Person, World};

machine! { api_keys_behave_like_their_model of Keys }

/// Maximum number of requests per minute for a key with a limit.
const LIMIT: usize = 3;

/// Upper bound of the time in a run, in seconds. Expired keys are deleted only later.
const MAX_RUN_SECONDS: u64 = 25 * DAY;

#[derive(Clone, Debug)]
enum Step {
    Make {
        days: Option<u64>,
        limited: bool,
    },
    Rotate {
        key: usize,
        overlap: u64,
    },
    Enable {
        key: usize,
        enabled: bool,
    },
    Delete(usize),
    /// Presents a secret of the key. `back` counts from the current secret, which is 0, to former ones.
    Present {
        key: usize,
        back: usize,
    },
    Wait(u64),
}

#[derive(Clone, Debug)]
struct KeyModel {
    /// The number of secrets that the key has had.
    secrets: usize,
    overlap_until: u64,
    until: Option<u64>,
    enabled: bool,
    deleted: bool,
    limited: bool,
    /// The number of uses since the clock last moved.
    used: usize,
}

#[derive(Clone, Debug, Default)]
struct KeyListModel {
    now: u64,
    keys: Vec<KeyModel>,
    is_success_expected: bool,
    verdict: &'static str,
}

impl KeyListModel {
    fn is_over(&self, at: usize) -> bool {
        self.keys[at].until.is_some_and(|until| self.now >= until)
    }

    fn verdict(&mut self, at: usize, back: usize) -> &'static str {
        let (over, now) = (self.is_over(at), self.now);
        let key = &mut self.keys[at];
        if back > 1 {
            return "NOT_FOUND";
        }
        if key.deleted || !key.enabled {
            return "REVOKED";
        }
        if over {
            return "EXPIRED";
        }
        if back == 1 && now >= key.overlap_until {
            return "REVOKED";
        }
        key.used += 1;
        if key.limited && key.used > LIMIT {
            return "RATE_LIMITED";
        }
        "VALID"
    }

    fn rotate(&mut self, at: usize, overlap: u64) -> bool {
        let (over, now) = (self.is_over(at), self.now);
        let key = &mut self.keys[at];
        let overlaps = now < key.overlap_until;
        if key.deleted || !key.enabled || over || (overlaps && overlap > 0) {
            return false;
        }
        key.secrets += 1;
        key.overlap_until = now + overlap;
        true
    }
}

impl Model for KeyListModel {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let days = prop::option::weighted(0.4, prop::sample::select(vec![1, 2]));
        let make = (days, any::<bool>()).prop_map(|(days, limited)| Step::Make { days, limited });
        if self.keys.is_empty() {
            return make.boxed();
        }
        let one = 0..self.keys.len();
        let overlap = prop::sample::select(vec![0, 60, 3_600]);
        let back = prop::sample::select(vec![0, 0, 0, 1, 1, 2]);
        let rotate =
            (one.clone(), overlap).prop_map(|(key, overlap)| Step::Rotate { key, overlap });
        let present = (one.clone(), back).prop_map(|(key, back)| Step::Present { key, back });
        let enable = (one.clone(), any::<bool>());
        prop_oneof![
            2 => make,
            4 => rotate,
            2 => enable.prop_map(|(key, enabled)| Step::Enable { key, enabled }),
            1 => one.prop_map(Step::Delete),
            12 => present,
            4 => prop::sample::select(vec![60, 3_540, 3_600, DAY]).prop_map(Step::Wait),
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        match step {
            Step::Make { .. } => self.keys.len() < 4,
            Step::Wait(seconds) => self.now + seconds < MAX_RUN_SECONDS,
            Step::Rotate { key, .. } | Step::Enable { key, .. } | Step::Delete(key) => {
                *key < self.keys.len()
            }
            Step::Present { key, back } => {
                self.keys.get(*key).is_some_and(|key| *back < key.secrets)
            }
        }
    }

    fn apply(&mut self, step: &Step) {
        self.is_success_expected = true;
        match *step {
            Step::Make { days, limited } => self.keys.push(KeyModel {
                secrets: 1,
                overlap_until: 0,
                until: days.map(|days| self.now + days * DAY),
                enabled: true,
                deleted: false,
                limited,
                used: 0,
            }),
            Step::Rotate { key, overlap } => self.is_success_expected = self.rotate(key, overlap),
            Step::Enable { key, enabled } => {
                self.is_success_expected = !self.keys[key].deleted;
                if self.is_success_expected {
                    self.keys[key].enabled = enabled;
                }
            }
            Step::Delete(key) => {
                self.is_success_expected = !std::mem::replace(&mut self.keys[key].deleted, true)
            }
            Step::Present { key, back } => self.verdict = self.verdict(key, back),
            Step::Wait(seconds) => {
                self.now += seconds;
                self.keys.iter_mut().for_each(|key| key.used = 0);
            }
        }
    }
}

struct Keys {
    world: Arc<World>,
    ada: Person,
    organization: String,
    /// The id of each key, and its secrets, oldest first.
    keys: Vec<(String, Vec<String>)>,
}

impl Keys {
    /// Calls a route as Ada, in a new session.
    async fn call(&self, call: &str, body: Value) -> Answer {
        let visit = Visit::of(&self.world, &self.ada).await;
        let path = format!("/api/auth/api-key/{call}");
        let answer = self
            .world
            .iam
            .post(&visit.person.caller(), &path, body)
            .await;
        visit.sign_out(answer).await
    }

    async fn send(&self, step: &Step) -> Answer {
        match step {
            Step::Make { days, limited } => {
                let body = json!({
                    "organizationId": self.organization,
                    "expiresIn": days.map(|days| days * DAY),
                    "requestsPerMinute": limited.then_some(LIMIT),
                });
                self.call("create", body).await
            }
            Step::Rotate { key, overlap } => {
                let body = json!({ "keyId": self.keys[*key].0, "overlap": overlap });
                self.call("rotate", body).await
            }
            Step::Enable { key, enabled } => {
                let body = json!({ "keyId": self.keys[*key].0, "enabled": enabled });
                self.call("update", body).await
            }
            Step::Delete(key) => {
                self.call("delete", json!({ "keyId": self.keys[*key].0 }))
                    .await
            }
            Step::Present { .. } | Step::Wait(_) => unreachable!("not a request"),
        }
    }

    async fn present(&self, key: usize, back: usize) -> String {
        let secrets = &self.keys[key].1;
        let secret = &secrets[secrets.len() - 1 - back];
        self.world.key_verdict(secret).await
    }
}

impl Subject for Keys {
    type Model = KeyListModel;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let ada = world.sign_up(&format!("keys-{case}@example.com")).await;
        let made = world
            .set_up_organization(&ada, &format!("keys-{case}"))
            .await
            .expect(201);
        Self {
            world,
            ada,
            organization: made.text("orgId").to_owned(),
            keys: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step, model: &KeyListModel) {
        match step {
            Step::Wait(seconds) => return self.world.tick(*seconds),
            Step::Present { key, back } => {
                let told = self.present(*key, *back).await;
                return assert_eq!(told, model.verdict, "{step:?}");
            }
            _ => {}
        }
        let answer = self.send(step).await;
        let context = format!("{step:?}: {} {}", answer.status, answer.json);
        assert_eq!(answer.is_success(), model.is_success_expected, "{context}");
        match step {
            Step::Make { .. } => {
                let secret = answer.text("key").to_owned();
                self.keys.push((answer.id(), vec![secret]));
            }
            Step::Rotate { key, .. } if model.is_success_expected => {
                self.keys[*key].1.push(answer.text("key").to_owned());
            }
            _ => {}
        }
    }

    async fn check_state(&self, model: &KeyListModel) {
        let path = "/api/auth/api-key/list";
        let caller = self.ada.caller();
        let list = self.world.iam.get(&caller, path).await.expect(200);
        let listed = list.json["apiKeys"].as_array().unwrap();
        let there = model.keys.iter().filter(|key| !key.deleted).count();
        assert_eq!(listed.len(), there, "{}", list.json);
        for ((id, _), key) in self
            .keys
            .iter()
            .zip(&model.keys)
            .filter(|(_, key)| !key.deleted)
        {
            let shown = listed.iter().find(|shown| shown["id"] == **id).unwrap();
            assert_eq!(shown["enabled"], key.enabled, "{shown}");
        }
    }
}
