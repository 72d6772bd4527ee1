//! Access tokens, and how long tokens last.

use std::time::Duration;

use crate::iam::TokenHash;
use crate::kernel::{SessionId, Timestamp, record, text_enum};

text_enum! {
    /// A program that people sign in with; the word is its `client_id`. All of them are public clients: they have no secret.
    pub enum OAuthClient {
        /// The command-line client.
        CoreCli = "core-cli",
    }
}

text_enum! {
    /// What a client shows in exchange for tokens.
    pub enum GrantType {
        /// The device code of an authorization that a person has approved.
        DeviceCode = "urn:ietf:params:oauth:grant-type:device_code",
        /// The refresh token of the last exchange.
        RefreshToken = "refresh_token",
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an access token lasts, unless its session ends before.
pub const ACCESS_TOKEN_LIFETIME: Duration = Duration::from_secs(900);

/// How long a refresh token lasts, and with it the session of its family.
pub const REFRESH_TOKEN_LIFETIME: Duration = DAY.saturating_mul(30);

/// How long after the login a family of refresh tokens ends, however much it is used.
pub const FAMILY_LIFETIME: Duration = DAY.saturating_mul(90);

/// A token with which a program acts as the person of a session. It is worth nothing without its session, so ending the
/// session ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AccessToken {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// The session it acts for.
    pub session_id: SessionId,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From when on it is over.
    pub expires_at: Timestamp,
}

record! {
    AccessToken as "access token" by token_hash, asked AccessTokenQuery;
}

/// Questions about access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTokenQuery {
    /// Those of a session.
    OfSession(SessionId),
    /// Those that have expired at this instant.
    ExpiredAt(Timestamp),
}

/// What access tokens begin with. Session tokens are of letters and digits alone.
pub const ACCESS_TOKEN_PREFIX: &str = "cat_";

/// What refresh tokens begin with.
pub const REFRESH_TOKEN_PREFIX: &str = "crt_";

/// Tells whether a text has the form of an access token.
#[must_use]
pub fn is_access_token(text: &str) -> bool {
    let secret = text.strip_prefix(ACCESS_TOKEN_PREFIX);
    secret.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// How long after its first use a token that is shown again gets the same successor: the answer to the first use may have
/// been lost, or the client used it from several threads.
const REPEAT_WINDOW: Duration = Duration::from_secs(10);

/// A refresh token. The tokens of a session are a family: each but the last names its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct RefreshToken {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// The session of its family.
    pub session_id: SessionId,
    /// The token that was exchanged for it; none for the first of the family.
    pub predecessor_hash: Option<TokenHash>,
    /// When it was first used. Never changes then.
    pub rotated_at: Option<Timestamp>,
    /// The token it was exchanged for.
    pub successor_hash: Option<TokenHash>,
    /// The tokens it was exchanged for, encrypted, until the successor is used.
    pub sealed_successor: Option<String>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From when on it is over.
    pub expires_at: Timestamp,
}

record! {
    RefreshToken as "refresh token" by token_hash, asked RefreshTokenQuery;
}

/// Questions about refresh tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshTokenQuery {
    /// Those of a session.
    OfSession(SessionId),
    /// Those that have expired at this instant.
    ExpiredAt(Timestamp),
}

/// What is done with a refresh token that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshDecision {
    /// It is exchanged for a new one.
    Rotate,
    /// It was exchanged a moment ago: the answer is given again.
    Repeat,
    /// Somebody uses it who should not have it: the family ends.
    Reuse,
    /// It is over.
    Expired,
}

impl RefreshToken {
    /// Decides what is done with the token, given the one it was exchanged for.
    #[must_use]
    pub fn shown(&self, successor: Option<&Self>, now: Timestamp) -> RefreshDecision {
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

    /// The token once it was exchanged.
    #[must_use]
    pub fn rotated(&self, now: Timestamp, successor: TokenHash, sealed: String) -> Self {
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
    use proptest::prelude::*;

    use crate::iam::{FAMILY_LIFETIME, REFRESH_TOKEN_LIFETIME};

    use super::*;

    #[test]
    fn no_session_token_and_no_refresh_token_has_the_form_of_an_access_token() {
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
                .min(start().plus(FAMILY_LIFETIME)),
        }
    }

    /// A family as the records have it.
    struct Family {
        tokens: Vec<RefreshToken>,
        revoked: bool,
    }

    impl Family {
        /// The number of the token that is answered, if any.
        fn show(&mut self, number: usize, now: Timestamp) -> Option<usize> {
            let token = self.tokens.get(number).filter(|_| !self.revoked)?.clone();
            let find = |hash| self.tokens.iter().position(|t| Some(&t.token_hash) == hash);
            let successor = find(token.successor_hash.as_ref());
            match token.shown(successor.map(|at| &self.tokens[at]), now) {
                RefreshDecision::Rotate => {
                    let next = super::tests::token(self.tokens.len(), now);
                    let sealed = String::new();
                    self.tokens[number] = token.rotated(now, next.token_hash.clone(), sealed);
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

    /// The rules in other words: a family is when each of its tokens was issued and how many there are, nothing else.
    struct Naive {
        issued: Vec<u64>,
        ended: bool,
    }

    impl Naive {
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
            // A token's first use is when its successor was issued.
            if number + 1 == last && seconds - self.issued[last] <= 10 {
                return Some(last);
            }
            self.ended = true;
            None
        }
    }

    proptest! {
        #[test]
        fn whatever_is_shown_when_a_family_goes_on_as_the_naive_model_says(
            shown in prop::collection::vec(
                (0_usize..3, prop_oneof![0_u64..30, 0_u64..3_000_000]), 1..60),
        ) {
            let mut family = Family { tokens: vec![token(0, start())], revoked: false };
            let mut naive = Naive { issued: vec![0], ended: false };
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
    fn the_window_begins_with_the_first_use_and_ends_when_the_successor_is_used() {
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
