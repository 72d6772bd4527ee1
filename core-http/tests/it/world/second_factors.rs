//! Second factors of people, and sessions that are there for real.

use core_domain::access::RecordKey;
use core_domain::iam::{Session, TokenHash, TotpSecret, TwoFactorQuery};
use core_domain::kernel::{Caller, Clock};
use core_domain::port::{Mode, Within};
use core_domain::testing::totp_secret_of;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use super::{ORIGIN, PASSWORD, Person, World};

/// What a person has of their second factor.
#[derive(Clone, Debug)]
pub(crate) struct Authenticator {
    pub(crate) secret: TotpSecret,
    pub(crate) recovery_codes: Vec<String>,
}

impl Authenticator {
    /// Reads the answer to a set-up, as an app reads the picture of it.
    fn read(answer: &Answer) -> Self {
        let codes = answer.json["backupCodes"].as_array().unwrap().iter();
        Self {
            secret: totp_secret_of(answer.text("totpURI")).unwrap(),
            recovery_codes: codes.map(|c| c.as_str().unwrap().to_owned()).collect(),
        }
    }

    /// The code it shows now.
    pub(crate) fn code(&self, world: &World) -> String {
        self.secret.code_at(world.clock.now())
    }
}

impl World {
    /// A call of the second factor's routes by a person within their session.
    pub(crate) async fn two_factor(&self, person: &Person, call: &str, body: Value) -> Answer {
        let path = format!("/api/auth/two-factor/{call}");
        self.iam.post(&person.caller(), &path, body).await
    }

    /// A second factor that was set up and not confirmed, of a person whose address is confirmed from now on.
    pub(crate) async fn set_up_second_factor(&self, person: &Person) -> Authenticator {
        self.set_confirmed(person, true).await;
        let body = json!({ "password": PASSWORD });
        let set_up = self.two_factor(person, "enable", body).await;
        Authenticator::read(&set_up.expect(200))
    }

    /// A second factor that is asked for. Time passes, so that the code it shows was not used.
    pub(crate) async fn second_factor(&self, person: &Person) -> Authenticator {
        let authenticator = self.set_up_second_factor(person).await;
        let body = json!({ "code": authenticator.code(self) });
        let shown = self.two_factor(person, "verify-totp", body).await;
        let _ = shown.expect(200);
        self.tick(30);
        authenticator
    }

    /// The cookie of a sign-in that waits for its second factor.
    pub(crate) async fn half_sign_in(&self, email: &str) -> String {
        let body = json!({ "email": email, "password": PASSWORD });
        let path = "/api/auth/sign-in/email";
        let asked = self.iam.post(&Caller::Anonymous, path, body).await;
        let asked = asked.expect(200);
        assert_eq!(asked.json, json!({ "twoFactorRedirect": true }));
        waiting_cookie(&asked)
    }

    /// Shows a code with the cookie of a sign-in that waits.
    pub(crate) async fn complete(&self, cookie: &str, call: &str, code: &str) -> Answer {
        let path = format!("/api/auth/two-factor/{call}");
        let headers = [("cookie", cookie), ("origin", ORIGIN)];
        let (nobody, body) = (Caller::Anonymous, json!({ "code": code }));
        self.iam.send(&nobody, "POST", &path, &headers, body).await
    }

    /// What is stored of second factors and of sign-ins that wait.
    pub(crate) async fn two_factor_records(&self) -> String {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let found = uow.repositories(RecordKey::for_tests()).two_factors();
        let found = found.list(Within::Installation, &TwoFactorQuery::All, 100);
        format!("{:?}", found.await.unwrap())
    }

    /// Makes the session of a caller whom a test made up, so that it was begun just now.
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
            expires_at: Session::first_end(now, true),
        };
        let repositories = uow.repositories(RecordKey::for_tests());
        repositories.sessions().insert(session).await.unwrap();
        uow.commit().await.unwrap();
    }
}

/// The cookie that an answer to a first factor sets, and no other.
pub(crate) fn waiting_cookie(answer: &Answer) -> String {
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
