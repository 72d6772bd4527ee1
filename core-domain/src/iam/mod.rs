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
    ApiKeyStatus, DEFAULT_OVERLAP, DEFAULT_REQUESTS_PER_MINUTE, KeyPrefix, LONGEST_LIFETIME,
    LONGEST_OVERLAP, MAX_REQUESTS_PER_MINUTE, SHORTEST_LIFETIME, key_membership,
    organization_key_patterns,
};
pub use credential::{CookieNames, CookieSigner, TokenHash, is_iam_cookie};
pub use decision::{Decision, Rule, decide, membership, permissions};
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
    PasskeyChallengeQuery, PasskeyDevice, PasskeyQuery,
};
pub use password::{PasswordHash, check_password, normal_password};
pub use permission_grant::{GrantPermission, PermissionGrant};
pub use role_mapping::{MapRole, RoleMappings};
pub use service_token::*;
pub use session::{
    FRESH_FOR, LIFETIME, ProofMethod, ProofStrength, Session, SessionQuery, SessionValidity,
};
pub use sign_in_delay::{AttemptRefusal, FAILURES_FORGOTTEN_AFTER, FailedAttempts, sign_in_delay};
pub use suspension::{PlatformSuspension, PlatformSuspensionQuery};
pub use totp::{TotpCode, TotpSecret};
pub use two_factor::{
    CHALLENGE_LIFETIME, FAILURES_COUNT_FOR, MAX_CHALLENGES, MAX_FAILURES, MAX_TRUSTED_DEVICES,
    RECOVERY_CODES, TRUSTED_FOR, TrustedDevice, TrustedDeviceQuery, TwoFactor, TwoFactorChallenge,
    TwoFactorChallengeQuery, TwoFactorQuery, new_recovery_codes, recovery_hashes,
};
pub use user::{Account, AccountQuery, Ban, CREDENTIAL, UpdateUser, User, UserQuery};
pub use verification::{Verification, VerificationPurpose, VerificationQuery};
