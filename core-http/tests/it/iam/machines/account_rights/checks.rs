//! Invariants that hold after each step.

use core_domain::access::RecordKey;
use core_domain::iam::TwoFactorQuery;
use core_domain::port::{Mode, Within};
use serde_json::Value;

use super::super::harness::Visit;
use super::SharedAddress;
use super::steps::{HOUR, Party};
use crate::iam::DAY;

impl SharedAddress {
    /// Asserts that the only member besides Ada is the account that accepted an invitation, with its role.
    pub(super) async fn check_members(&self) {
        let visit = Visit::of(&self.world, &self.ada).await;
        let path = format!(
            "/api/auth/organization/list-members?organizationId={}",
            self.organization
        );
        let list = self
            .world
            .send_as_person(&visit.person, "GET", &path, Value::Null)
            .await;
        let list = visit.sign_out(list).await;
        if self.is_suspended && list.status == 451 {
            return;
        }
        let list = list.expect(200);
        let others = list.json["members"].as_array().unwrap().iter();
        let others = others.filter(|member| member["userId"] != *self.ada.user_id);
        let roles: Vec<&str> = others
            .map(|member| member["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, self.account.role.as_slice());
    }

    /// Asserts that the stranger has no valid session and no password once the address is confirmed.
    pub(super) async fn check_stranger(&self) {
        let Some(held) = &self.account.stranger else {
            return;
        };
        if self.account.is_confirmed && self.account.password_of != Some(Party::Stranger) {
            assert!(
                !self.is_live(&held.person).await,
                "the stranger's session is still valid"
            );
        }
        if self.account.is_confirmed {
            assert_ne!(self.account.password_of, Some(Party::Stranger));
        }
    }

    /// Asserts that the second factor exists exactly if it was enrolled and not disabled with a fresh proof.
    pub(super) async fn check_factor(&self) {
        let mut uow = self.world.app.store.begin(Mode::Read).await.unwrap();
        let factors = uow.repositories(RecordKey::for_tests()).two_factors();
        let all = factors.list(Within::Installation, &TwoFactorQuery::All, 1_000);
        let all = all.await.unwrap();
        let sessions = [&self.account.owner, &self.account.stranger];
        let mut users = sessions
            .into_iter()
            .flatten()
            .map(|held| held.person.user_id.as_str());
        let Some(user) = users.next() else {
            return;
        };
        let enrolled = all
            .iter()
            .any(|factor| factor.user_id.as_str() == user && factor.is_confirmed());
        assert_eq!(enrolled, self.account.factor.is_some());
    }

    /// Counts the new mails and asserts the limits for an address: five links of a kind per hour, and three invitations
    /// per hour and ten per day.
    pub(super) async fn check_mails(&mut self, now: u64) {
        let mails = self.world.mails().await;
        for mail in &mails[self.mails_read..] {
            let key = (mail.to.to_string(), mail.subject.clone());
            self.sent.entry(key).or_default().push_back(now);
        }
        self.mails_read = mails.len();
        for ((to, subject), times) in &mut self.sent {
            while times.front().is_some_and(|at| at + DAY <= now) {
                times.pop_front();
            }
            let in_hour = times.iter().filter(|at| **at + HOUR > now).count();
            let (hour, day) = match subject.as_str() {
                "Your sign-in link" | "Set a new password" | "Confirm your e-mail address" => {
                    (5, usize::MAX)
                }
                subject if subject.starts_with("Invitation to ") => (3, 10),
                _ => continue,
            };
            assert!(
                in_hour <= hour,
                "{in_hour} mails in an hour to {to}: {subject}"
            );
            assert!(
                times.len() <= day,
                "{} mails in a day to {to}: {subject}",
                times.len()
            );
        }
    }
}
