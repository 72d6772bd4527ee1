//! Sign-in of programs: device authorizations (RFC 8628), access tokens, and rotating refresh tokens.

mod device;
mod token;

pub use device::{
    DeviceAuthorization, DeviceAuthorizationQuery, DeviceDecision, DeviceEvent, DevicePoll,
    DeviceStatus, UserCode,
};
pub use token::{
    ACCESS_TOKEN_LIFETIME, AccessToken, AccessTokenQuery, MAX_FAMILY_LIFETIME, OAuthClient,
    OAuthGrantType, REFRESH_TOKEN_LIFETIME, RefreshDecision, RefreshToken, RefreshTokenQuery,
};
