//! Device logins: requests, polls, decisions, expiry and a single redemption.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::harness::{Model, Subject, listed_sessions, machine};
use crate::world::{Person, World};

machine! { device_logins_behave_like_their_model of Devices }

#[derive(Clone, Debug)]
enum Step {
    Ask,
    Poll(usize),
    /// The first or the second person approves or denies the device.
    Decide {
        device: usize,
        second: bool,
        approve: bool,
    },
    /// The first or the second person ends their other sessions.
    EndSessions {
        second: bool,
    },
    /// The time to wait, in tenths of a second.
    Wait(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Pending,
    Approved {
        second: bool,
    },
    Denied {
        second: bool,
    },
    Redeemed {
        second: bool,
    },
    /// Redeemed, and the session of the device has ended.
    SignedOut,
}

#[derive(Clone, Debug)]
struct Device {
    asked: u64,
    polled: Option<u64>,
    interval: u64,
    status: Status,
}

#[derive(Clone, Debug, Default)]
struct DeviceLoginModel {
    /// The time since the start of the run, in tenths of a second.
    now: u64,
    devices: Vec<Device>,
    /// The expected error code of the last step; empty for a success.
    expected_code: &'static str,
}

impl DeviceLoginModel {
    fn is_over(&self, at: usize) -> bool {
        self.now >= self.devices[at].asked + 6_000
    }

    fn poll(&mut self, at: usize) -> &'static str {
        let (over, now) = (self.is_over(at), self.now);
        let device = &mut self.devices[at];
        match device.status {
            Status::Redeemed { .. } | Status::SignedOut => "invalid_grant",
            _ if over => "expired_token",
            Status::Denied { .. } => "access_denied",
            Status::Approved { second } => {
                device.status = Status::Redeemed { second };
                ""
            }
            Status::Pending => {
                // A poll may come half a second early, because the network may delay the one before.
                let early = device
                    .polled
                    .is_some_and(|last| now - last + 5 < device.interval);
                device.polled = Some(now);
                if early {
                    device.interval += 50;
                    return "slow_down";
                }
                "authorization_pending"
            }
        }
    }

    fn decide(&mut self, at: usize, second: bool, approve: bool) -> &'static str {
        if self.is_over(at) {
            return "expired_token";
        }
        let decided = match approve {
            true => Status::Approved { second },
            false => Status::Denied { second },
        };
        match self.devices[at].status {
            Status::Pending => {
                self.devices[at].status = decided;
                ""
            }
            status if status == decided => "",
            _ => "INVALID_STATE",
        }
    }
}

impl Model for DeviceLoginModel {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        if self.devices.is_empty() {
            return Just(Step::Ask).boxed();
        }
        let one = 0..self.devices.len();
        let wait = prop::sample::select(vec![1, 40, 44, 45, 50, 95, 100, 150, 600, 3_000, 6_000]);
        let decide = (one.clone(), any::<bool>(), prop::bool::weighted(0.7));
        prop_oneof![
            2 => Just(Step::Ask),
            8 => one.prop_map(Step::Poll),
            3 => decide.prop_map(|(device, second, approve)| Step::Decide { device, second, approve }),
            1 => any::<bool>().prop_map(|second| Step::EndSessions { second }),
            5 => wait.prop_map(Step::Wait),
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        match step {
            Step::Poll(at) | Step::Decide { device: at, .. } => *at < self.devices.len(),
            Step::Ask | Step::EndSessions { .. } | Step::Wait(_) => true,
        }
    }

    fn apply(&mut self, step: &Step) {
        self.expected_code = match *step {
            Step::Ask => {
                self.devices.push(Device {
                    asked: self.now,
                    polled: None,
                    interval: 50,
                    status: Status::Pending,
                });
                ""
            }
            Step::Poll(at) => self.poll(at),
            Step::Decide {
                device,
                second,
                approve,
            } => self.decide(device, second, approve),
            Step::EndSessions { second } => {
                for device in &mut self.devices {
                    if device.status == (Status::Approved { second }) {
                        device.status = Status::Denied { second };
                    } else if device.status == (Status::Redeemed { second }) {
                        device.status = Status::SignedOut;
                    }
                }
                ""
            }
            Step::Wait(tenths) => {
                self.now += tenths;
                ""
            }
        };
    }
}

struct Devices {
    world: Arc<World>,
    people: [Person; 2],
    /// The device code and the user code of each device.
    codes: Vec<(String, String)>,
    /// The session ids of the devices that have redeemed their code, by device.
    sessions: BTreeMap<usize, String>,
}

impl Subject for Devices {
    type Model = DeviceLoginModel;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let first = world.sign_up(&format!("first-{case}@example.org")).await;
        let second = world.sign_up(&format!("second-{case}@example.org")).await;
        Self {
            world,
            people: [first, second],
            codes: Vec::new(),
            sessions: BTreeMap::new(),
        }
    }

    async fn step(&mut self, step: &Step, model: &DeviceLoginModel) {
        let answer = match step {
            Step::Wait(tenths) => {
                let pause = std::time::Duration::from_millis(tenths * 100);
                return self.world.clock.advance(pause);
            }
            Step::EndSessions { second } => {
                let caller = self.people[usize::from(*second)].caller();
                let path = "/api/auth/revoke-other-sessions";
                self.world.iam.post(&caller, path, json!({})).await
            }
            Step::Ask => {
                let codes = self.world.device_codes().await;
                let [device, user] =
                    ["device_code", "user_code"].map(|code| codes.text(code).to_owned());
                self.codes.push((device, user));
                codes
            }
            Step::Poll(at) => self.world.poll(&self.codes[*at].0).await,
            Step::Decide {
                device,
                second,
                approve,
            } => {
                let person = &self.people[usize::from(*second)];
                let action = if *approve { "approve" } else { "deny" };
                self.world
                    .decide(person, &self.codes[*device].1, action)
                    .await
            }
        };
        assert_eq!(
            answer.code(),
            model.expected_code,
            "{step:?}: {}",
            answer.json
        );
        assert_eq!(
            answer.is_success(),
            model.expected_code.is_empty(),
            "{step:?}"
        );
        if let Step::Poll(at) = step
            && answer.is_success()
        {
            let Status::Redeemed { second } = model.devices[*at].status else {
                panic!("{:?}", model.devices[*at]);
            };
            let token = answer.text("access_token");
            let found = self
                .world
                .send_with_bearer(token, "GET", crate::iam::GET_SESSION)
                .await;
            let found = found.expect(200).json;
            let user = &found["user"]["id"];
            assert_eq!(*user, self.people[usize::from(second)].user_id);
            let session = found["session"]["id"].as_str().unwrap().to_owned();
            self.sessions.insert(*at, session);
        }
    }

    /// Asserts that each person has their first session and those of the devices that redeemed their approval.
    async fn check_state(&self, model: &DeviceLoginModel) {
        for (second, person) in [false, true].into_iter().zip(&self.people) {
            let redeemed = model.devices.iter().enumerate();
            let redeemed = redeemed.filter(|(_, d)| d.status == Status::Redeemed { second });
            let mut expected: Vec<&str> = redeemed.map(|(at, _)| &*self.sessions[&at]).collect();
            expected.push(&person.session_id);
            expected.sort_unstable();
            let list = listed_sessions(&self.world, person).await;
            let mut listed = list.each("id");
            listed.sort_unstable();
            assert_eq!(listed, expected);
        }
    }
}
