//! Short-lived tokens with which one service calls another: signed with keys that change by themselves.

mod claims;
mod rotation;
mod signing_key;

pub use crate::kernel::{Ed25519Private, Ed25519Public, JwsError};
pub use claims::{
    SERVICE_TOKEN_LIFETIME, ServiceClaims, SuiteService, TokenRefusal, UnverifiedToken,
    sign_service_token,
};
pub use rotation::{keys_to_sign_with, next_key_begins, published_keys, retired_keys};
pub use signing_key::{SigningKey, SigningKeyQuery};
