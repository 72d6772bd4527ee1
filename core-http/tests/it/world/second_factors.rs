//! Second factors of people, and sessions that exist in the store.

use core_domain::access::RecordKey;
use core_domain::iam::{Session, TokenHash, TotpSecret, TwoFactorQuery};
use core_domain::kernel::{Caller, Clock};
use core_domain::port::{Mode, Within};
use core_domain::testing::totp_secret_of;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use super::{ORIGIN, PASSWORD, Person, World};

/// An authenticator app of a person, and their recovery codes.
#[derive(Clone, Debug)]
pub(crate) struct Authenticator {
    pub(crate) secret: TotpSecret,
    pub(crate) recovery_codes: Vec<String>,
}

impl Authenticator {
    /// Reads the response to a set-up, as an app reads its QR code.
    fn read(answer: &Answer) -> Self {
        let codes = answer.json["backupCodes"].as_array().unwrap().iter();
        Self {
            secret: totp_secret_of(answer.text("totpURI")).unwrap(),
            recovery_codes: codes.map(|c| c.as_str().unwrap().to_owned()).collect(),
        }
    }

    /// Returns the code that the authenticator shows now.
    pub(crate) fn code(&self, world: &World) -> String {
        self.secret.code_at(world.clock.now())
    }
}

impl World {
    /// Calls a two-factor route as this person, within their session.
    pub(crate) async fn call_two_factor(&self, person: &Person, call: &str, body: Value) -> Answer {
        let path = format!("/api/auth/two-factor/{call}");
        self.iam.post(&person.caller(), &path, body).await
    }

    /// Sets up a second factor and leaves it unconfirmed. Confirms the address of the person first.
    pub(crate) async fn set_up_second_factor(&self, person: &Person) -> Authenticator {
        self.set_confirmed(person, true).await;
        let body = json!({ "password": PASSWORD });
        let set_up = self.call_two_factor(person, "enable", body).await;
        Authenticator::read(&set_up.expect(200))
    }

    /// Sets up a second factor and confirms it with a code. Then advances the clock by 30 seconds, so that the
    /// authenticator shows an unused code.
    pub(crate) async fn enable_second_factor(&self, person: &Person) -> Authenticator {
        let authenticator = self.set_up_second_factor(person).await;
        let body = json!({ "code": authenticator.code(self) });
        let shown = self.call_two_factor(person, "verify-totp", body).await;
        let _ = shown.expect(200);
        self.tick(30);
        authenticator
    }

    /// Signs in with the password and returns the cookie of the pending sign-in, which needs the second factor.
    pub(crate) async fn begin_sign_in(&self, email: &str) -> String {
        let body = json!({ "email": email, "password": PASSWORD });
        let path = "/api/auth/sign-in/email";
        let asked = self.iam.post(&Caller::Anonymous, path, body).await;
        let asked = asked.expect(200);
        assert_eq!(asked.json, json!({ "twoFactorRedirect": true }));
        pending_sign_in_cookie(&asked)
    }

    /// Sends a code with the cookie of a pending sign-in. `call` names the two-factor route.
    pub(crate) async fn complete_sign_in(&self, cookie: &str, call: &str, code: &str) -> Answer {
        let path = format!("/api/auth/two-factor/{call}");
        let headers = [("cookie", cookie), ("origin", ORIGIN)];
        let (nobody, body) = (Caller::Anonymous, json!({ "code": code }));
        self.iam.send(&nobody, "POST", &path, &headers, body).await
    }

    /// Returns the stored second factors as text.
    pub(crate) async fn two_factor_records(&self) -> String {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let found = uow.repositories(RecordKey::for_tests()).two_factors();
        let found = found.list(Within::Installation, &TwoFactorQuery::All, 100);
        format!("{:?}", found.await.unwrap())
    }

    /// Stores the session of a caller that a test made up. It begins now, and its authentication is fresh.
    pub(crate) async fn begin_session_of(&self, caller: &Caller) {
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let now = uow.now().await.unwrap();
        let id = caller.session_id().unwrap().clone();
        let session = Session {
            user_id: caller.user_id().unwrap().clone(),
            token_hash: TokenHash::of(id.as_str()),
            id,
            client_id: None,
            active_organization_id: None,
            remembered: true,
            ip_address: None,
            user_agent: None,
            created_at: now,
            updated_at: now,
            extended_at: now,
            authenticated_at: Some(now),
            second_factor_at: None,
            expires_at: Session::initial_expiry(now, true),
        };
        let repositories = uow.repositories(RecordKey::for_tests());
        repositories.sessions().insert(session).await.unwrap();
        uow.commit().await.unwrap();
    }
}

/// Returns the cookie of a pending sign-in, which must be the only cookie that the response sets.
pub(crate) fn pending_sign_in_cookie(answer: &Answer) -> String {
    let cookies = answer.headers.get_all("set-cookie").iter();
    let cookies: Vec<&str> = cookies.map(|cookie| cookie.to_str().unwrap()).collect();
    let [cookie] = cookies[..] else {
        panic!("{cookies:?}");
    };
    let (pair, attributes) = cookie.split_once(';').unwrap();
    assert!(pair.starts_with("better-auth.two_factor="), "{pair}");
    let expected = " Max-Age=600; Path=/; HttpOnly; SameSite=Lax";
    assert_eq!(attributes, expected);
    assert_eq!(answer.header("set-auth-token"), "");
    pair.to_owned()
}
