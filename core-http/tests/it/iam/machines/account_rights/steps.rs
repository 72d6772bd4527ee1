//! The steps of the two parties.

use proptest::prelude::*;

use super::super::harness::Model;
use crate::iam::{DAY, NEW_PASSWORD};
use crate::world::PASSWORD;

pub(super) const HOUR: u64 = 3_600;

/// The time for which a proof by the second factor is fresh, in seconds.
pub(super) const PROOF_LIFETIME_SECONDS: u64 = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// Reads the mail that is sent to the address.
    Owner,
    /// Knows the address and the ids of invitations, and reads no mail.
    Stranger,
}

impl Party {
    pub(super) const fn password(self) -> &'static str {
        match self {
            Self::Owner => NEW_PASSWORD,
            Self::Stranger => PASSWORD,
        }
    }
}

/// The proof that accompanies a mailed confirmation link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proof {
    Session,
    Password,
    TakeOver,
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    SignUp(Party),
    SignIn {
        party: Party,
        on_device: bool,
    },
    SignInWithFactor {
        trusts: bool,
    },
    RequestMails {
        kind: usize,
        count: u8,
    },
    FollowSignInLink,
    ResetPassword,
    FollowConfirmation(Proof),
    Invite(&'static str),
    /// The address is invited. The stranger signs up with it and accepts by the id.
    AcceptAsStranger,
    /// The owner signs in on the trusted device with the password alone, and changes a factor there.
    ChangeOnDevice(&'static str),
    /// A member sends a request with an idempotency key, and repeats it after the membership has ended.
    ReplayAfterDemotion,
    /// The owner is invited, signs in by a link and accepts.
    Join,
    /// The owner sets a password, enrols a second factor and signs in on a device that they trust.
    EnrolAndTrustDevice,
    AnswerInvitation {
        party: Party,
        by_id: bool,
    },
    Enrol(Party),
    ProveFactor,
    ChangeFactor {
        party: Party,
        call: &'static str,
    },
    Demote,
    Suspend(bool),
    InviteWithKey,
    Replay,
    Wait(u64),
}

/// The kinds of mailed links, as the names of their routes.
pub(super) const LINKS: [&str; 3] = [
    "sign-in/magic-link",
    "request-password-reset",
    "send-verification-email",
];

/// A model without predictions: the subject compares each outcome with its own observations.
#[derive(Clone, Debug, Default)]
pub(super) struct AnyOrder;

impl Model for AnyOrder {
    type Step = Step;

    fn steps(&self) -> BoxedStrategy<Step> {
        let party = || prop::sample::select(vec![Party::Owner, Party::Stranger]);
        let proof = prop::sample::select(vec![
            Proof::Session,
            Proof::Password,
            Proof::TakeOver,
            Proof::Nothing,
        ]);
        let role = prop::sample::select(vec!["owner", "admin", "member"]);
        let call = prop::sample::select(vec!["disable", "generate-backup-codes", "get-totp-uri"]);
        let seconds = prop::sample::select(vec![30, PROOF_LIFETIME_SECONDS, HOUR, DAY]);
        prop_oneof![
            4 => party().prop_map(Step::SignUp),
            4 => (party(), any::<bool>()).prop_map(|(party, on_device)| Step::SignIn { party, on_device }),
            3 => any::<bool>().prop_map(|trusts| Step::SignInWithFactor { trusts }),
            2 => (0..LINKS.len(), 1..8_u8).prop_map(|(kind, count)| Step::RequestMails { kind, count }),
            2 => Just(Step::FollowSignInLink),
            2 => Just(Step::ResetPassword),
            4 => proof.prop_map(Step::FollowConfirmation),
            4 => role.prop_map(Step::Invite),
            5 => Just(Step::AcceptAsStranger),
            5 => Just(Step::Join),
            3 => call.clone().prop_map(Step::ChangeOnDevice),
            3 => Just(Step::ReplayAfterDemotion),
            5 => Just(Step::EnrolAndTrustDevice),
            5 => (party(), any::<bool>()).prop_map(|(party, by_id)| Step::AnswerInvitation { party, by_id }),
            5 => party().prop_map(Step::Enrol),
            1 => Just(Step::ProveFactor),
            3 => (party(), call).prop_map(|(party, call)| Step::ChangeFactor { party, call }),
            2 => Just(Step::Demote),
            2 => any::<bool>().prop_map(Step::Suspend),
            2 => Just(Step::InviteWithKey),
            3 => Just(Step::Replay),
            4 => seconds.prop_map(Step::Wait),
        ]
        .boxed()
    }

    fn allows(&self, _: &Step) -> bool {
        true
    }

    fn apply(&mut self, _: &Step) {}
}
