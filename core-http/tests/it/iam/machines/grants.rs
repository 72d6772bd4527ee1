//! The permissions of a member while roles are mapped, permissions are granted and denied, and time passes.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Model, Subject, Visit, machine};
use crate::world::{Answer, Person, World, operator};

machine! { member_permissions_behave_like_their_model of Member }

/// The permissions checked after each step, and whether the built-in roles `member` and `admin` have them.
const CHECKED_PERMISSIONS: [(&str, bool, bool); 8] = [
    ("platform:read", true, true),
    ("platform:update", false, true),
    ("platform:manage", false, false),
    ("entity:read", true, true),
    ("entity:write", false, true),
    ("job:create", false, true),
    ("audit:read", true, true),
    ("organization:delete", false, false),
];

const PATTERNS: [&str; 8] = [
    "*:*",
    "*:read",
    "platform:*",
    "entity:*",
    "entity:write",
    "job:create",
    "audit:read",
    "*:delete",
];

/// The roles that the member can have.
const ROLES: [&str; 4] = ["member", "admin", "auditor", "member,auditor"];

/// The roles that can be mapped.
const MAPPABLE_ROLES: [&str; 2] = ["member", "auditor"];

#[derive(Clone, Debug)]
enum Step {
    Grant {
        pattern: usize,
        granted: bool,
        life: Option<u64>,
    },
    TakeBack(usize),
    Map {
        role: usize,
        patterns: Vec<usize>,
    },
    Unmap(usize),
    Become(usize),
    Wait(u64),
}

#[derive(Clone, Debug)]
struct GrantModel {
    pattern: usize,
    granted: bool,
    until: Option<u64>,
    gone: bool,
}

#[derive(Clone, Debug, Default)]
struct Rules {
    now: u64,
    role: usize,
    mapped: [Option<Vec<usize>>; MAPPABLE_ROLES.len()],
    grants: Vec<GrantModel>,
    good: bool,
}

/// Returns whether a pattern matches a permission, word by word.
fn matches(pattern: &str, permission: &str) -> bool {
    let mut words = pattern.split(':').zip(permission.split(':'));
    words.all(|(pattern, word)| pattern == "*" || pattern == word)
}

impl Rules {
    fn counts(&self, given: &GrantModel) -> bool {
        !given.gone && given.until.is_none_or(|until| self.now < until)
    }

    fn has_matching_grant(&self, granted: bool, permission: &str) -> bool {
        let given = self.grants.iter().filter(|given| given.granted == granted);
        let mut given = given.filter(|given| self.counts(given));
        given.any(|given| matches(PATTERNS[given.pattern], permission))
    }

    fn role_allows(&self, role: &str, asked: (&str, bool, bool)) -> bool {
        let position = MAPPABLE_ROLES.iter().position(|mapped| *mapped == role);
        match (position.and_then(|at| self.mapped[at].as_ref()), role) {
            (Some(patterns), _) => patterns.iter().any(|at| matches(PATTERNS[*at], asked.0)),
            (None, "member") => asked.1,
            (None, "admin") => asked.2,
            (None, _) => false,
        }
    }

    fn is_allowed(&self, asked: (&str, bool, bool)) -> bool {
        if self.has_matching_grant(false, asked.0) {
            return false;
        }
        let mut roles = ROLES[self.role].split(',');
        self.has_matching_grant(true, asked.0) || roles.any(|role| self.role_allows(role, asked))
    }

    fn grant(&mut self, pattern: usize, granted: bool, life: Option<u64>) -> bool {
        let same = |given: &GrantModel| given.pattern == pattern && given.granted == granted;
        if self
            .grants
            .iter()
            .any(|given| same(given) && self.counts(given))
        {
            return false;
        }
        // An expired grant is replaced by an equal new one.
        for given in self.grants.iter_mut().filter(|given| same(given)) {
            given.gone = true;
        }
        let until = life.map(|life| self.now + life);
        self.grants.push(GrantModel {
            pattern,
            granted,
            until,
            gone: false,
        });
        true
    }
}

impl Model for Rules {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let life = prop::option::of(prop::sample::select(vec![1, 60, 3_600]));
        let grant = (0..PATTERNS.len(), any::<bool>(), life);
        let grant = grant.prop_map(|(pattern, granted, life)| Step::Grant {
            pattern,
            granted,
            life,
        });
        let patterns = prop::collection::vec(0..PATTERNS.len(), 1..4);
        let map = (0..MAPPABLE_ROLES.len(), patterns)
            .prop_map(|(role, patterns)| Step::Map { role, patterns });
        let wait = prop::sample::select(vec![1, 59, 60, 3_600]).prop_map(Step::Wait);
        let back = (0..self.grants.len().max(1)).prop_map(Step::TakeBack);
        prop_oneof![
            8 => grant,
            3 => back,
            3 => map,
            2 => (0..MAPPABLE_ROLES.len()).prop_map(Step::Unmap),
            2 => (0..ROLES.len()).prop_map(Step::Become),
            5 => wait,
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        !matches!(step, Step::TakeBack(at) if *at >= self.grants.len())
    }

    fn apply(&mut self, step: &Step) {
        self.good = match step {
            Step::Grant {
                pattern,
                granted,
                life,
            } => self.grant(*pattern, *granted, *life),
            Step::TakeBack(at) => !std::mem::replace(&mut self.grants[*at].gone, true),
            Step::Map { role, patterns } => {
                self.mapped[*role] = Some(patterns.clone());
                true
            }
            Step::Unmap(role) => self.mapped[*role].take().is_some(),
            Step::Become(role) => {
                let known = !ROLES[*role].contains("auditor") || self.mapped[1].is_some();
                if known {
                    self.role = *role;
                }
                known
            }
            Step::Wait(seconds) => {
                self.now += seconds;
                true
            }
        };
    }
}

struct Member {
    world: Arc<World>,
    ada: Person,
    eve: Person,
    organization: String,
    membership: String,
    grants: Vec<String>,
}

impl Member {
    async fn grant(&self, pattern: usize, granted: bool, life: Option<u64>) -> Answer {
        let now = u64::try_from(self.world.clock_seconds()).unwrap();
        let grant = json!({
            "orgId": self.organization, "userId": self.eve.user_id, "permission": PATTERNS[pattern],
            "granted": granted, "grantedBy": self.ada.user_id, "expiresAt": life.map(|life| now + life),
        });
        self.world
            .iam
            .post(&operator(), "/api/core/grants", grant)
            .await
    }

    async fn map(&self, role: usize, patterns: &[usize]) -> Answer {
        let patterns: Vec<&str> = patterns.iter().map(|at| PATTERNS[*at]).collect();
        let mapping = json!({
            "orgId": self.organization, "role": MAPPABLE_ROLES[role], "permissions": patterns,
        });
        self.world
            .iam
            .post(&operator(), "/api/core/roles", mapping)
            .await
    }

    async fn send(&self, step: &Step) -> Answer {
        match step {
            Step::Grant {
                pattern,
                granted,
                life,
            } => self.grant(*pattern, *granted, *life).await,
            Step::Map { role, patterns } => self.map(*role, patterns).await,
            Step::TakeBack(at) => {
                let path = format!("/api/core/grants/{}", self.grants[*at]);
                self.world.iam.delete(&operator(), &path).await
            }
            Step::Unmap(role) => {
                let path = format!(
                    "/api/core/roles/{}/{}",
                    self.organization, MAPPABLE_ROLES[*role]
                );
                self.world.iam.delete(&operator(), &path).await
            }
            Step::Become(_) | Step::Wait(_) => {
                let Step::Become(role) = step else {
                    unreachable!("a wait is not a request")
                };
                let roles: Vec<&str> = ROLES[*role].split(',').collect();
                let body = json!({
                    "memberId": self.membership, "role": roles, "organizationId": self.organization,
                });
                let visit = Visit::of(&self.world, &self.ada).await;
                let call = "update-member-role";
                let changed = self
                    .world
                    .call_organization(&visit.person, call, body)
                    .await;
                visit.sign_out(changed).await
            }
        }
    }

    /// Returns whether IAM allows a single permission, as its explanation says.
    async fn is_allowed_in_explanation(&self, permission: &str) -> bool {
        let path = format!(
            "/api/core/grants?orgId={}&explain=true&userId={}&permission={permission}",
            self.organization, self.eve.user_id
        );
        let told = self.world.iam.get(&operator(), &path).await.expect(200);
        told.json["decision"]["allowed"] == true
    }
}

impl Subject for Member {
    type Model = Rules;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let ada = world.sign_up(&format!("ada-{case}@example.com")).await;
        let eve = world.sign_up(&format!("eve-{case}@example.com")).await;
        let organization = world
            .create_organization(&ada, &format!("grants-{case}"))
            .await;
        let membership = world.join([&ada, &eve], &organization, "member").await;
        Self {
            world,
            ada,
            eve,
            organization,
            membership,
            grants: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step, model: &Rules) {
        if let Step::Wait(seconds) = step {
            return self.world.tick(*seconds);
        }
        let answer = self.send(step).await;
        let context = format!("{step:?}: {} {}", answer.status, answer.json);
        assert_eq!(answer.is_success(), model.good, "{context}");
        if model.grants.len() > self.grants.len() {
            self.grants.push(answer.id());
        }
    }

    async fn check_state(&self, model: &Rules) {
        let path = "/api/validate-session";
        let body = json!({ "token": self.eve.token });
        let session = self
            .world
            .iam
            .post(&operator(), path, body)
            .await
            .expect(200);
        let patterns = session.json["permissions"].as_array().unwrap();
        let patterns: Vec<&str> = patterns.iter().filter_map(Value::as_str).collect();
        for asked in CHECKED_PERMISSIONS {
            let expected = model.is_allowed(asked);
            let held = patterns.iter().any(|pattern| matches(pattern, asked.0));
            assert_eq!(held, expected, "{}: {patterns:?}", asked.0);
            assert_eq!(
                self.is_allowed_in_explanation(asked.0).await,
                expected,
                "{}",
                asked.0
            );
        }
    }
}
