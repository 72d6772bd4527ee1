//! Two parties use one address: its owner, who reads the mail, and a stranger, who does not. In any order of their
//! steps, the stranger gains no right, no second factor is lost or skipped, and no mail limit is exceeded.

mod checks;
mod steps;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use core_domain::testing::totp_secret_of;
use serde_json::{Value, json};

use self::steps::{AnyOrder, LINKS, PROOF_LIFETIME_SECONDS, Party, Proof, Step};
use super::harness::{Subject, Visit, machine};
use crate::iam::{GET_SESSION, NEW_PASSWORD, SIGN_IN, SIGN_UP, trusted_devices};
use crate::world::{Answer, Authenticator, ORIGIN, Person, World, pending_sign_in_cookie};

machine! { no_order_of_steps_gives_a_stranger_rights of SharedAddress }

/// A session of a party.
#[derive(Clone, Debug)]
struct PartySession {
    person: Person,
    /// The time at which the session last proved the second factor, in seconds since the epoch; `None` if never.
    factor_at: Option<i64>,
}

/// A request whose response was stored under an idempotency key.
struct KeyedRequest {
    person: Person,
    body: Value,
}

/// The observed state of the account at the address.
#[derive(Default)]
struct Account {
    exists: bool,
    is_confirmed: bool,
    password_of: Option<Party>,
    owner: Option<PartySession>,
    stranger: Option<PartySession>,
    factor: Option<Authenticator>,
    /// The cookie of a device that the owner trusts.
    device: Option<String>,
    role: Option<&'static str>,
}

impl Account {
    fn session_of(&mut self, party: Party) -> &mut Option<PartySession> {
        match party {
            Party::Owner => &mut self.owner,
            Party::Stranger => &mut self.stranger,
        }
    }
}

/// The pending invitation that was mailed last.
struct PendingInvitation {
    id: String,
    /// The reference in the mailed link, including the secret.
    name: String,
    role: &'static str,
}

struct SharedAddress {
    world: Arc<World>,
    /// The owner of the organization.
    ada: Person,
    organization: String,
    platform: String,
    is_suspended: bool,
    address: String,
    account: Account,
    invitation: Option<PendingInvitation>,
    keyed: Option<KeyedRequest>,
    keys: usize,
    /// The times of the sent mails, by address and subject.
    sent: BTreeMap<(String, String), VecDeque<u64>>,
    mails_read: usize,
}

impl SharedAddress {
    async fn post_as(&self, person: &Person, path: &str, body: Value) -> Answer {
        self.world.send_as_person(person, "POST", path, body).await
    }

    fn seconds(&self) -> i64 {
        self.world.clock_seconds()
    }

    async fn store_session(&mut self, party: Party, token: &str, factor_at: Option<i64>) {
        let session = self
            .world
            .send_with_bearer(token, "GET", GET_SESSION)
            .await
            .expect(200);
        let text = |pointer: &str| {
            session
                .json
                .pointer(pointer)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let person = Person {
            user_id: text("/user/id"),
            email: self.address.clone(),
            session_id: text("/session/id"),
            token: token.to_owned(),
            cookie: String::new(),
        };
        *self.account.session_of(party) = Some(PartySession { person, factor_at });
    }

    async fn is_live(&self, person: &Person) -> bool {
        let session = self
            .world
            .send_with_bearer(&person.token, "GET", GET_SESSION)
            .await;
        session.expect(200).json.is_object()
    }

    /// Returns the session of a party if it is still valid, and forgets it otherwise.
    async fn find_valid_session(&mut self, party: Party) -> Option<PartySession> {
        let held = self.account.session_of(party).clone()?;
        if self.is_live(&held.person).await {
            return Some(held);
        }
        *self.account.session_of(party) = None;
        None
    }

    async fn sign_up(&mut self, party: Party) {
        let body = json!({ "name": "Bob", "email": self.address, "password": party.password() });
        let answer = self.world.post(SIGN_UP, body).await;
        assert_eq!(answer.is_success(), !self.account.exists, "{}", answer.json);
        if answer.is_success() {
            self.account.exists = true;
            self.account.password_of = Some(party);
            self.store_session(party, answer.text("token"), None).await;
        }
    }

    async fn password(&self, party: Party, cookie: &str) -> Answer {
        let headers = [("cookie", cookie), ("origin", ORIGIN)];
        let body = json!({ "email": self.address, "password": party.password() });
        self.world
            .send_unidentified("POST", SIGN_IN, &headers, body)
            .await
    }

    async fn sign_in(&mut self, party: Party, on_device: bool) {
        let device = self.account.device.clone().filter(|_| on_device);
        let answer = self
            .password(party, device.as_deref().unwrap_or_default())
            .await;
        if !answer.is_success() {
            let code = answer.status.as_u16();
            assert!(matches!(code, 401 | 429), "{code}: {}", answer.json);
            return;
        }
        assert_eq!(
            self.account.password_of,
            Some(party),
            "signed in with the other party's password"
        );
        let token = answer.json["token"].as_str();
        if self.account.factor.is_some() && device.is_none() {
            assert_eq!(
                token, None,
                "the second factor was skipped: {}",
                answer.json
            );
        }
        if let Some(token) = token {
            self.store_session(party, token, None).await;
            if let Some(device) = device.and_then(|_| trusted_devices::device_of(&answer)) {
                self.account.device = Some(device);
            }
        }
    }

    async fn sign_in_with_factor(&mut self, trusts: bool) {
        let Some(factor) = self.account.factor.clone() else {
            return;
        };
        let asked = self.password(Party::Owner, "").await;
        if !asked.is_success() {
            return;
        }
        self.world.tick(30);
        let cookie = pending_sign_in_cookie(&asked);
        let headers = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
        let body = json!({ "code": factor.code(&self.world), "trustDevice": trusts });
        let path = "/api/auth/two-factor/verify-totp";
        let done = self
            .world
            .send_unidentified("POST", path, &headers, body)
            .await;
        if !done.is_success() {
            return;
        }
        let now = self.seconds();
        self.store_session(Party::Owner, done.text("token"), Some(now))
            .await;
        if trusts {
            self.account.device = trusted_devices::device_of(&done);
        }
    }

    /// Requests a link of this kind and returns its token. Returns `None` if no mail was sent, which the response does
    /// not reveal.
    async fn request_link_token(&mut self, kind: usize) -> Option<String> {
        let before = self.mails_to_address().await;
        let path = format!("/api/auth/{}", LINKS[kind]);
        let sent = self
            .world
            .post(&path, json!({ "email": self.address }))
            .await;
        let _ = sent.expect(200);
        if self.mails_to_address().await == before {
            return None;
        }
        self.world.tick(1);
        Some(self.world.mailed_token(&self.address).await)
    }

    async fn mails_to_address(&self) -> usize {
        let mails = self.world.mails().await.into_iter();
        mails
            .filter(|mail| mail.to.as_str() == self.address)
            .count()
    }

    /// Records that the owner proved access to the mail of the address. `password_of` is the party that knows the
    /// password now.
    fn take_over(&mut self, password_of: Option<Party>) {
        self.account.is_confirmed = true;
        self.account.exists = true;
        self.account.password_of = password_of;
        self.account.device = None;
    }

    async fn follow_sign_in_link(&mut self) {
        let Some(token) = self.request_link_token(0).await else {
            return;
        };
        let answer = self.world.follow_magic_link(&token).await.expect(200);
        if !self.account.is_confirmed {
            self.take_over(None);
        } else if self.account.factor.is_some() {
            assert_eq!(
                answer.json["twoFactorRedirect"], true,
                "a link skipped the second factor"
            );
            return;
        }
        self.store_session(Party::Owner, answer.text("token"), None)
            .await;
    }

    async fn reset_password(&mut self) {
        let Some(token) = self
            .request_link_token(1)
            .await
            .filter(|_| self.account.exists)
        else {
            return;
        };
        let body = json!({ "token": token, "newPassword": NEW_PASSWORD });
        let set = self.world.post("/api/auth/reset-password", body).await;
        let _ = set.expect(200);
        self.take_over(Some(Party::Owner));
    }

    async fn follow_confirmation(&mut self, proof: Proof) {
        if !self.account.exists || self.account.is_confirmed {
            return;
        }
        let Some(token) = self.request_link_token(2).await else {
            return;
        };
        let verify = "/api/auth/verify-email";
        let (answer, confirms) = match proof {
            Proof::Session => {
                let Some(held) = self.find_valid_session(Party::Owner).await else {
                    return;
                };
                let body = json!({ "token": token });
                (self.post_as(&held.person, verify, body).await, true)
            }
            Proof::Password => {
                let own = self.account.password_of == Some(Party::Owner);
                let body = json!({ "token": token, "password": Party::Owner.password() });
                let answer = self.world.post(verify, body).await;
                if answer.status == 429 {
                    return;
                }
                (answer, own)
            }
            Proof::TakeOver => {
                let fields = [("token", token.as_str()), ("newPassword", NEW_PASSWORD)];
                let own = [("origin", ORIGIN)];
                let answer = self
                    .world
                    .form("/verify-email/take-over", &fields, &own)
                    .await;
                assert_eq!(answer.status, 303);
                return self.take_over(Some(Party::Owner));
            }
            Proof::Nothing => (
                self.world.post(verify, json!({ "token": token })).await,
                false,
            ),
        };
        assert_eq!(answer.is_success(), confirms, "{proof:?}: {}", answer.json);
        self.account.is_confirmed |= confirms;
    }

    async fn by_ada(&self, call: &str, body: Value) -> Answer {
        let visit = Visit::of(&self.world, &self.ada).await;
        let path = format!("/api/auth/organization/{call}");
        let answer = self.post_as(&visit.person, &path, body).await;
        visit.sign_out(answer).await
    }

    async fn invite(&mut self, role: &'static str) {
        let before = self.mails_to_address().await;
        let body = json!({
            "email": self.address, "role": role, "resend": true,
            "organizationId": self.organization,
        });
        let answer = self.by_ada("invite-member", body).await;
        if !answer.is_success() {
            return;
        }
        assert!(
            !self.is_suspended && self.account.role.is_none(),
            "{}",
            answer.json
        );
        assert_eq!(self.mails_to_address().await, before + 1);
        self.world.tick(1);
        let role = ["owner", "admin", "member"]
            .into_iter()
            .find(|role| answer.json["role"] == *role);
        self.invitation = Some(PendingInvitation {
            id: answer.id(),
            name: self.world.mailed_invitation(&self.address).await,
            role: role.unwrap(),
        });
    }

    async fn answer_invitation(&mut self, party: Party, by_id: bool) {
        let Some(held) = self.find_valid_session(party).await else {
            return;
        };
        let Some(PendingInvitation { id, name, role }) = self.invitation.take() else {
            return;
        };
        let by_id = by_id || party == Party::Stranger;
        let body = json!({ "invitationId": if by_id { &id } else { &name } });
        let path = "/api/auth/organization/accept-invitation";
        let answer = self.post_as(&held.person, path, body).await;
        if !answer.is_success() {
            self.invitation = Some(PendingInvitation { id, name, role });
            return;
        }
        let proved = self.account.is_confirmed || !by_id;
        assert!(proved, "{party:?} accepted without a proof of the address");
        assert!(
            !self.is_suspended,
            "accepted while the platform was suspended"
        );
        self.account.is_confirmed = true;
        self.account.role = Some(role);
    }

    async fn enrol(&mut self, party: Party) {
        let Some(held) = self.find_valid_session(party).await else {
            return;
        };
        let path = "/api/auth/two-factor/enable";
        let body = json!({ "password": party.password() });
        let begun = self.post_as(&held.person, path, body).await;
        if !begun.is_success() {
            return;
        }
        let secret = totp_secret_of(begun.text("totpURI")).unwrap();
        let codes = begun.json["backupCodes"].as_array().unwrap().iter();
        let recovery_codes = codes
            .map(|code| code.as_str().unwrap().to_owned())
            .collect();
        let factor = Authenticator {
            secret,
            recovery_codes,
        };
        self.world.tick(30);
        let body = json!({ "code": factor.code(&self.world) });
        let path = "/api/auth/two-factor/verify-totp";
        let shown = self.post_as(&held.person, path, body).await;
        if !shown.is_success() {
            return;
        }
        assert!(
            self.account.is_confirmed,
            "enrolled without a confirmed address"
        );
        if self.account.factor.is_some() {
            self.assert_fresh(&held);
        }
        self.account.factor = Some(factor);
        self.account.device = None;
        let now = self.seconds();
        let token = shown.json["token"]
            .as_str()
            .unwrap_or(&held.person.token)
            .to_owned();
        self.store_session(party, &token, Some(now)).await;
    }

    #[track_caller]
    fn assert_fresh(&self, held: &PartySession) {
        let age = held.factor_at.map(|at| self.seconds() - at);
        let fresh =
            age.is_some_and(|age| age < i64::try_from(PROOF_LIFETIME_SECONDS + 60).unwrap());
        assert!(fresh, "a factor was changed {age:?} s after its last proof");
    }

    async fn prove_factor(&mut self) {
        let Some(held) = self.find_valid_session(Party::Owner).await else {
            return;
        };
        let Some(factor) = self.account.factor.clone() else {
            return;
        };
        self.world.tick(30);
        let body = json!({ "code": factor.code(&self.world) });
        let path = "/api/auth/two-factor/verify-totp";
        if self.post_as(&held.person, path, body).await.is_success() {
            let factor_at = Some(self.seconds());
            self.account.owner = Some(PartySession { factor_at, ..held });
        }
    }

    async fn change_factor(&mut self, party: Party, call: &str) {
        let Some(held) = self.find_valid_session(party).await else {
            return;
        };
        let path = format!("/api/auth/two-factor/{call}");
        let body = json!({ "password": party.password() });
        let answer = self.post_as(&held.person, &path, body).await;
        if self.account.factor.is_none() || !answer.is_success() {
            return;
        }
        self.assert_fresh(&held);
        if call == "disable" {
            self.account.factor = None;
            self.account.device = None;
        }
    }

    async fn demote(&mut self) {
        let body = json!({ "memberIdOrEmail": self.address, "organizationId": self.organization });
        let answer = self.by_ada("remove-member", body).await;
        if answer.is_success() {
            assert!(!self.is_suspended && self.account.role.is_some());
            self.account.role = None;
        }
    }

    async fn suspend(&mut self, is_suspended: bool) {
        let status = if is_suspended { "suspended" } else { "active" };
        self.world.set_platform_status(&self.platform, status).await;
        self.is_suspended = is_suspended;
    }

    async fn send_keyed(&self, keyed: &KeyedRequest) -> Answer {
        let bearer = format!("Bearer {}", keyed.person.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("idempotency-key", "invite-a-friend"),
        ];
        let path = "/api/auth/organization/invite-member";
        let answer = self
            .world
            .send_unidentified("POST", path, &headers, keyed.body.clone())
            .await;
        let manages = matches!(self.account.role, Some("owner" | "admin"));
        if answer.is_success() {
            assert!(
                manages,
                "a replay succeeded after the loss of the right: {}",
                answer.json
            );
            assert!(
                !self.is_suspended,
                "a replay succeeded while the platform was suspended"
            );
            assert!(self.is_live(&keyed.person).await);
        }
        answer
    }

    async fn invite_with_key(&mut self) {
        let Some(held) = self.find_valid_session(Party::Owner).await else {
            return;
        };
        self.keys += 1;
        let email = format!("friend-{}-{}", self.keys, self.address);
        let body = json!({ "email": email, "role": "member", "organizationId": self.organization });
        let keyed = KeyedRequest {
            person: held.person,
            body,
        };
        if self.send_keyed(&keyed).await.is_success() {
            self.keyed = Some(keyed);
        }
    }

    async fn replay(&self) {
        if let Some(keyed) = &self.keyed {
            let _ = self.send_keyed(keyed).await;
        }
    }
}

impl Subject for SharedAddress {
    type Model = AnyOrder;

    const LIMITS_MAILS: bool = true;

    async fn begin(world: Arc<World>, case: u32) -> Self {
        let ada = world.sign_up(&format!("ada-{case}@example.net")).await;
        world.confirm(&ada).await;
        let made = world
            .set_up_organization(&ada, &format!("engines-{case}"))
            .await
            .expect(201);
        let mails_read = world.mails().await.len();
        Self {
            ada,
            organization: made.text("orgId").to_owned(),
            platform: made.text("platformId").to_owned(),
            is_suspended: false,
            address: format!("bob-{case}@example.net"),
            account: Account::default(),
            invitation: None,
            keyed: None,
            keys: 0,
            sent: BTreeMap::new(),
            mails_read,
            world,
        }
    }

    async fn step(&mut self, step: &Step, _: &AnyOrder) {
        self.world.tick(1);
        match *step {
            Step::SignUp(party) => self.sign_up(party).await,
            Step::SignIn { party, on_device } => self.sign_in(party, on_device).await,
            Step::SignInWithFactor { trusts } => self.sign_in_with_factor(trusts).await,
            Step::RequestMails { kind, count } => {
                for _ in 0..count {
                    self.request_link_token(kind).await;
                }
            }
            Step::FollowSignInLink => self.follow_sign_in_link().await,
            Step::ResetPassword => self.reset_password().await,
            Step::FollowConfirmation(proof) => self.follow_confirmation(proof).await,
            Step::Invite(role) => self.invite(role).await,
            Step::AcceptAsStranger => {
                self.invite("owner").await;
                self.sign_up(Party::Stranger).await;
                self.answer_invitation(Party::Stranger, true).await;
            }
            Step::ChangeOnDevice(call) => {
                self.sign_in(Party::Owner, true).await;
                self.change_factor(Party::Owner, call).await;
            }
            Step::ReplayAfterDemotion => {
                self.invite_with_key().await;
                self.demote().await;
                self.replay().await;
            }
            Step::Join => {
                self.invite("admin").await;
                self.follow_sign_in_link().await;
                self.answer_invitation(Party::Owner, false).await;
            }
            Step::EnrolAndTrustDevice => {
                self.reset_password().await;
                self.sign_in(Party::Owner, false).await;
                self.enrol(Party::Owner).await;
                self.sign_in_with_factor(true).await;
            }
            Step::AnswerInvitation { party, by_id } => self.answer_invitation(party, by_id).await,
            Step::Enrol(party) => self.enrol(party).await,
            Step::ProveFactor => self.prove_factor().await,
            Step::ChangeFactor { party, call } => self.change_factor(party, call).await,
            Step::Demote => self.demote().await,
            Step::Suspend(is_suspended) => self.suspend(is_suspended).await,
            Step::InviteWithKey => self.invite_with_key().await,
            Step::Replay => self.replay().await,
            Step::Wait(seconds) => self.world.tick(seconds),
        }
        let now = u64::try_from(self.seconds()).unwrap();
        self.check_mails(now).await;
    }

    async fn check_state(&self, _: &AnyOrder) {
        self.check_members().await;
        self.check_stranger().await;
        self.check_factor().await;
    }
}
