//! Sessions and their life: 7 days from the last extension, extended at most once a day, never past 30 days.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::TokenHash;
use super::oauth::{FAMILY_LIFETIME, OAuthClient, REFRESH_TOKEN_LIFETIME};
use crate::kernel::{OrganizationId, SessionId, Timestamp, UserId, record, text_enum};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a session lives without being used.
pub const LIFETIME: Duration = DAY.saturating_mul(7);

/// How long a session lives that the user did not want remembered. It is never extended.
const SHORT_LIFETIME: Duration = DAY;

/// How long after an extension (or sign-in) a look-up extends the session again.
const EXTEND_AFTER: Duration = DAY;

/// How long after sign-in a session ends, however much it is used.
const ABSOLUTE_LIFETIME: Duration = DAY.saturating_mul(30);

/// How long after a proof of who they are people may do what needs a fresh one.
pub const FRESH_FOR: Duration = Duration::from_secs(10 * 60);

/// A signed-in session. The token itself is never stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Session {
    /// The session's id; safe to show.
    pub id: SessionId,
    /// Whose it is.
    pub user_id: UserId,
    /// What the token is recognised by.
    #[serde(skip)]
    pub token_hash: TokenHash,
    /// The program that signed in for the user; none for a browser. It has no token of its own: it acts with access tokens.
    pub client_id: Option<OAuthClient>,
    /// The organization the user acts for.
    pub active_organization_id: Option<OrganizationId>,
    /// Whether the browser shall keep it beyond its own end.
    #[serde(skip)]
    pub remembered: bool,
    /// The client's address at sign-in.
    pub ip_address: Option<String>,
    /// The client's `User-Agent` at sign-in.
    pub user_agent: Option<String>,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// When its life was last extended; the sign-in at first.
    #[serde(skip)]
    pub extended_at: Timestamp,
    /// When the user last proved who they are within the session, by any method, the sign-in included. `None` for the session
    /// of a program.
    #[serde(skip)]
    pub authenticated_at: Option<Timestamp>,
    /// When the user last proved who they are within the session by a second factor. `None` if they never did.
    #[serde(skip)]
    pub second_factor_at: Option<Timestamp>,
    /// From when on it is over.
    pub expires_at: Timestamp,
}

record! {
    Session as "session" by id, asked SessionQuery;
    audited, touched updated_at;
}

/// Questions about sessions.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionQuery {
    /// The one with this token.
    WithToken(TokenHash),
    /// The user's sessions that are not over at this instant, newest first.
    ActiveOf(UserId, Timestamp),
    /// The user's sessions, oldest first.
    OldestOf(UserId),
    /// The user's sessions that have expired at this instant, oldest first.
    ExpiredOf(UserId, Timestamp),
    /// Those that have expired at this instant, whosever they are, the first to expire first.
    ExpiredAt(Timestamp),
}

/// Whether a session is valid at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionValidity {
    /// It goes on.
    Valid,
    /// It goes on, and this look-up shall extend it to the instant given.
    ExtendTo(Timestamp),
    /// It is over.
    Expired,
}

impl Session {
    /// When a session that begins now ends if it is never used.
    #[must_use]
    pub fn first_end(now: Timestamp, remembered: bool) -> Timestamp {
        now.plus(if remembered { LIFETIME } else { SHORT_LIFETIME })
    }

    /// When a session of a program ends whose tokens are exchanged now: with its refresh token.
    #[must_use]
    pub fn end_of_family(created_at: Timestamp, now: Timestamp) -> Timestamp {
        let last = created_at.plus(FAMILY_LIFETIME);
        now.plus(REFRESH_TOKEN_LIFETIME).min(last)
    }

    /// From when on it is over, however much it is used.
    fn last_end(&self) -> Timestamp {
        let longest = match self.client_id {
            Some(_) => FAMILY_LIFETIME,
            None => ABSOLUTE_LIFETIME,
        };
        self.created_at.plus(longest)
    }

    /// Whether the session is valid at the instant.
    #[must_use]
    pub fn validity(&self, now: Timestamp) -> SessionValidity {
        let last = self.last_end();
        if now >= self.expires_at || now >= last {
            return SessionValidity::Expired;
        }
        let until = now.plus(LIFETIME).min(last);
        let due = now.since(self.extended_at) >= EXTEND_AFTER;
        if self.remembered && due && until > self.expires_at {
            SessionValidity::ExtendTo(until)
        } else {
            SessionValidity::Valid
        }
    }

    /// Tells whether the user gave a proof of this strength within the last 10 minutes.
    #[must_use]
    pub fn is_fresh(&self, strength: ProofStrength, now: Timestamp) -> bool {
        let proved_at = match strength {
            ProofStrength::SingleFactor => self.authenticated_at,
            ProofStrength::SecondFactor => self.second_factor_at,
        };
        proved_at.is_some_and(|at| now.since(at) < FRESH_FOR)
    }

    /// Returns the session after its user gave a proof of this strength.
    #[must_use]
    pub fn authenticated(&self, strength: ProofStrength, now: Timestamp) -> Self {
        Self {
            authenticated_at: Some(now),
            second_factor_at: match strength {
                ProofStrength::SingleFactor => self.second_factor_at,
                ProofStrength::SecondFactor => Some(now),
            },
            ..self.clone()
        }
    }

    /// The session with its life extended.
    #[must_use]
    pub fn extended(&self, now: Timestamp, until: Timestamp) -> Self {
        Self {
            expires_at: until,
            extended_at: now,
            updated_at: now,
            ..self.clone()
        }
    }
}

text_enum! {
    /// A way for a person with a session to prove who they are. The word is also what the audit calls it.
    pub enum ProofMethod {
        /// Their password.
        Password = "password",
        /// A code of their authenticator.
        Totp = "totp",
        /// A recovery code.
        BackupCode = "backup-code",
        /// A passkey.
        Passkey = "passkey",
        /// They have nothing to show within the session: they sign in again.
        SignIn = "sign-in",
    }
}

/// How much a proof of identity is worth. Where a user has enrolled a second factor, only a second factor counts as a fresh
/// proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStrength {
    /// A password, or a link that was sent by mail.
    SingleFactor,
    /// A passkey, a code of an authenticator, or a recovery code.
    SecondFactor,
}

impl ProofMethod {
    /// Returns how much a proof by this method is worth.
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

    fn begun(now: Timestamp, remembered: bool) -> Session {
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
            expires_at: Session::first_end(now, remembered),
        }
    }

    #[test]
    fn a_password_does_not_renew_the_proof_by_a_second_factor() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let later = start.plus(FRESH_FOR);
        let session = begun(start, true).authenticated(ProofStrength::SecondFactor, start);
        let session = session.authenticated(ProofStrength::SingleFactor, later);
        assert!(session.is_fresh(ProofStrength::SingleFactor, later));
        assert!(!session.is_fresh(ProofStrength::SecondFactor, later));
        let session = session.authenticated(ProofStrength::SecondFactor, later);
        for strength in [ProofStrength::SingleFactor, ProofStrength::SecondFactor] {
            assert!(session.is_fresh(strength, later));
            assert!(!session.is_fresh(strength, later.plus(FRESH_FOR)));
        }
    }

    proptest! {
        #[test]
        fn whatever_the_look_ups_a_session_keeps_its_promises(
            remembered: bool,
            hours in prop::collection::vec(0_u64..200, 1..60),
        ) {
            let start = Timestamp::from_seconds(1_800_000_000);
            let mut session = begun(start, remembered);
            let mut now = start;
            let mut over = false;
            for hours in hours {
                now = now.plus(Duration::from_secs(hours * 3_600));
                match session.validity(now) {
                    SessionValidity::Expired => over = true,
                    SessionValidity::Valid => prop_assert!(!over, "a session that was over came back"),
                    SessionValidity::ExtendTo(until) => {
                        prop_assert!(!over && remembered);
                        prop_assert!(until > session.expires_at);
                        prop_assert!(until <= start.plus(ABSOLUTE_LIFETIME));
                        prop_assert!(until <= now.plus(LIFETIME));
                        prop_assert!(now.since(session.extended_at) >= EXTEND_AFTER);
                        session = session.extended(now, until);
                        prop_assert_eq!(session.validity(now), SessionValidity::Valid);
                    }
                }
            }
            let last = start.plus(ABSOLUTE_LIFETIME);
            prop_assert_eq!(session.validity(last), SessionValidity::Expired);
        }

        #[test]
        fn a_clock_that_jumps_an_hour_back_ends_or_extends_nothing(hours in 1_u64..24) {
            let start = Timestamp::from_seconds(1_800_000_000);
            let session = begun(start, true);
            let now = start.plus(Duration::from_secs(hours * 3_600));
            let back = now.minus(Duration::from_secs(3_600));
            prop_assert_eq!(session.validity(back), SessionValidity::Valid);
            prop_assert_eq!(session.validity(start.minus(Duration::from_secs(3_600))), SessionValidity::Valid);
        }
    }

    #[test]
    fn a_programs_session_lasts_as_long_as_its_refresh_token_and_ninety_days_at_most() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let day = |days| start.plus(DAY * days);
        let used_on = |days| Session {
            client_id: Some(OAuthClient::CoreCli),
            expires_at: Session::end_of_family(start, day(days)),
            ..begun(start, false)
        };
        for (used, valid, over) in [(0, 29, 30), (45, 74, 75), (80, 89, 90)] {
            let session = used_on(used);
            assert_eq!(session.validity(day(valid)), SessionValidity::Valid);
            assert_eq!(session.validity(day(over)), SessionValidity::Expired);
        }
    }

    #[test]
    fn a_proof_is_fresh_for_ten_minutes_and_a_program_never_gave_one() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let session = begun(start, true);
        let end = start.plus(FRESH_FOR);
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
    fn a_session_is_over_from_its_last_instant_on() {
        let start = Timestamp::from_seconds(1_800_000_000);
        let session = begun(start, false);
        let end = start.plus(SHORT_LIFETIME);
        assert_eq!(
            session.validity(end.minus(Duration::from_millis(1))),
            SessionValidity::Valid
        );
        assert_eq!(session.validity(end), SessionValidity::Expired);
    }
}
