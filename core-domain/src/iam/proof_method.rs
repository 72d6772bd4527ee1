//! How people prove once more who they are.

use crate::kernel::text_enum;

text_enum! {
    /// A way for a person with a session to prove who they are.
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
