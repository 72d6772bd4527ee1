//! Short-lived tokens with which one service calls another: signed with keys that change by themselves.

use std::borrow::Borrow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::kernel::Ed25519Private;
pub use crate::kernel::Ed25519Public;
pub use crate::kernel::JwsError;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{SessionId, Timestamp, Unverified, record, text_enum};

/// How long a service token lasts.
pub const SERVICE_TOKEN_LIFETIME: Duration = Duration::from_secs(300);

/// How far the clocks of two machines may be apart.
const SKEW: Duration = Duration::from_secs(30);

/// The type in the header of service tokens (RFC 9068).
const TYPE: &str = "at+jwt";

text_enum! {
    /// A service of the suite, as caller or as audience of a service token.
    pub enum SuiteService {
        /// The gateway.
        Gateway = "gateway",
        /// Identity and access.
        Iam = "iam",
        /// Platforms and what belongs to them.
        Registry = "registry",
        /// The job engine.
        Provisioning = "provisioning",
        /// The backend of the command line.
        Cli = "cli",
        /// Plans, subscriptions, usage.
        Billing = "billing",
        /// Stack templates and their versions.
        Stacks = "stacks",
    }
}

impl SuiteService {
    /// Whether this service has reason to call the other: everybody but the other itself, which is not the gateway, as
    /// nobody calls that with a service token.
    #[must_use]
    pub fn may_call(self, target: Self) -> bool {
        self != target && target != Self::Gateway
    }
}

/// What a service token says. Instants are Unix seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceClaims {
    /// Who issued it: the address of IAM.
    pub iss: String,
    /// The service that calls.
    pub sub: SuiteService,
    /// The service that is called.
    pub aud: SuiteService,
    /// When it was issued.
    pub iat: i64,
    /// From when on it is valid.
    pub nbf: i64,
    /// From when on it is over.
    pub exp: i64,
    /// What tells it from all others.
    pub jti: String,
    /// The session of the person for whom the service calls; `None` if the token is for calls without a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<SessionId>,
}

impl ServiceClaims {
    /// Whether a service should believe this, now.
    fn check(&self, issuer: &str, audience: &str, now: Timestamp) -> Result<(), TokenRefusal> {
        let at = Timestamp::from_seconds;
        if self.iss != issuer || self.aud.as_str() != audience {
            return Err(TokenRefusal::Foreign);
        }
        if now.plus(SKEW) < at(self.nbf) || now >= at(self.exp).plus(SKEW) {
            return Err(TokenRefusal::NotNow);
        }
        Ok(())
    }
}

/// Why a service token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// It is no token of ours.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// What it says is not what a service token says.
    #[error("the claims are not those of a service token")]
    Claims,
    /// It is of another issuer, or for another service.
    #[error("the token is of another issuer or for another service")]
    Foreign,
    /// It is not valid yet, or no longer.
    #[error("the token is not valid at this time")]
    NotNow,
}

/// The claims as a signed token.
#[must_use]
pub fn sign_service_token(key: &Ed25519Private, claims: &ServiceClaims) -> String {
    // A struct of texts and numbers is always JSON.
    let payload = serde_json::to_vec(claims).unwrap_or_default();
    key.signed(TYPE, &key.public().thumbprint(), &payload)
}

/// A service token whose signature was not checked yet.
#[derive(Debug)]
pub struct UnverifiedToken<'t>(Unverified<'t>);

impl<'t> UnverifiedToken<'t> {
    /// Reads a token.
    ///
    /// # Errors
    /// [`TokenRefusal::Jws`] for what is no service token at all.
    pub fn parse(token: &'t str) -> Result<Self, TokenRefusal> {
        Ok(Self(Unverified::parse(token)?.of_type(TYPE)?))
    }

    /// The name of the key it says it was signed with.
    #[must_use]
    pub fn kid(&self) -> Option<&str> {
        self.0.kid()
    }

    /// What it says, provided it was signed with this key, is of this issuer, for this service, and valid now (give or take
    /// 30 seconds).
    ///
    /// # Errors
    /// [`TokenRefusal`] says why it is not believed.
    pub fn verified(
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

/// How long tokens are signed with a key.
const ACTIVE_FOR: Duration = DAY.saturating_mul(30);

/// How long a key is published before tokens are signed with it, so that everybody has it by then.
const PUBLISHED_BEFORE: Duration = DAY;

/// How long a key is published after the next one took its place; every token it signed is over by then.
const PUBLISHED_AFTER: Duration = DAY;

/// The keys that tokens may be signed with now, best first: the newest that is in use, and those before it that are still
/// published. Empty when there is no key at all.
#[must_use]
pub fn keys_to_sign_with<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Vec<&K> {
    let published = published_keys(keys, now).iter().rev();
    let in_use = |key: &&K| (*key).borrow().active_from <= now;
    let mut candidates: Vec<&K> = published.filter(in_use).collect();
    if candidates.is_empty() {
        // After a clock was set back all may begin in the future.
        candidates.extend(keys.first());
    }
    candidates
}

/// The keys that signatures are checked with now.
#[must_use]
pub fn published_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[retired(keys, now)..]
}

/// The keys nobody needs any more.
#[must_use]
pub fn retired_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[..retired(keys, now)]
}

/// How many keys are retired: those whose successor has taken their place for long enough.
fn retired<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> usize {
    let successors = keys.iter().skip(1);
    let gone = |key: &&K| now >= (*key).borrow().active_from.plus(PUBLISHED_AFTER);
    successors.take_while(gone).count()
}

/// From when on tokens are signed with the next key, if it is time to make it.
#[must_use]
pub fn next_key_begins<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Option<Timestamp> {
    let Some(last) = keys.last() else {
        return Some(now);
    };
    let begins = last.borrow().active_from.plus(ACTIVE_FOR);
    let due = now.plus(PUBLISHED_BEFORE) >= begins;
    due.then(|| begins.max(now.plus(PUBLISHED_BEFORE)))
}

/// A key that service tokens are signed with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct SigningKey {
    /// The name of the key: the thumbprint of its public half.
    pub kid: String,
    /// 1 for the first key, one more for each that follows: of nodes that make the next one at once, one succeeds.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub generation: i64,
    /// The public half, as the `x` of a JSON Web Key.
    pub public_key: String,
    /// The private half, encrypted.
    #[serde(skip)]
    pub sealed_private_key: String,
    /// From when on tokens are signed with it.
    pub active_from: Timestamp,
    /// When it was made, and published.
    pub created_at: Timestamp,
}

record! {
    SigningKey as "signing key" by kid, asked SigningKeyQuery;
    audited;
}

/// Questions about signing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningKeyQuery {
    /// All, oldest first.
    All,
}

impl SigningKey {
    /// The public half; `None` when the record was damaged.
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

    fn believed(
        token: &str,
        issuer: &str,
        audience: &str,
        seconds: i64,
    ) -> Result<(), TokenRefusal> {
        let key = Ed25519Private::generate(&SeededEntropy::new(1)).public();
        let token = UnverifiedToken::parse(token)?;
        assert_eq!(token.kid(), Some(key.thumbprint().as_str()));
        let now = Timestamp::from_seconds(seconds);
        token.verified(&key, issuer, audience, now).map(drop)
    }

    #[test]
    fn a_token_is_believed_by_its_audience_in_its_time_alone() {
        let key = Ed25519Private::generate(&SeededEntropy::new(1));
        let token = sign_service_token(&key, &claims());
        let iss = "https://iam.example.org";
        for seconds in [NOW - 30, NOW, NOW + 329] {
            assert_eq!(believed(&token, iss, "registry", seconds), Ok(()));
        }
        for seconds in [NOW - 31, NOW + 330, NOW + 86_400] {
            let refused = believed(&token, iss, "registry", seconds);
            assert_eq!(refused, Err(TokenRefusal::NotNow), "{seconds}");
        }
        for (issuer, audience) in [(iss, "iam"), (iss, ""), ("https://other", "registry")] {
            let refused = believed(&token, issuer, audience, NOW);
            assert_eq!(refused, Err(TokenRefusal::Foreign));
        }
    }

    #[test]
    fn claims_that_are_missing_or_of_several_audiences_are_refused() {
        let key = Ed25519Private::generate(&SeededEntropy::new(1));
        let kid = key.public().thumbprint();
        let whole = serde_json::to_value(claims()).unwrap();
        for name in ["iss", "sub", "aud", "iat", "nbf", "exp", "jti"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(name);
            let token = key.signed(TYPE, &kid, part.to_string().as_bytes());
            let refused = believed(&token, &claims().iss, "registry", NOW);
            assert_eq!(refused, Err(TokenRefusal::Claims), "{name}");
        }
        let mut many = whole;
        many["aud"] = serde_json::json!(["registry", "iam"]);
        let token = key.signed(TYPE, &kid, many.to_string().as_bytes());
        let refused = believed(&token, &claims().iss, "registry", NOW);
        assert_eq!(refused, Err(TokenRefusal::Claims));
    }

    #[test]
    fn nobody_calls_the_gateway_or_itself_with_a_service_token() {
        for caller in SuiteService::ALL {
            assert!(!caller.may_call(*caller) && !caller.may_call(SuiteService::Gateway));
        }
        assert!(SuiteService::Gateway.may_call(SuiteService::Iam));
        assert!(SuiteService::Cli.may_call(SuiteService::Registry));
    }

    fn current_key(keys: &[SigningKey], now: Timestamp) -> Option<&SigningKey> {
        keys_to_sign_with(keys, now).first().copied()
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
        fn however_seldom_anybody_looks_a_key_is_published_a_day_before_and_after_its_use(
            hours in prop::collection::vec(0_u64..2_000, 1..60)
        ) {
            let mut keys: Vec<SigningKey> = Vec::new();
            let mut now = start();
            for hours in hours {
                now = now.plus(Duration::from_secs(hours * 3_600));
                if let Some(begins) = next_key_begins(&keys, now) {
                    prop_assert!(keys.is_empty() || begins >= now.plus(DAY));
                    keys.push(key(keys.len(), now, begins));
                }
                prop_assert_eq!(next_key_begins(&keys, now), None, "one at a time");
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
    fn a_key_signs_for_thirty_days_and_the_next_is_made_a_day_before() {
        let day = |days| start().plus(DAY * days);
        let mut keys = vec![key(1, start(), start())];
        assert_eq!(next_key_begins(&keys, day(28)), None);
        assert_eq!(next_key_begins(&keys, day(29)), Some(day(30)));
        keys.push(key(2, day(29), day(30)));
        for (now, signs, published) in [(29, "1", 2), (30, "2", 2), (31, "2", 1)] {
            assert_eq!(current_key(&keys, day(now)).unwrap().kid, signs);
            assert_eq!(published_keys(&keys, day(now)).len(), published);
        }
    }
}
