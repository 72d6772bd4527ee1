//! Short-lived tokens with which one service calls another: signed with keys that change by themselves.

mod claims;
mod jws;
mod rotation;
mod signing_key;

pub use claims::{
    SERVICE_TOKEN_LIFETIME, ServiceClaims, SuiteService, TokenRefusal, UnverifiedToken,
    sign_service_token,
};
pub use jws::{Ed25519Private, Ed25519Public, JwsError};
pub use rotation::{keys_to_sign_with, next_key_begins, published_keys, retired_keys};
pub use signing_key::{SigningKey, SigningKeyQuery};
