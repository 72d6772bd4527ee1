//! Service tokens: short-lived JWTs with which one service calls another. The keys that sign them rotate automatically.

use std::borrow::Borrow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::kernel::Ed25519Private;
pub use crate::kernel::Ed25519Public;
pub use crate::kernel::JwsError;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{SessionId, SuiteService, Timestamp, UnverifiedJws, record};

/// Lifetime of a service token: 5 minutes.
pub const SERVICE_TOKEN_LIFETIME: Duration = Duration::from_secs(300);

/// Maximum difference between the clocks of two machines.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(30);

/// The `typ` header of service tokens (RFC 9068).
const TYPE: &str = "at+jwt";

/// The claims of a service token. All times are in Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceClaims {
    /// The issuer: the base URL of IAM.
    pub iss: String,
    /// The calling service.
    pub sub: SuiteService,
    /// The called service.
    pub aud: SuiteService,
    /// The time at which the token was issued.
    pub iat: i64,
    /// The time before which the token is not valid.
    pub nbf: i64,
    /// The time at which the token expires.
    pub exp: i64,
    /// The unique id of the token.
    pub jti: String,
    /// The session of the person that the service calls for; absent if the calls have no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<SessionId>,
}

impl ServiceClaims {
    /// Checks issuer, audience and time of the claims.
    fn check(&self, issuer: &str, audience: &str, now: Timestamp) -> Result<(), TokenRefusal> {
        let at = Timestamp::from_seconds;
        if self.iss != issuer || self.aud.as_str() != audience {
            return Err(TokenRefusal::WrongParty);
        }
        if now.plus(MAX_CLOCK_SKEW) < at(self.nbf) || now >= at(self.exp).plus(MAX_CLOCK_SKEW) {
            return Err(TokenRefusal::OutsideValidity);
        }
        Ok(())
    }
}

/// The reason why a service token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// The token is not a JWS of the expected form, or its signature is invalid.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// The payload does not contain exactly the claims of a service token.
    #[error("the claims are not those of a service token")]
    Claims,
    /// The token has another issuer or another audience.
    #[error("the token has another issuer or another audience")]
    WrongParty,
    /// The token is not valid yet, or has expired.
    #[error("the token is not valid at this time")]
    OutsideValidity,
}

/// Signs the claims and returns the token.
#[must_use]
pub fn sign_service_token(key: &Ed25519Private, claims: &ServiceClaims) -> String {
    // A struct of texts and numbers always serializes to JSON.
    let payload = serde_json::to_vec(claims).unwrap_or_default();
    key.sign(TYPE, &key.public().thumbprint(), &payload)
}

/// A service token whose signature has not been verified yet.
#[derive(Debug)]
pub struct UnverifiedToken<'t>(UnverifiedJws<'t>);

impl<'t> UnverifiedToken<'t> {
    /// Parses a token without verifying its signature.
    ///
    /// # Errors
    /// [`TokenRefusal::Jws`] if the text is not a service token.
    pub fn parse(token: &'t str) -> Result<Self, TokenRefusal> {
        Ok(Self(UnverifiedJws::parse(token)?.of_type(TYPE)?))
    }

    /// The id of the key that the token claims to be signed with.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.0.kid()
    }

    /// Verifies the token and returns its claims. Checks the signature with this key, the issuer, the audience, and the
    /// time with a tolerance of 30 seconds.
    ///
    /// # Errors
    /// [`TokenRefusal`] with the reason why the token is not accepted.
    pub fn verify(
        &self,
        key: &Ed25519Public,
        issuer: &str,
        audience: &str,
        now: Timestamp,
    ) -> Result<ServiceClaims, TokenRefusal> {
        let payload = self.0.payload(key)?;
        let claims = serde_json::from_slice::<ServiceClaims>(&payload);
        let claims = claims.map_err(|_| TokenRefusal::Claims)?;
        claims.check(issuer, audience, now)?;
        Ok(claims)
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Time during which a key signs tokens.
const KEY_ACTIVE_PERIOD: Duration = DAY.saturating_mul(30);

/// Time between the publication of a key and its first use, so that every verifier has it by then.
const PUBLICATION_LEAD: Duration = DAY;

/// Time for which a key stays published after its successor took over. By then all of its tokens have expired.
const RETIREMENT_DELAY: Duration = DAY;

/// Returns the keys that may sign tokens now, preferred key first: the newest active key, then older keys that are
/// still published. Empty if `keys` is empty.
#[must_use]
pub fn signing_candidates<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Vec<&K> {
    let published = published_keys(keys, now).iter().rev();
    let in_use = |key: &&K| (*key).borrow().active_from <= now;
    let mut candidates: Vec<&K> = published.filter(in_use).collect();
    if candidates.is_empty() {
        // If the clock was set back, all keys may become active in the future.
        candidates.extend(keys.first());
    }
    candidates
}

/// Returns the keys that verify signatures now.
#[must_use]
pub fn published_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[count_retired(keys, now)..]
}

/// Returns the keys that are no longer published.
#[must_use]
pub fn retired_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[..count_retired(keys, now)]
}

/// Returns the number of retired keys: those whose successor took over at least a day ago.
fn count_retired<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> usize {
    let successors = keys.iter().skip(1);
    let gone = |key: &&K| now >= (*key).borrow().active_from.plus(RETIREMENT_DELAY);
    successors.take_while(gone).count()
}

/// Returns the time at which the next key becomes active, if it must be created now; `None` otherwise.
#[must_use]
pub fn next_key_activation<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Option<Timestamp> {
    let Some(last) = keys.last() else {
        return Some(now);
    };
    let begins = last.borrow().active_from.plus(KEY_ACTIVE_PERIOD);
    let due = now.plus(PUBLICATION_LEAD) >= begins;
    due.then(|| begins.max(now.plus(PUBLICATION_LEAD)))
}

/// A key that signs service tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct SigningKey {
    /// The key id: the thumbprint of the public key.
    pub kid: String,
    /// The sequence number: 1 for the first key, then one more for each. It is unique, so if several nodes create the
    /// next key at once, one succeeds.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub generation: i64,
    /// The public key, as the `x` member of a JSON Web Key.
    pub public_key: String,
    /// The encrypted private key.
    #[serde(skip)]
    pub sealed_private_key: String,
    /// The time from which the key signs tokens.
    pub active_from: Timestamp,
    /// The time at which the key was created and published.
    pub created_at: Timestamp,
}

record! {
    SigningKey as "signing key" by kid, asked SigningKeyQuery;
    audited;
}

/// Queries on signing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningKeyQuery {
    /// All signing keys, oldest first.
    All,
}

impl SigningKey {
    /// Returns the public key; `None` if the stored record is damaged.
    #[must_use]
    pub fn public(&self) -> Option<Ed25519Public> {
        Ed25519Public::read(&self.public_key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::SeededEntropy;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn claims() -> ServiceClaims {
        ServiceClaims {
            iss: "https://iam.example.org".to_owned(),
            sub: SuiteService::Gateway,
            aud: SuiteService::Registry,
            iat: NOW,
            nbf: NOW,
            exp: NOW + 300,
            jti: "one".to_owned(),
            sid: None,
        }
    }

    fn verify(token: &str, issuer: &str, audience: &str, seconds: i64) -> Result<(), TokenRefusal> {
        let key = Ed25519Private::generate(&SeededEntropy::new(1)).public();
        let token = UnverifiedToken::parse(token)?;
        assert_eq!(token.kid(), Some(key.thumbprint().as_str()));
        let now = Timestamp::from_seconds(seconds);
        token.verify(&key, issuer, audience, now).map(drop)
    }

    #[test]
    fn token_is_valid_only_for_its_audience_and_lifetime() {
        let key = Ed25519Private::generate(&SeededEntropy::new(1));
        let token = sign_service_token(&key, &claims());
        let iss = "https://iam.example.org";
        for seconds in [NOW - 30, NOW, NOW + 329] {
            assert_eq!(verify(&token, iss, "registry", seconds), Ok(()));
        }
        for seconds in [NOW - 31, NOW + 330, NOW + 86_400] {
            let refused = verify(&token, iss, "registry", seconds);
            assert_eq!(refused, Err(TokenRefusal::OutsideValidity), "{seconds}");
        }
        for (issuer, audience) in [(iss, "iam"), (iss, ""), ("https://other", "registry")] {
            let refused = verify(&token, issuer, audience, NOW);
            assert_eq!(refused, Err(TokenRefusal::WrongParty));
        }
    }

    #[test]
    fn missing_claims_and_several_audiences_are_refused() {
        let key = Ed25519Private::generate(&SeededEntropy::new(1));
        let kid = key.public().thumbprint();
        let whole = serde_json::to_value(claims()).unwrap();
        for name in ["iss", "sub", "aud", "iat", "nbf", "exp", "jti"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(name);
            let token = key.sign(TYPE, &kid, part.to_string().as_bytes());
            let refused = verify(&token, &claims().iss, "registry", NOW);
            assert_eq!(refused, Err(TokenRefusal::Claims), "{name}");
        }
        let mut many = whole;
        many["aud"] = serde_json::json!(["registry", "iam"]);
        let token = key.sign(TYPE, &kid, many.to_string().as_bytes());
        let refused = verify(&token, &claims().iss, "registry", NOW);
        assert_eq!(refused, Err(TokenRefusal::Claims));
    }

    #[test]
    fn no_service_may_call_the_gateway_or_itself() {
        for caller in SuiteService::ALL {
            assert!(!caller.may_call(*caller) && !caller.may_call(SuiteService::Gateway));
        }
        assert!(SuiteService::Gateway.may_call(SuiteService::Iam));
        assert!(SuiteService::Cli.may_call(SuiteService::Registry));
    }

    fn current_key(keys: &[SigningKey], now: Timestamp) -> Option<&SigningKey> {
        signing_candidates(keys, now).first().copied()
    }

    fn start() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn key(generation: usize, now: Timestamp, active_from: Timestamp) -> SigningKey {
        SigningKey {
            kid: generation.to_string(),
            generation: i64::try_from(generation).unwrap(),
            public_key: String::new(),
            sealed_private_key: String::new(),
            active_from,
            created_at: now,
        }
    }

    proptest! {
        #[test]
        fn keys_are_published_a_day_before_and_after_their_use(
            hours in prop::collection::vec(0_u64..2_000, 1..60)
        ) {
            let mut keys: Vec<SigningKey> = Vec::new();
            let mut now = start();
            for hours in hours {
                now = now.plus(Duration::from_secs(hours * 3_600));
                if let Some(begins) = next_key_activation(&keys, now) {
                    prop_assert!(keys.is_empty() || begins >= now.plus(DAY));
                    keys.push(key(keys.len(), now, begins));
                }
                prop_assert_eq!(next_key_activation(&keys, now), None, "one at a time");
                let current = current_key(&keys, now).unwrap();
                prop_assert!(current.active_from <= now);
                prop_assert!(published_keys(&keys, now).contains(current));
                prop_assert!(published_keys(&keys, now.plus(DAY)).contains(current));
                prop_assert_eq!(published_keys(&keys, now).last(), keys.last());
                let retired = retired_keys(&keys, now).len();
                prop_assert!(published_keys(&keys, now).len() <= 3);
                keys.drain(..retired);
            }
        }
    }

    #[test]
    fn key_signs_for_thirty_days_and_its_successor_is_due_a_day_before() {
        let day = |days| start().plus(DAY * days);
        let mut keys = vec![key(1, start(), start())];
        assert_eq!(next_key_activation(&keys, day(28)), None);
        assert_eq!(next_key_activation(&keys, day(29)), Some(day(30)));
        keys.push(key(2, day(29), day(30)));
        for (now, signs, published) in [(29, "1", 2), (30, "2", 2), (31, "2", 1)] {
            assert_eq!(current_key(&keys, day(now)).unwrap().kid, signs);
            assert_eq!(published_keys(&keys, day(now)).len(), published);
        }
    }
}
