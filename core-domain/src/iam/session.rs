//! Sessions and their lifetime. A session lives for 7 days after its last extension and is extended at most once a
//! day. It ends 30 days after the sign-in at the latest.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::TokenHash;
use super::oauth::{MAX_FAMILY_LIFETIME, OAuthClient, REFRESH_TOKEN_LIFETIME};
use crate::kernel::{OrganizationId, SessionId, Timestamp, UserId, record, text_enum};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lifetime of a session after its last extension: 7 days.
pub const SESSION_LIFETIME: Duration = DAY.saturating_mul(7);

/// Lifetime of a session that ends with the browser: 1 day. It is never extended.
const SHORT_LIFETIME: Duration = DAY;

/// Minimum time between two extensions of a session.
const EXTEND_AFTER: Duration = DAY;

/// Maximum lifetime of a session after the sign-in, independent of its use.
const ABSOLUTE_LIFETIME: Duration = DAY.saturating_mul(30);

/// Time for which a proof of identity counts as fresh: 10 minutes.
pub const PROOF_FRESHNESS: Duration = Duration::from_secs(10 * 60);

/// A session of a signed-in user. The token itself is never stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Session {
    /// The unique id of the session. It is not secret.
    pub id: SessionId,
    /// The user who signed in.
    pub user_id: UserId,
    /// The hash of the session token.
    #[serde(skip)]
    pub token_hash: TokenHash,
    /// The program that signed in for the user; `null` for a browser. A program has no session token, but uses access
    /// tokens.
    pub client_id: Option<OAuthClient>,
    /// The organization that the user acts for; `null` if none is active.
    pub active_organization_id: Option<OrganizationId>,
    /// Whether the browser keeps the cookie after it is closed.
    #[serde(skip)]
    pub remembered: bool,
    /// The IP address of the client at the sign-in; `null` if unknown.
    pub ip_address: Option<String>,
    /// The `User-Agent` header of the client at the sign-in; `null` if unknown.
    pub user_agent: Option<String>,
    /// The time at which the user signed in.
    pub created_at: Timestamp,
    /// The time of the last change of the record.
    pub updated_at: Timestamp,
    /// The time of the last extension; at first the time of the sign-in.
    #[serde(skip)]
    pub extended_at: Timestamp,
    /// The time at which the user last proved their identity in this session by any method, including the sign-in.
    /// `None` for the session of a program.
    #[serde(skip)]
    pub authenticated_at: Option<Timestamp>,
    /// The time at which the user last used a second factor in this session; `None` if they never did.
    #[serde(skip)]
    pub second_factor_at: Option<Timestamp>,
    /// The time at which the session expires, unless it is extended.
    pub expires_at: Timestamp,
}

record! {
    Session as "session" by id, asked SessionQuery;
    audited, touched updated_at;
}

/// Queries on sessions.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionQuery {
    /// The session with this token.
    WithToken(TokenHash),
    /// The user's sessions that have not expired at this time, newest first.
    ActiveOf(UserId, Timestamp),
    /// The user's sessions, oldest first.
    OldestOf(UserId),
    /// The user's sessions that have expired at this time, oldest first.
    ExpiredOf(UserId, Timestamp),
    /// All sessions that have expired at this time, in the order of their expiry.
    ExpiredAt(Timestamp),
}

/// The validity of a session at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionValidity {
    /// The session is valid.
    Valid,
    /// The session is valid, and this look-up must extend it to the given time.
    ExtendTo(Timestamp),
    /// The session has expired.
    Expired,
}

impl Session {
    /// Returns the time at which a new session expires if it is never extended.
    #[must_use]
    pub fn initial_expiry(now: Timestamp, remembered: bool) -> Timestamp {
        now.plus(if remembered {
            SESSION_LIFETIME
        } else {
            SHORT_LIFETIME
        })
    }

    /// Returns the time at which the session of a program expires if its tokens are exchanged now: the expiry of the
    /// new refresh token.
    #[must_use]
    pub fn program_session_expiry(created_at: Timestamp, now: Timestamp) -> Timestamp {
        let last = created_at.plus(MAX_FAMILY_LIFETIME);
        now.plus(REFRESH_TOKEN_LIFETIME).min(last)
    }

    /// Returns the latest possible end of the session, independent of its use.
    fn max_expiry(&self) -> Timestamp {
        let longest = match self.client_id {
            Some(_) => MAX_FAMILY_LIFETIME,
            None => ABSOLUTE_LIFETIME,
        };
        self.created_at.plus(longest)
    }

    /// Returns the validity of the session at the given time.
    #[must_use]
    pub fn validity(&self, now: Timestamp) -> SessionValidity {
        let last = self.max_expiry();
        if now >= self.expires_at || now >= last {
            return SessionValidity::Expired;
        }
        let until = now.plus(SESSION_LIFETIME).min(last);
        let due = now.since(self.extended_at) >= EXTEND_AFTER;
        if self.remembered && due && until > self.expires_at {
            SessionValidity::ExtendTo(until)
        } else {
            SessionValidity::Valid
        }
    }

    /// Returns whether the user gave a proof of this strength within the last 10 minutes.
    #[must_use]
    pub fn is_fresh(&self, strength: ProofStrength, now: Timestamp) -> bool {
        let proved_at = match strength {
            ProofStrength::SingleFactor => self.authenticated_at,
            ProofStrength::SecondFactor => self.second_factor_at,
        };
        proved_at.is_some_and(|at| now.since(at) < PROOF_FRESHNESS)
    }

    /// Returns the session after its user gave a proof of this strength.
    #[must_use]
    pub fn with_proof(&self, strength: ProofStrength, now: Timestamp) -> Self {
        Self {
            authenticated_at: Some(now),
            second_factor_at: match strength {
                ProofStrength::SingleFactor => self.second_factor_at,
                ProofStrength::SecondFactor => Some(now),
            },
            ..self.clone()
        }
    }

    /// Returns the session with its lifetime extended.
    #[must_use]
    pub fn with_expiry(&self, now: Timestamp, until: Timestamp) -> Self {
        Self {
            expires_at: until,
            extended_at: now,
            updated_at: now,
            ..self.clone()
        }
    }
}

text_enum! {
    /// A method by which a user with a session can prove their identity. The audit log uses the same words.
    pub enum ProofMethod {
        /// The password of the user.
        Password = "password",
        /// A code of the user's authenticator app.
        Totp = "totp",
        /// A recovery code, which can be used once.
        BackupCode = "backup-code",
        /// A passkey of the user.
        Passkey = "passkey",
        /// A new sign-in, for users who have no other method.
        SignIn = "sign-in",
    }
}

/// The strength of a proof of identity. For a user with an enrolled second factor, only a second factor counts as a
/// fresh proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStrength {
    /// A password, or a link that was sent by email.
    SingleFactor,
    /// A passkey, a code of an authenticator app, or a recovery code.
    SecondFactor,
}

impl ProofMethod {
    /// Returns the strength of a proof by this method.
    #[must_use]
    pub const fn strength(self) -> ProofStrength {
        match self {
            Self::Password | Self::SignIn => ProofStrength::SingleFactor,
            Self::Totp | Self::BackupCode | Self::Passkey => ProofStrength::SecondFactor,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::SeededEntropy;

    use super::*;

    fn new_session(now: Timestamp, remembered: bool) -> Session {
        let entropy = SeededEntropy::new(1);
        Session {
            id: SessionId::generate(now, &entropy),
            user_id: UserId::generate(now, &entropy),
            token_hash: TokenHash::of("token"),
            client_id: None,
            active_organization_id: None,
            remembered,
            ip_address: None,
            user_agent: None,
            created_at: now,
            updated_at: now,
            extended_at: now,
            authenticated_at: Some(now),
            second_factor_at: None,
            expires_at: Session::initial_expiry(now, remembered),
        }
    }

    #[test]
    fn password_does_not_refresh_the_second_factor_proof() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let later = start.plus(PROOF_FRESHNESS);
        let session = new_session(start, true).with_proof(ProofStrength::SecondFactor, start);
        let session = session.with_proof(ProofStrength::SingleFactor, later);
        assert!(session.is_fresh(ProofStrength::SingleFactor, later));
        assert!(!session.is_fresh(ProofStrength::SecondFactor, later));
        let session = session.with_proof(ProofStrength::SecondFactor, later);
        for strength in [ProofStrength::SingleFactor, ProofStrength::SecondFactor] {
            assert!(session.is_fresh(strength, later));
            assert!(!session.is_fresh(strength, later.plus(PROOF_FRESHNESS)));
        }
    }

    proptest! {
        #[test]
        fn session_lifetime_rules_hold_for_any_sequence_of_lookups(
            remembered: bool,
            hours in prop::collection::vec(0_u64..200, 1..60),
        ) {
            let start = Timestamp::from_seconds(1_800_000_000);
            let mut session = new_session(start, remembered);
            let mut now = start;
            let mut over = false;
            for hours in hours {
                now = now.plus(Duration::from_secs(hours * 3_600));
                match session.validity(now) {
                    SessionValidity::Expired => over = true,
                    SessionValidity::Valid => prop_assert!(!over, "an expired session became valid again"),
                    SessionValidity::ExtendTo(until) => {
                        prop_assert!(!over && remembered);
                        prop_assert!(until > session.expires_at);
                        prop_assert!(until <= start.plus(ABSOLUTE_LIFETIME));
                        prop_assert!(until <= now.plus(SESSION_LIFETIME));
                        prop_assert!(now.since(session.extended_at) >= EXTEND_AFTER);
                        session = session.with_expiry(now, until);
                        prop_assert_eq!(session.validity(now), SessionValidity::Valid);
                    }
                }
            }
            let last = start.plus(ABSOLUTE_LIFETIME);
            prop_assert_eq!(session.validity(last), SessionValidity::Expired);
        }

        #[test]
        fn clock_set_back_by_an_hour_neither_ends_nor_extends_a_session(hours in 1_u64..24) {
            let start = Timestamp::from_seconds(1_800_000_000);
            let session = new_session(start, true);
            let now = start.plus(Duration::from_secs(hours * 3_600));
            let back = now.minus(Duration::from_secs(3_600));
            prop_assert_eq!(session.validity(back), SessionValidity::Valid);
            prop_assert_eq!(session.validity(start.minus(Duration::from_secs(3_600))), SessionValidity::Valid);
        }
    }

    #[test]
    fn program_session_ends_with_its_refresh_token_and_after_ninety_days() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let day = |days| start.plus(DAY * days);
        let used_on = |days| Session {
            client_id: Some(OAuthClient::CoreCli),
            expires_at: Session::program_session_expiry(start, day(days)),
            ..new_session(start, false)
        };
        for (used, valid, over) in [(0, 29, 30), (45, 74, 75), (80, 89, 90)] {
            let session = used_on(used);
            assert_eq!(session.validity(day(valid)), SessionValidity::Valid);
            assert_eq!(session.validity(day(over)), SessionValidity::Expired);
        }
    }

    #[test]
    fn proof_is_fresh_for_ten_minutes_and_never_for_a_program() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let session = new_session(start, true);
        let end = start.plus(PROOF_FRESHNESS);
        assert!(session.is_fresh(
            ProofStrength::SingleFactor,
            end.minus(Duration::from_millis(1))
        ));
        assert!(!session.is_fresh(ProofStrength::SingleFactor, end));
        let of_program = Session {
            authenticated_at: None,
            second_factor_at: None,
            ..session
        };
        assert!(!of_program.is_fresh(ProofStrength::SingleFactor, start));
    }

    #[test]
    fn session_is_expired_exactly_at_its_expiry_time() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let session = new_session(start, false);
        let end = start.plus(SHORT_LIFETIME);
        assert_eq!(
            session.validity(end.minus(Duration::from_millis(1))),
            SessionValidity::Valid
        );
        assert_eq!(session.validity(end), SessionValidity::Expired);
    }
}
