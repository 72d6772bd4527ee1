//! The token family of a program: exchange, repetition in time, late reuse, revocation and expiry.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Model, Subject, listed_sessions, machine};
use crate::iam::DAY;
use crate::world::{Person, World, operator};

machine! { token_families_behave_like_their_model of Family }

#[derive(Clone, Debug)]
enum Step {
    /// A device login, if the person has no token family.
    LogIn,
    /// Exchanges a refresh token. The number counts from the newest one, which is 0, to former ones.
    Refresh(usize),
    /// The person ends the session from their list.
    Revoke,
    Ban,
    Unban,
    Wait(u64),
}

/// A token family: the time at which each token was issued. A token was exchanged when the next was issued.
#[derive(Clone, Debug, Default)]
struct TokenFamilyModel {
    now: u64,
    began: u64,
    issued: Vec<u64>,
    ended: bool,
    banned: bool,
    good: bool,
    /// Whether the expected response repeats the one before.
    is_repeat_expected: bool,
}

impl TokenFamilyModel {
    fn end(&self) -> u64 {
        self.began + 90 * DAY
    }

    fn is_over(&self, at: usize) -> bool {
        self.now >= (self.issued[at] + 30 * DAY).min(self.end())
    }

    fn session_is_valid(&self) -> bool {
        let last = self.issued.len().checked_sub(1);
        !self.ended && last.is_some_and(|last| !self.is_over(last))
    }

    fn refresh(&mut self, back: usize) {
        let last = self.issued.len() - 1;
        let at = last.saturating_sub(back);
        if !self.session_is_valid() || self.is_over(at) {
            return;
        }
        if at == last {
            self.issued.push(self.now);
            self.good = true;
        } else if at + 1 == last && self.now - self.issued[last] <= 10 {
            (self.good, self.is_repeat_expected) = (true, true);
        } else {
            self.ended = true;
        }
    }
}

impl Model for TokenFamilyModel {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let wait = prop::sample::select(vec![
            1,
            9,
            10,
            11,
            899,
            900,
            DAY,
            15 * DAY,
            29 * DAY,
            30 * DAY,
        ]);
        let wait = wait.prop_map(Step::Wait);
        let ban =
            prop::bool::weighted(0.4).prop_map(|ban| if ban { Step::Ban } else { Step::Unban });
        if self.issued.is_empty() || self.ended {
            return prop_oneof![5 => Just(Step::LogIn), 2 => ban, 1 => wait].boxed();
        }
        let back = prop::sample::select(vec![0, 0, 0, 1, 1, 2]);
        prop_oneof![
            12 => back.prop_map(Step::Refresh),
            1 => Just(Step::Revoke),
            1 => ban,
            8 => wait,
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        match step {
            Step::Refresh(_) => !self.issued.is_empty(),
            Step::LogIn => self.issued.is_empty() || self.ended,
            _ => true,
        }
    }

    fn apply(&mut self, step: &Step) {
        (self.good, self.is_repeat_expected) = (false, false);
        match *step {
            Step::Wait(seconds) => self.now += seconds,
            Step::LogIn if self.banned => {}
            Step::LogIn => {
                (self.began, self.issued, self.ended) = (self.now, vec![self.now], false);
                self.good = true;
            }
            Step::Refresh(back) => self.refresh(back),
            Step::Revoke => {
                self.good = self.session_is_valid();
                self.ended |= self.good;
            }
            Step::Ban => (self.banned, self.ended) = (true, true),
            Step::Unban => self.banned = false,
        }
    }
}

struct Family {
    world: Arc<World>,
    person: Person,
    session: String,
    /// The refresh token and the access token of each exchange, in the order of the model.
    tokens: Vec<(String, String)>,
}

impl Family {
    /// Signs the person in and approves a device. A new session is needed, because the first one may have expired.
    async fn log_in(&mut self, good: bool) {
        let signed_in = self
            .world
            .sign_in(&self.person.email, crate::world::PASSWORD)
            .await;
        assert_eq!(signed_in.is_success(), good, "{}", signed_in.json);
        if !good {
            return;
        }
        let token = signed_in.text("token").to_owned();
        self.person.session_id = self.world.session_of(&token).await;
        let tokens = self.world.device_login(&self.person).await;
        self.tokens = vec![pair(&tokens.json)];
        self.session = self.world.session_of(&self.tokens[0].1).await;
        let out = self
            .world
            .send_with_bearer(&token, "POST", crate::iam::SIGN_OUT)
            .await;
        let _ = out.expect(200);
    }

    async fn refresh(&mut self, back: usize, model: &TokenFamilyModel) {
        let at = (self.tokens.len() - 1).saturating_sub(back);
        let told = self.world.refresh(&self.tokens[at].0).await;
        if !model.good {
            told.expect_error(400, "invalid_grant");
            return;
        }
        let tokens = pair(&told.expect(200).json);
        if model.is_repeat_expected {
            assert_eq!(Some(&tokens), self.tokens.last());
        } else {
            assert!(!self.tokens.contains(&tokens));
            self.tokens.push(tokens);
        }
    }
}

fn pair(tokens: &Value) -> (String, String) {
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("refresh_token"), text("access_token"))
}

impl Subject for Family {
    type Model = TokenFamilyModel;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let person = world.sign_up(&format!("tokens-{case}@example.org")).await;
        Self {
            world,
            person,
            session: String::new(),
            tokens: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step, model: &TokenFamilyModel) {
        let verb = match step {
            Step::Wait(seconds) => return self.world.tick(*seconds),
            Step::LogIn => return self.log_in(model.good).await,
            Step::Refresh(back) => return self.refresh(*back, model).await,
            Step::Revoke => {
                let (caller, path) = (
                    self.person.caller(),
                    format!("/api/sessions/{}", self.session),
                );
                let revoked = self.world.iam.delete(&caller, &path).await;
                assert_eq!(revoked.is_success(), model.good, "{}", revoked.json);
                return;
            }
            Step::Ban => "ban",
            Step::Unban => "unban",
        };
        let path = format!("/api/core/users/{}/{verb}", self.person.user_id);
        let done = self.world.iam.post(&operator(), &path, json!({})).await;
        let _ = done.expect(200);
    }

    async fn check_state(&self, model: &TokenFamilyModel) {
        for (at, (_, access)) in self.tokens.iter().enumerate() {
            let path = "/api/validate-session";
            let told = self
                .world
                .iam
                .post(&operator(), path, json!({ "token": access }))
                .await;
            let valid = model.session_is_valid() && model.now < model.issued[at] + 900;
            assert_eq!(told.expect(200).json["valid"], valid, "access token {at}");
        }
        let list = listed_sessions(&self.world, &self.person).await;
        let listed = list.each("id").contains(&self.session.as_str());
        assert_eq!(listed, model.session_is_valid());
    }
}
