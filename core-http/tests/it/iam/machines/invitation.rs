//! Invitations and memberships: inviting, answering and leaving. An organization always has an owner.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Model, Subject, Visit, machine};
use crate::world::{Answer, Person, World};

machine! { organizations_behave_like_their_model of Organization }

const HOUR: u64 = 3_600;

const PEOPLE: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Owner,
    Admin,
    Member,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Invite {
        by: usize,
        to: usize,
        role: Role,
        resend: bool,
    },
    Accept {
        by: usize,
        invitation: usize,
    },
    Reject {
        by: usize,
        invitation: usize,
    },
    Cancel {
        by: usize,
        invitation: usize,
    },
    Remove {
        by: usize,
        target: usize,
    },
    Leave(usize),
    Wait(u64),
}

#[derive(Clone, Debug)]
struct InvitationModel {
    to: usize,
    role: Role,
    status: &'static str,
    until: u64,
}

#[derive(Clone, Debug)]
struct OrganizationModel {
    now: u64,
    members: [Option<Role>; PEOPLE],
    invitations: Vec<InvitationModel>,
    good: bool,
}

impl Default for OrganizationModel {
    fn default() -> Self {
        Self {
            now: 0,
            members: [Some(Role::Owner), None, None],
            invitations: Vec::new(),
            good: true,
        }
    }
}

impl OrganizationModel {
    fn is_open(&self, at: usize) -> bool {
        let invited = &self.invitations[at];
        invited.status == "pending" && self.now < invited.until
    }

    fn manages(&self, by: usize) -> bool {
        matches!(self.members[by], Some(Role::Owner | Role::Admin))
    }

    fn is_only_owner(&self, who: usize) -> bool {
        let owners = self
            .members
            .iter()
            .filter(|role| **role == Some(Role::Owner));
        self.members[who] == Some(Role::Owner) && owners.count() == 1
    }

    fn invite(&mut self, by: usize, to: usize, role: Role, resend: bool) -> bool {
        let allowed = self.manages(by)
            && (role != Role::Owner || self.members[by] == Some(Role::Owner))
            && self.members[to].is_none();
        if !allowed {
            return false;
        }
        let (now, until) = (self.now, self.now + 48 * HOUR);
        let pending = self.invitations.iter_mut();
        let mut pending = pending.filter(|invited| invited.to == to && invited.status == "pending");
        if let Some(known) = pending.next() {
            if now < known.until {
                let resends =
                    resend && (known.role != Role::Owner || self.members[by] == Some(Role::Owner));
                if resends {
                    known.until = until;
                }
                return resends;
            }
            known.status = "expired";
        }
        self.invitations.push(InvitationModel {
            to,
            role,
            status: "pending",
            until,
        });
        true
    }

    fn answer(&mut self, by: usize, at: usize, status: &'static str) -> bool {
        let accepts = status == "accepted";
        let own = self.is_open(at) && self.invitations[at].to == by;
        if !own || (accepts && self.members[by].is_some()) {
            return false;
        }
        self.invitations[at].status = status;
        if accepts {
            self.members[by] = Some(self.invitations[at].role);
        }
        true
    }

    fn cancel(&mut self, by: usize, at: usize) -> bool {
        let status = &mut self.invitations[at].status;
        let cancelable = matches!(*status, "pending" | "canceled");
        if !cancelable || !matches!(self.members[by], Some(Role::Owner | Role::Admin)) {
            return false;
        }
        *status = "canceled";
        true
    }

    fn remove(&mut self, by: usize, target: usize) -> bool {
        let allowed = match (self.members[by], self.members[target]) {
            (None, _) | (_, None) => false,
            (Some(Role::Owner), _) => true,
            (Some(Role::Admin), Some(role)) if role != Role::Owner => true,
            _ => by == target,
        };
        if !allowed || self.is_only_owner(target) {
            return false;
        }
        self.members[target] = None;
        true
    }
}

impl Model for OrganizationModel {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let role = prop::sample::select(vec![Role::Owner, Role::Admin, Role::Member, Role::Member]);
        let invite = (0..PEOPLE, 0..PEOPLE, role, prop::bool::weighted(0.3));
        let invite = invite.prop_map(|(by, to, role, resend)| Step::Invite {
            by,
            to,
            role,
            resend,
        });
        let wait = prop::sample::select(vec![1, 47, 48, 48, 49])
            .prop_map(|hours: u64| Step::Wait(hours * HOUR));
        let remove = (0..PEOPLE, 0..PEOPLE).prop_map(|(by, target)| Step::Remove { by, target });
        let leave = (0..PEOPLE).prop_map(Step::Leave);
        if self.invitations.is_empty() {
            return prop_oneof![8 => invite, 1 => remove, 1 => leave].boxed();
        }
        let answer = (0..PEOPLE, 0..self.invitations.len());
        // Most answers come from the person who was invited last.
        let last = self.invitations.len() - 1;
        let to = self.invitations[last].to;
        prop_oneof![
            6 => invite,
            4 => Just(Step::Accept { by: to, invitation: last }),
            2 => answer.clone().prop_map(|(by, invitation)| Step::Accept { by, invitation }),
            1 => answer.clone().prop_map(|(by, invitation)| Step::Reject { by, invitation }),
            2 => answer.prop_map(|(by, invitation)| Step::Cancel { by, invitation }),
            2 => remove,
            2 => leave,
            4 => wait,
        ]
        .boxed()
    }

    fn allows(&self, step: &Step) -> bool {
        match step {
            Step::Accept { invitation, .. }
            | Step::Reject { invitation, .. }
            | Step::Cancel { invitation, .. } => *invitation < self.invitations.len(),
            _ => true,
        }
    }

    fn apply(&mut self, step: &Step) {
        self.good = match *step {
            Step::Invite {
                by,
                to,
                role,
                resend,
            } => self.invite(by, to, role, resend),
            Step::Accept { by, invitation } => self.answer(by, invitation, "accepted"),
            Step::Reject { by, invitation } => self.answer(by, invitation, "rejected"),
            Step::Cancel { by, invitation } => self.cancel(by, invitation),
            Step::Remove { by, target } => self.remove(by, target),
            Step::Leave(who) => self.remove(who, who),
            Step::Wait(seconds) => {
                self.now += seconds;
                true
            }
        };
    }
}

struct Organization {
    world: Arc<World>,
    people: Vec<Person>,
    id: String,
    invitations: Vec<String>,
}

impl Organization {
    /// Calls a route as a person, in a new session. The prefix `get ` sends a `GET`.
    async fn call(&self, by: usize, call: &str, body: Value) -> Answer {
        let visit = Visit::of(&self.world, &self.people[by]).await;
        let answer = match call.strip_prefix("get ") {
            Some(call) => {
                let path = format!("/api/auth/organization/{call}?organizationId={}", self.id);
                self.world.iam.get(&visit.person.caller(), &path).await
            }
            None => {
                self.world
                    .call_organization(&visit.person, call, body)
                    .await
            }
        };
        visit.sign_out(answer).await
    }

    async fn answer(&self, by: usize, call: &str, invitation: usize) -> Answer {
        let body = json!({ "invitationId": self.invitations[invitation] });
        self.call(by, call, body).await
    }
}

impl Subject for Organization {
    type Model = OrganizationModel;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let mut people = Vec::new();
        for name in ["ada", "eve", "bob"] {
            let person = world.sign_up(&format!("{name}-{case}@example.net")).await;
            world.confirm(&person).await;
            people.push(person);
        }
        let id = world
            .create_organization(&people[0], &format!("organization-{case}"))
            .await;
        Self {
            world,
            people,
            id,
            invitations: Vec::new(),
        }
    }

    async fn step(&mut self, step: &Step, model: &OrganizationModel) {
        let answer = match *step {
            Step::Wait(seconds) => return self.world.tick(seconds),
            Step::Invite {
                by,
                to,
                role,
                resend,
            } => {
                let body = json!({
                    "email": self.people[to].email, "role": role.name(), "resend": resend,
                    "organizationId": self.id,
                });
                let invited = self.call(by, "invite-member", body).await;
                if model.invitations.len() > self.invitations.len() {
                    self.invitations.push(invited.clone().expect(200).id());
                }
                invited
            }
            Step::Accept { by, invitation } => {
                self.answer(by, "accept-invitation", invitation).await
            }
            Step::Reject { by, invitation } => {
                self.answer(by, "reject-invitation", invitation).await
            }
            Step::Cancel { by, invitation } => {
                self.answer(by, "cancel-invitation", invitation).await
            }
            Step::Remove { by, target } => {
                let body = json!({
                    "memberIdOrEmail": self.people[target].email, "organizationId": self.id,
                });
                self.call(by, "remove-member", body).await
            }
            Step::Leave(who) => {
                let body = json!({ "organizationId": self.id });
                self.call(who, "leave", body).await
            }
        };
        let context = format!("{step:?}: {} {}", answer.status, answer.json);
        assert_eq!(answer.is_success(), model.good, "{context}");
        assert!(
            answer.status.is_success() || answer.status.is_client_error(),
            "{context}"
        );
    }

    async fn check_state(&self, model: &OrganizationModel) {
        let owner = model
            .members
            .iter()
            .position(|role| *role == Some(Role::Owner));
        let owner = owner.unwrap();
        let list = self
            .call(owner, "get list-members", Value::Null)
            .await
            .expect(200);
        let mut found: Vec<(&str, &str)> = list.json["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| {
                (
                    member["userId"].as_str().unwrap(),
                    member["role"].as_str().unwrap(),
                )
            })
            .collect();
        let members = self.people.iter().zip(model.members);
        let members =
            members.filter_map(|(person, role)| Some((person.user_id.as_str(), role?.name())));
        let mut expected: Vec<(&str, &str)> = members.collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let list = self
            .call(owner, "get list-invitations", Value::Null)
            .await
            .expect(200);
        let list = list.json.as_array().unwrap();
        assert_eq!(list.len(), model.invitations.len());
        for (id, invited) in self.invitations.iter().zip(&model.invitations) {
            let shown = list.iter().find(|shown| shown["id"] == **id).unwrap();
            assert_eq!(shown["status"], invited.status, "{shown}");
            assert_eq!(shown["role"], invited.role.name());
        }
    }
}
