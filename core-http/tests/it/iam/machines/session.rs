//! The life of sessions: begin, use, extension, and their end by the owner, by expiry or by operators.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Model, Subject, listed_sessions, machine};
use crate::iam::DAY;
use crate::world::{Answer, Person, World, operator};

machine! { sessions_behave_like_their_model of Sessions }

/// Maximum number of sessions in a run.
const MAX_SESSIONS: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    SignIn {
        remember: bool,
        right: bool,
    },
    SignOut(usize),
    Revoke {
        by: usize,
        target: usize,
    },
    RevokeOthers(usize),
    RevokeAll(usize),
    ChangePassword {
        by: usize,
        right: bool,
        renew: bool,
    },
    /// Looks up a session, which extends it if an extension is due.
    Use(usize),
    Ban,
    Unban,
    Wait(u64),
}

#[derive(Clone, Debug)]
struct SessionModel {
    ended: bool,
    remembered: bool,
    began: u64,
    extended: u64,
    until: u64,
}

#[derive(Clone, Debug, Default)]
struct SessionListModel {
    now: u64,
    sessions: Vec<SessionModel>,
    banned: bool,
    /// The number of password changes.
    password: usize,
    wrong: usize,
    /// Whether the last step was allowed.
    good: bool,
}

impl SessionListModel {
    fn is_valid(&self, at: usize) -> bool {
        let session = &self.sessions[at];
        !session.ended && self.now < session.until
    }

    fn begin(&mut self, remembered: bool) {
        let life = if remembered { 7 * DAY } else { DAY };
        self.sessions.push(SessionModel {
            ended: false,
            remembered,
            began: self.now,
            extended: self.now,
            until: self.now + life,
        });
    }

    fn end_all_but(&mut self, kept: Option<usize>) {
        for (at, session) in self.sessions.iter_mut().enumerate() {
            session.ended |= Some(at) != kept;
        }
    }

    fn extend(&mut self, at: usize) {
        let now = self.now;
        let session = &mut self.sessions[at];
        let until = (now + 7 * DAY).min(session.began + 30 * DAY);
        if session.remembered && now - session.extended >= DAY && until > session.until {
            session.until = until;
            session.extended = now;
        }
    }
}

impl Model for SessionListModel {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let sign_in = (any::<bool>(), prop::bool::weighted(0.9))
            .prop_map(|(remember, right)| Step::SignIn { remember, right });
        let hours = prop::sample::select(vec![1, 12, 23, 24, 25, 24 * 6, 24 * 7]);
        let wait = hours.prop_map(|hours: u64| Step::Wait(hours * 3_600));
        let ban = prop::bool::ANY.prop_map(|ban| if ban { Step::Ban } else { Step::Unban });
        if self.sessions.is_empty() {
            return prop_oneof![6 => sign_in, 1 => ban, 1 => wait].boxed();
        }
        let one = 0..self.sessions.len();
        let change = (one.clone(), prop::bool::weighted(0.8), any::<bool>());
        prop_oneof![
            6 => sign_in,
            2 => one.clone().prop_map(Step::SignOut),
            3 => (one.clone(), one.clone()).prop_map(|(by, target)| Step::Revoke { by, target }),
            1 => one.clone().prop_map(Step::RevokeOthers),
            1 => one.clone().prop_map(Step::RevokeAll),
            2 => change.prop_map(|(by, right, renew)| Step::ChangePassword { by, right, renew }),
            5 => one.prop_map(Step::Use),
            1 => ban,
            5 => wait,
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        let there = |at: &usize| *at < self.sessions.len();
        match step {
            // Further wrong passwords are throttled, which other tests cover.
            Step::SignIn { right: false, .. } => self.wrong < 2,
            Step::SignIn { .. } => self.sessions.len() < MAX_SESSIONS,
            Step::ChangePassword { by, right, renew } => {
                there(by)
                    && (*right || self.wrong < 2)
                    && (!renew || self.sessions.len() < MAX_SESSIONS)
            }
            Step::SignOut(at) | Step::RevokeOthers(at) | Step::RevokeAll(at) | Step::Use(at) => {
                there(at)
            }
            Step::Revoke { by, target } => there(by) && there(target),
            Step::Ban | Step::Unban | Step::Wait(_) => true,
        }
    }

    fn apply(&mut self, step: &Step) {
        self.good = match *step {
            Step::SignIn { .. } | Step::Ban | Step::Unban | Step::Wait(_) => true,
            Step::SignOut(at)
            | Step::Use(at)
            | Step::RevokeOthers(at)
            | Step::RevokeAll(at)
            | Step::ChangePassword { by: at, .. } => self.is_valid(at),
            Step::Revoke { by, target } => self.is_valid(by) && self.is_valid(target),
        };
        match *step {
            Step::Wait(seconds) => self.now += seconds,
            Step::Ban => {
                self.banned = true;
                self.end_all_but(None);
            }
            Step::Unban => self.banned = false,
            Step::SignIn { remember, right } => {
                self.good = right && !self.banned;
                self.wrong += usize::from(!right);
                if self.good {
                    self.begin(remember);
                    self.wrong = 0;
                }
            }
            // A sign-out always succeeds, even if the session is no longer valid.
            Step::SignOut(at) => {
                self.sessions[at].ended = true;
                self.good = true;
            }
            _ if !self.good => {}
            Step::Revoke { target, .. } => self.sessions[target].ended = true,
            Step::RevokeOthers(by) => self.end_all_but(Some(by)),
            Step::RevokeAll(_) => self.end_all_but(None),
            Step::Use(at) => self.extend(at),
            Step::ChangePassword { right: false, .. } => {
                self.wrong += 1;
                self.good = false;
            }
            Step::ChangePassword { by, renew, .. } => {
                self.wrong = 0;
                self.password += 1;
                self.end_all_but((!renew).then_some(by));
                if renew {
                    self.begin(true);
                }
            }
        }
    }
}

struct Sessions {
    world: Arc<World>,
    person: Person,
    /// The token and id of each session, in the order of the model.
    known: Vec<(String, String)>,
    passwords: usize,
}

fn password(number: usize) -> String {
    match number {
        0 => crate::world::PASSWORD.to_owned(),
        n => format!("password number {n} of them"),
    }
}

impl Sessions {
    async fn send_with_session(&self, at: usize, method: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {}", self.known[at].0);
        let headers = [("authorization", bearer.as_str())];
        self.world
            .send_unidentified(method, path, &headers, body)
            .await
    }

    async fn store_session(&mut self, answer: &Answer) {
        let token = answer.text("token").to_owned();
        let id = self.world.session_of(&token).await;
        self.known.push((token, id));
    }

    async fn is_valid(&self, token: &str) -> bool {
        let body = json!({ "token": token });
        let path = "/api/validate-session";
        let told = self.world.iam.post(&operator(), path, body).await;
        told.expect(200).json["valid"] == true
    }

    async fn send(&self, step: &Step) -> Answer {
        let nothing = Value::Null;
        match step {
            Step::SignIn { remember, right } => {
                let number = if *right { self.passwords } else { usize::MAX };
                let body = json!({
                    "email": self.person.email, "password": password(number), "rememberMe": remember,
                });
                self.world.post(crate::iam::SIGN_IN, body).await
            }
            Step::SignOut(at) => {
                self.send_with_session(*at, "POST", crate::iam::SIGN_OUT, nothing)
                    .await
            }
            Step::Revoke { by, target } => {
                let path = format!("/api/sessions/{}", self.known[*target].1);
                self.send_with_session(*by, "DELETE", &path, nothing).await
            }
            Step::RevokeOthers(by) => {
                let path = "/api/auth/revoke-other-sessions";
                self.send_with_session(*by, "POST", path, nothing).await
            }
            Step::RevokeAll(by) => {
                let path = "/api/auth/revoke-sessions";
                self.send_with_session(*by, "POST", path, nothing).await
            }
            Step::ChangePassword { by, right, renew } => {
                let number = if *right { self.passwords } else { usize::MAX };
                let body = json!({
                    "currentPassword": password(number),
                    "newPassword": password(self.passwords + 1),
                    "revokeOtherSessions": renew,
                });
                self.send_with_session(*by, "POST", "/api/auth/change-password", body)
                    .await
            }
            Step::Use(at) => {
                let path = crate::iam::CORE_SESSION;
                self.send_with_session(*at, "GET", path, nothing).await
            }
            Step::Ban | Step::Unban | Step::Wait(_) => {
                let verb = if matches!(step, Step::Ban) {
                    "ban"
                } else {
                    "unban"
                };
                let path = format!("/api/core/users/{}/{verb}", self.person.user_id);
                self.world.iam.post(&operator(), &path, json!({})).await
            }
        }
    }
}

impl Subject for Sessions {
    type Model = SessionListModel;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let person = world.sign_up(&format!("sessions-{case}@example.org")).await;
        let out = world
            .send_with_bearer(&person.token, "POST", crate::iam::SIGN_OUT)
            .await;
        let _ = out.expect(200);
        Self {
            world,
            person,
            known: Vec::new(),
            passwords: 0,
        }
    }

    async fn step(&mut self, step: &Step, model: &SessionListModel) {
        if let Step::Wait(seconds) = step {
            return self.world.tick(*seconds);
        }
        let answer = self.send(step).await;
        let context = format!("{step:?}: {} {}", answer.status, answer.json);
        assert_eq!(answer.is_success(), model.good, "{context}");
        self.passwords = model.password;
        if model.sessions.len() > self.known.len() {
            self.store_session(&answer).await;
        }
    }

    async fn check_state(&self, model: &SessionListModel) {
        let mut valid = Vec::new();
        for (at, (token, id)) in self.known.iter().enumerate() {
            let expected = model.is_valid(at);
            assert_eq!(self.is_valid(token).await, expected, "session {at}");
            if expected {
                valid.push(id.clone());
            }
        }
        let list = listed_sessions(&self.world, &self.person).await;
        let mut listed: Vec<&str> = list.each("id");
        listed.sort_unstable();
        valid.sort_unstable();
        assert_eq!(listed, valid);
    }
}
