//! How people prove once more who they are.

use crate::kernel::text_enum;

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
