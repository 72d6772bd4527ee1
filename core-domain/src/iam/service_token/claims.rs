//! What a service token says, and who believes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::kernel::{
    Ed25519Private, Ed25519Public, JwsError, SessionId, Timestamp, Unverified, text_enum,
};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

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
}
