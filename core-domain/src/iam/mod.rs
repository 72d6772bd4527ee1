//! Identity and access management: users, sessions, organizations, credentials, and the pure rules about them.

mod api_key;
mod common_passwords;
mod credential;
mod decision;
mod device_cookie;
mod invitation;
mod oauth;
mod organization;
mod passkey;
mod password;
mod permission_grant;
mod role_mapping;
mod service_token;
mod session;
mod sign_in_delay;
mod suspension;
mod totp;
mod two_factor;
mod user;
mod verification;

pub use api_key::{
    API_KEY_PREFIX, ApiKey, ApiKeyEvent, ApiKeyOwner, ApiKeyQuery, ApiKeyRefusal, ApiKeySecret,
    ApiKeyStatus, DEFAULT_REQUESTS_PER_MINUTE, DEFAULT_ROTATION_OVERLAP, KeyPrefix,
    MAX_API_KEY_LIFETIME, MAX_REQUESTS_PER_MINUTE, MAX_ROTATION_OVERLAP, MIN_API_KEY_LIFETIME,
    key_membership, organization_key_patterns,
};
pub use credential::{
    ACCESS_TOKEN_PREFIX, CookieNames, CookieSigner, REFRESH_TOKEN_PREFIX, TokenHash,
    is_access_token, is_iam_cookie,
};
pub use decision::{Decision, DecisionRule, decide, membership, permissions};
pub use device_cookie::{DEVICE_COOKIE_LIFETIME, DeviceCookie};
pub use invitation::{
    INVITATION_LIFETIME, Invitation, InvitationEvent, InvitationQuery, InvitationRef,
    InvitationStatus, Invite, InvitedRole,
};
pub use oauth::*;
pub use organization::{
    Bootstrap, CreateOrganization, MAX_METADATA_BYTES, Member, MemberQuery, Organization,
    OrganizationMetadata, OrganizationQuery, OrganizationType, SetUpOrganization,
    UpdateOrganization,
};
pub use passkey::{
    MAX_PASSKEY_REGISTRATIONS, PASSKEY_CHALLENGE_LIFETIME, Passkey, PasskeyChallenge,
    PasskeyChallengeQuery, PasskeyDeviceType, PasskeyQuery,
};
pub use password::{PasswordHash, check_password, normalize_password};
pub use permission_grant::{GrantPermission, PermissionGrant};
pub use role_mapping::{MapRole, RoleMappings};
pub use service_token::*;
pub use session::{
    PROOF_FRESHNESS, ProofMethod, ProofStrength, SESSION_LIFETIME, Session, SessionQuery,
    SessionValidity,
};
pub use sign_in_delay::{
    AttemptRefusal, FAILURE_RETENTION, FailedAttempts, sign_in_delay, sign_in_delays,
};
pub use suspension::{PlatformSuspension, PlatformSuspensionQuery, SuspensionSource};
pub use totp::{TotpCode, TotpSecret};
pub use two_factor::{
    CHALLENGE_LIFETIME, DEVICE_TRUST_LIFETIME, FAILURE_WINDOW, MAX_CHALLENGES, MAX_FAILURES,
    MAX_TRUSTED_DEVICES, RECOVERY_CODE_COUNT, TrustedDevice, TrustedDeviceQuery, TwoFactor,
    TwoFactorChallenge, TwoFactorChallengeQuery, TwoFactorQuery, new_recovery_codes,
    recovery_hashes,
};
pub use user::{Account, AccountQuery, Ban, PASSWORD_PROVIDER, UpdateUser, User, UserQuery};
pub use verification::{Verification, VerificationPurpose, VerificationQuery};
