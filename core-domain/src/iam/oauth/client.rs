//! The programs that people sign in with, and how they get tokens.

use crate::kernel::text_enum;

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
