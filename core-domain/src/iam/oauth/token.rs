//! Access tokens, refresh tokens, and their lifetimes. Refresh tokens rotate: each use replaces the token by its
//! successor, and reuse of an old token ends the family.

use std::time::Duration;

use crate::iam::TokenHash;
use crate::kernel::{SessionId, Timestamp, record, text_enum};

text_enum! {
    /// A program that people sign in with, by its `client_id`. All clients are public clients without a secret.
    pub enum OAuthClient {
        /// The command-line client of the suite.
        CoreCli = "core-cli",
    }
}

text_enum! {
    /// The kind of credential that a client exchanges for tokens.
    pub enum OAuthGrantType {
        /// The device code of an authorization that a person has approved.
        DeviceCode = "urn:ietf:params:oauth:grant-type:device_code",
        /// The refresh token from the last exchange.
        RefreshToken = "refresh_token",
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lifetime of an access token: 15 minutes. It ends earlier with its session.
pub const ACCESS_TOKEN_LIFETIME: Duration = Duration::from_secs(900);

/// Lifetime of a refresh token and of its session after the last use: 30 days.
pub const REFRESH_TOKEN_LIFETIME: Duration = DAY.saturating_mul(30);

/// Maximum lifetime of a family of refresh tokens after the sign-in: 90 days, independent of its use.
pub const MAX_FAMILY_LIFETIME: Duration = DAY.saturating_mul(90);

/// A token with which a program acts for the user of a session. It is valid only as long as the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AccessToken {
    /// The hash of the access token.
    pub token_hash: TokenHash,
    /// The session that the token acts for.
    pub session_id: SessionId,
    /// The time at which the token was issued.
    pub created_at: Timestamp,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
}

record! {
    AccessToken as "access token" by token_hash, asked AccessTokenQuery;
}

/// Queries on access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTokenQuery {
    /// The access tokens of a session.
    OfSession(SessionId),
    /// The access tokens that have expired at this time.
    ExpiredAt(Timestamp),
}

/// Time after the first use during which the same token gets the same successor again. The response to the first use
/// may have been lost, or several threads of the client may have used the token.
const REPEAT_WINDOW: Duration = Duration::from_secs(10);

/// A refresh token. The refresh tokens of a session form a family: each token except the last names its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct RefreshToken {
    /// The hash of the refresh token.
    pub token_hash: TokenHash,
    /// The session that the family belongs to.
    pub session_id: SessionId,
    /// The hash of the token that was exchanged for this one; `None` for the first of the family.
    pub predecessor_hash: Option<TokenHash>,
    /// The time of the first use. Never changes afterwards.
    pub rotated_at: Option<Timestamp>,
    /// The hash of the token that replaced this one.
    pub successor_hash: Option<TokenHash>,
    /// The tokens that replaced this one, encrypted. Cleared when the successor is used.
    pub sealed_successor: Option<String>,
    /// The time at which the token was issued.
    pub created_at: Timestamp,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
}

record! {
    RefreshToken as "refresh token" by token_hash, asked RefreshTokenQuery;
}

/// Queries on refresh tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshTokenQuery {
    /// The refresh tokens of a session.
    OfSession(SessionId),
    /// The refresh tokens that have expired at this time.
    ExpiredAt(Timestamp),
}

/// The action for a refresh token that a client presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshDecision {
    /// Exchange the token for a new one.
    Rotate,
    /// Return the tokens of the recent first exchange again.
    Repeat,
    /// End the family, because the token was reused and may be stolen.
    Reuse,
    /// Refuse the token, because it has expired.
    Expired,
}

impl RefreshToken {
    /// Decides the action for this token. `successor` is the token that replaced it, if any.
    #[must_use]
    pub fn decide_refresh(&self, successor: Option<&Self>, now: Timestamp) -> RefreshDecision {
        if now >= self.expires_at {
            return RefreshDecision::Expired;
        }
        let Some(rotated_at) = self.rotated_at else {
            return RefreshDecision::Rotate;
        };
        let unused = successor.is_some_and(|successor| successor.rotated_at.is_none());
        if unused && now.since(rotated_at) <= REPEAT_WINDOW {
            RefreshDecision::Repeat
        } else {
            RefreshDecision::Reuse
        }
    }

    /// Returns the token after its exchange.
    #[must_use]
    pub fn with_successor(&self, now: Timestamp, successor: TokenHash, sealed: String) -> Self {
        Self {
            rotated_at: Some(now),
            successor_hash: Some(successor),
            sealed_successor: Some(sealed),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::iam::is_access_token;
    use proptest::prelude::*;

    use crate::iam::{MAX_FAMILY_LIFETIME, REFRESH_TOKEN_LIFETIME};

    use super::*;

    #[test]
    fn other_tokens_do_not_have_the_form_of_an_access_token() {
        assert!(is_access_token("cat_abcXYZ019"));
        for other in [
            "", "cat_", "catabc", "cat_a.b", "cat_a b", "crt_abc", "CAT_abc",
        ] {
            assert!(!is_access_token(other), "{other}");
        }
    }

    fn start() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn token(number: usize, now: Timestamp) -> RefreshToken {
        RefreshToken {
            token_hash: TokenHash::of(&number.to_string()),
            session_id: SessionId::parse("family").unwrap(),
            predecessor_hash: None,
            rotated_at: None,
            successor_hash: None,
            sealed_successor: None,
            created_at: now,
            expires_at: now
                .plus(REFRESH_TOKEN_LIFETIME)
                .min(start().plus(MAX_FAMILY_LIFETIME)),
        }
    }

    /// A family as the stored records describe it.
    struct Family {
        tokens: Vec<RefreshToken>,
        revoked: bool,
    }

    impl Family {
        /// Returns the number of the token that the client gets, if any.
        fn show(&mut self, number: usize, now: Timestamp) -> Option<usize> {
            let token = self.tokens.get(number).filter(|_| !self.revoked)?.clone();
            let find = |hash| self.tokens.iter().position(|t| Some(&t.token_hash) == hash);
            let successor = find(token.successor_hash.as_ref());
            match token.decide_refresh(successor.map(|at| &self.tokens[at]), now) {
                RefreshDecision::Rotate => {
                    let next = super::tests::token(self.tokens.len(), now);
                    let sealed = String::new();
                    self.tokens[number] =
                        token.with_successor(now, next.token_hash.clone(), sealed);
                    self.tokens.push(next);
                    Some(self.tokens.len() - 1)
                }
                RefreshDecision::Repeat => successor,
                RefreshDecision::Reuse => {
                    self.revoked = true;
                    None
                }
                RefreshDecision::Expired => None,
            }
        }
    }

    /// A simple model of the rules. The state of a family is only its number of tokens and when each was issued.
    struct FamilyModel {
        issued: Vec<u64>,
        ended: bool,
    }

    impl FamilyModel {
        fn show(&mut self, number: usize, seconds: u64) -> Option<usize> {
            let last = self.issued.len() - 1;
            let over = |issued: u64| seconds >= issued + 30 * 86_400 || seconds >= 90 * 86_400;
            if self.ended || number > last || over(self.issued[number]) {
                return None;
            }
            if number == last {
                self.issued.push(seconds);
                return Some(last + 1);
            }
            // The first use of a token is the time at which its successor was issued.
            if number + 1 == last && seconds - self.issued[last] <= 10 {
                return Some(last);
            }
            self.ended = true;
            None
        }
    }

    proptest! {
        #[test]
        fn token_family_behaves_like_the_simple_model(
            shown in prop::collection::vec(
                (0_usize..3, prop_oneof![0_u64..30, 0_u64..3_000_000]), 1..60),
        ) {
            let mut family = Family { tokens: vec![token(0, start())], revoked: false };
            let mut naive = FamilyModel { issued: vec![0], ended: false };
            let mut seconds = 0;
            for (back, pause) in shown {
                seconds += pause;
                let number = family.tokens.len().saturating_sub(1 + back);
                let now = start().plus(Duration::from_secs(seconds));
                prop_assert_eq!(family.show(number, now), naive.show(number, seconds));
                prop_assert_eq!(family.revoked, naive.ended);
            }
        }
    }

    #[test]
    fn repeat_window_starts_with_the_first_use_and_ends_with_the_use_of_the_successor() {
        let at = |seconds| start().plus(Duration::from_secs(seconds));
        let mut family = Family {
            tokens: vec![token(0, start())],
            revoked: false,
        };
        for seconds in [100, 104, 108, 110] {
            assert_eq!(family.show(0, at(seconds)), Some(1));
        }
        assert_eq!(family.show(1, at(110)), Some(2));
        assert_eq!(family.show(0, at(110)), None);
        assert!(family.revoked);
    }
}
