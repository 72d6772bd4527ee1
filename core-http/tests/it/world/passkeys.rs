//! Passkeys of people, with software authenticators.

use core_domain::access::RecordKey;
use core_domain::iam::{PASSKEY_CHALLENGE_LIFETIME, PasskeyChallenge, PasskeyChallengeQuery};
use core_domain::kernel::{Caller, Stored};
use core_domain::port::{Mode, Persisted, Within};
use core_http::kernel::testing::Answer;
use core_webauthn::testing::SoftAuthenticator;
use serde_json::{Value, json};

use super::{ORIGIN, Person, World};

const COOKIE: &str = "better-auth.better-auth-passkey=";

/// A ceremony that has begun: its options, and the cookie of its challenge.
#[derive(Clone, Debug)]
pub(crate) struct Ceremony {
    pub(crate) options: Value,
    pub(crate) cookie: String,
}

impl Ceremony {
    /// Returns the token that identifies the challenge.
    pub(crate) fn token(&self) -> &str {
        let value = self.cookie.strip_prefix(COOKIE).unwrap();
        let (token, _signature) = value.split_once('.').unwrap();
        token
    }

    fn read(answer: &Answer) -> Self {
        assert_eq!(answer.header("cache-control"), "no-store");
        let (pair, attributes) = answer.header("set-cookie").split_once(';').unwrap();
        assert!(pair.starts_with(COOKIE), "{pair}");
        let expected = " Max-Age=300; Path=/; HttpOnly; SameSite=Lax";
        assert_eq!(attributes, expected);
        Self {
            options: answer.json.clone(),
            cookie: pair.to_owned(),
        }
    }
}

impl World {
    /// Returns an authenticator without a passkey, in a browser on an IAM page.
    pub(crate) fn authenticator(&self, seed: u8) -> SoftAuthenticator {
        SoftAuthenticator::new(seed, ORIGIN)
    }

    /// Calls a passkey route with the cookie of a challenge, which may be empty. A `null` body sends a `GET`, any other
    /// body a `POST`.
    pub(crate) async fn call_passkey(
        &self,
        caller: &Caller,
        call: &str,
        cookie: &str,
        body: Value,
    ) -> Answer {
        let path = format!("/api/auth/passkey/{call}");
        let method = if body.is_null() { "GET" } else { "POST" };
        let mut headers = vec![("origin", ORIGIN)];
        if !cookie.is_empty() {
            headers.push(("cookie", cookie));
        }
        self.iam.send(caller, method, &path, &headers, body).await
    }

    /// Confirms the address of a person and begins the registration of a passkey.
    pub(crate) async fn begin_passkey(&self, person: &Person) -> Ceremony {
        self.set_confirmed(person, true).await;
        let call = "generate-register-options";
        let caller = person.caller();
        let begun = self.call_passkey(&caller, call, "", Value::Null);
        Ceremony::read(&begun.await.expect(200))
    }

    /// Completes a registration with the credential that an authenticator made.
    pub(crate) async fn finish_passkey(
        &self,
        person: &Person,
        cookie: &str,
        made: &Value,
    ) -> Answer {
        let (call, body) = (
            "verify-registration",
            json!({ "response": made, "name": "Phone" }),
        );
        self.call_passkey(&person.caller(), call, cookie, body)
            .await
    }

    /// Registers a passkey for a person and returns its authenticator.
    pub(crate) async fn create_passkey(&self, person: &Person, seed: u8) -> SoftAuthenticator {
        let mut authenticator = self.authenticator(seed);
        self.register_passkey(person, &mut authenticator).await;
        authenticator
    }

    /// Registers the passkey that this authenticator makes for a person.
    pub(crate) async fn register_passkey(
        &self,
        person: &Person,
        authenticator: &mut SoftAuthenticator,
    ) {
        let begun = self.begin_passkey(person).await;
        let made = authenticator.create(&begun.options);
        let registered = self.finish_passkey(person, &begun.cookie, &made).await;
        let _ = registered.expect(200);
    }

    /// Begins a sign-in by passkey.
    pub(crate) async fn begin_passkey_sign_in(&self) -> Ceremony {
        let call = "generate-authenticate-options";
        let begun = self.call_passkey(&Caller::Anonymous, call, "", Value::Null);
        Ceremony::read(&begun.await.expect(200))
    }

    /// Completes a sign-in by passkey, or a fresh proof, with the signature of an authenticator.
    pub(crate) async fn finish_passkey_sign_in(
        &self,
        caller: &Caller,
        cookie: &str,
        shown: &Value,
    ) -> Answer {
        let (call, body) = ("verify-authentication", json!({ "response": shown }));
        self.call_passkey(caller, call, cookie, body).await
    }

    /// Signs in by passkey.
    pub(crate) async fn sign_in_by_passkey(&self, authenticator: &mut SoftAuthenticator) -> Answer {
        let asked = self.begin_passkey_sign_in().await;
        let shown = authenticator.get(&asked.options);
        self.finish_passkey_sign_in(&Caller::Anonymous, &asked.cookie, &shown)
            .await
    }

    /// Returns the passkeys in the list of a person.
    pub(crate) async fn passkeys_of(&self, person: &Person) -> Vec<Value> {
        let call = "list-user-passkeys";
        let caller = person.caller();
        let listed = self.call_passkey(&caller, call, "", Value::Null);
        listed.await.expect(200).json.as_array().unwrap().clone()
    }

    /// Returns the stored challenges, in the order in which they expire.
    pub(crate) async fn passkey_challenges(&self) -> Vec<Stored<PasskeyChallenge>> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let later = uow.now().await.unwrap().plus(PASSKEY_CHALLENGE_LIFETIME);
        let all = PasskeyChallengeQuery::ExpiredAt(later);
        let challenges = PasskeyChallenge::repository(uow.repositories(RecordKey::for_tests()));
        let found = challenges.list(Within::Installation, &all, 100).await;
        found.unwrap()
    }
}
