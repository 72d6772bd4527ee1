//! Signing in from a program: device authorizations (RFC 8628), access tokens, and refresh tokens that rotate.

mod client;
mod device;
mod refresh;
mod token;
mod token_form;
mod user_code;

pub use client::{GrantType, OAuthClient};
pub use device::{
    DeviceAuthorization, DeviceAuthorizationQuery, DeviceDecision, DeviceEvent, DevicePoll,
    DeviceStatus,
};
pub use refresh::{RefreshDecision, RefreshToken, RefreshTokenQuery};
pub use token::{
    ACCESS_TOKEN_LIFETIME, AccessToken, AccessTokenQuery, FAMILY_LIFETIME, REFRESH_TOKEN_LIFETIME,
};
pub use token_form::{ACCESS_TOKEN_PREFIX, REFRESH_TOKEN_PREFIX, is_access_token};
pub use user_code::UserCode;
