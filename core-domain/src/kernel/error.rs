//! The errors of use cases and the error codes of the interface. `core-http` alone decides which HTTP status a code
//! has.

use std::time::Duration;

use serde_json::Value;

use super::Timestamp;
use super::store_error::StoreError;
use super::text::text_enum;

/// The result of a use case.
pub type Result<T, E = Error> = std::result::Result<T, E>;

text_enum! {
    /// The code of an error response. A code never changes its meaning.
    #[non_exhaustive]
    pub enum Code {
        /// The request does not match its schema or breaks a rule; `details.issues` lists every violation.
        ValidationError = "VALIDATION_ERROR",
        /// The request body is not valid JSON.
        MalformedJson = "MALFORMED_JSON",
        /// The cursor was not issued by this installation, or it belongs to another list or other filters.
        InvalidCursor = "INVALID_CURSOR",
        /// The path, a header or the query string is invalid, or the body did not arrive completely.
        BadRequest = "BAD_REQUEST",
        /// The request has no credential, or its credential is invalid, expired or revoked.
        Unauthorized = "UNAUTHORIZED",
        /// The caller is authenticated but is not allowed to perform the operation.
        Forbidden = "FORBIDDEN",
        /// The route or the record does not exist, or the caller has no access to the record.
        NotFound = "NOT_FOUND",
        /// The route exists, but it does not support the HTTP method.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// The route returns none of the media types in the `Accept` header.
        NotAcceptable = "NOT_ACCEPTABLE",
        /// A unique value is already in use, or the request contradicts the stored data in another way.
        Conflict = "CONFLICT",
        /// A limit of the installation is reached, such as the number of records; `details.limit` is the limit.
        LimitReached = "LIMIT_REACHED",
        /// The slug belongs to another record.
        SlugTaken = "SLUG_TAKEN",
        /// The hostname is in a zone of the operator and is not reserved for the platform.
        HostnameReserved = "HOSTNAME_RESERVED",
        /// The current status of the record does not allow the operation.
        InvalidState = "INVALID_STATE",
        /// The dead letter cannot be replayed, because it is not pending or its job has not failed.
        DlqEntryNotReplayable = "DLQ_ENTRY_NOT_REPLAYABLE",
        /// The first request with this idempotency key is still in progress.
        IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS",
        /// The idempotency key was already used with a different request.
        IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED",
        /// The record does not satisfy the `If-Match` or `If-None-Match` header of the request.
        VersionConflict = "VERSION_CONFLICT",
        /// The request body is larger than the route allows.
        PayloadTooLarge = "PAYLOAD_TOO_LARGE",
        /// The route does not support the content type of the request body.
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
        /// The caller sent too many requests or failed attempts; `Retry-After` says how many seconds to wait.
        RateLimited = "RATE_LIMITED",
        /// The platform is suspended.
        PlatformSuspended = "PLATFORM_SUSPENDED",
        /// The platform already has a subscription that has not ended.
        SubscriptionExists = "SUBSCRIPTION_EXISTS",
        /// The platform or user already has a customer.
        CustomerExists = "CUSTOMER_EXISTS",
        /// The subscription already has this tier and interval.
        TierUnchanged = "TIER_UNCHANGED",
        /// The customer has nothing that can be invoiced now.
        NothingToInvoice = "NOTHING_TO_INVOICE",
        /// The subscription already has this plan.
        AlreadyOnPlan = "ALREADY_ON_PLAN",
        /// The price of the subscription has changed since the preview.
        QuoteExpired = "QUOTE_EXPIRED",
        /// The preview is older than 15 minutes.
        PreviewExpired = "PREVIEW_EXPIRED",
        /// Another change of the subscription or invoice is in progress.
        OperationInProgress = "OPERATION_IN_PROGRESS",
        /// A charge is needed and was not made; `details.reason` says why.
        PaymentRequired = "PAYMENT_REQUIRED",
        /// The payment method is the last one of a subscription that has to be paid.
        PaymentMethodInUse = "PAYMENT_METHOD_IN_USE",
        /// The currency differs from that of the customer.
        CurrencyMismatch = "CURRENCY_MISMATCH",
        /// The plan of the platform allows no more; `details` has the metric, its use and its limit.
        QuotaExceeded = "QUOTA_EXCEEDED",
        /// The payment provider failed or cannot be reached. Nothing has happened, and the request can be repeated.
        PaymentProviderUnavailable = "PAYMENT_PROVIDER_UNAVAILABLE",
        /// The outcome at the payment provider is unknown. A repetition with the same idempotency key returns it.
        PaymentOutcomeUnknown = "PAYMENT_OUTCOME_UNKNOWN",
        /// The server failed to process the request because of an internal error.
        InternalError = "INTERNAL_ERROR",
        /// A service or provider that the server depends on failed or sent an invalid response.
        UpstreamError = "UPSTREAM_ERROR",
        /// The operation is temporarily unavailable; the same request can succeed later.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// A service to which the gateway forwards requests did not respond in time.
        UpstreamTimeout = "UPSTREAM_TIMEOUT",
        /// The path and query string of the request are longer than 8 KiB.
        UriTooLong = "URI_TOO_LONG",
        /// The password is wrong, or no account with a password has the email address.
        InvalidEmailOrPassword = "INVALID_EMAIL_OR_PASSWORD",
        /// The email address is malformed.
        InvalidEmail = "INVALID_EMAIL",
        /// The password has fewer than 8 characters.
        PasswordTooShort = "PASSWORD_TOO_SHORT",
        /// The password has more than 128 characters.
        PasswordTooLong = "PASSWORD_TOO_LONG",
        /// The password is in the list of common passwords, or it repeats a single character.
        PasswordTooCommon = "PASSWORD_TOO_COMMON",
        /// An account with this email address already exists.
        UserAlreadyExists = "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
        /// A form, or a write request with cookies, does not prove its origin: `Origin` is missing or `null`.
        MissingOrNullOrigin = "MISSING_OR_NULL_ORIGIN",
        /// The request comes from a web page of an untrusted origin.
        InvalidOrigin = "INVALID_ORIGIN",
        /// OAuth: the `client_id` is unknown.
        InvalidClient = "invalid_client",
        /// OAuth: the code or token is unknown, already used or expired.
        InvalidGrant = "invalid_grant",
        /// OAuth: the `grant_type` is not supported.
        UnsupportedGrantType = "unsupported_grant_type",
        /// OAuth: no person has approved or denied the device yet.
        AuthorizationPending = "authorization_pending",
        /// OAuth: the device polls too often; it must wait five seconds longer between requests from now on.
        SlowDown = "slow_down",
        /// OAuth: the codes of the device have expired.
        ExpiredToken = "expired_token",
        /// OAuth: a person denied access to the device.
        AccessDenied = "access_denied",
        /// The redirect target is neither a path of the IAM service nor a URL of a trusted origin.
        InvalidCallbackUrl = "INVALID_CALLBACK_URL",
        /// The token of the link is unknown, already used or expired.
        InvalidToken = "INVALID_TOKEN",
        /// The password is not the user's current password.
        InvalidPassword = "INVALID_PASSWORD",
        /// The operation cannot change the email address.
        EmailCanNotBeUpdated = "EMAIL_CAN_NOT_BE_UPDATED",
        /// The user is banned.
        BannedUser = "BANNED_USER",
        /// The user has not confirmed the email address of the account.
        EmailNotVerified = "EMAIL_NOT_VERIFIED",
        /// The caller is not allowed to change the roles of members.
        NotAllowedToUpdateMember = "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER",
        /// The change of roles would leave the organization without an owner.
        OrganizationWithoutOwner = "YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER",
        /// The only owner of an organization can neither leave it nor be removed from it.
        OnlyOwner = "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER",
        /// The caller is not allowed to remove members from the organization.
        NotAllowedToDeleteMember = "YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER",
        /// The member does not exist, or the caller has no access to the organization.
        MemberNotFound = "MEMBER_NOT_FOUND",
        /// The organization does not exist, or the caller is not a member of it.
        UserIsNotMember = "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
        /// The organization whose data is requested does not exist, or the caller is not a member of it.
        NotMemberOfOrganization = "YOU_ARE_NOT_A_MEMBER_OF_THIS_ORGANIZATION",
        /// The request names no organization, and the session has no active organization.
        NoActiveOrganization = "NO_ACTIVE_ORGANIZATION",
        /// No organization was found: the request names none, and the session has no active organization.
        OrganizationNotFound = "ORGANIZATION_NOT_FOUND",
        /// The slug of the new organization belongs to another organization.
        OrganizationAlreadyExists = "ORGANIZATION_ALREADY_EXISTS",
        /// The slug belongs to another organization.
        OrganizationSlugTaken = "ORGANIZATION_SLUG_ALREADY_TAKEN",
        /// The caller is not allowed to change the organization.
        NotAllowedToUpdateOrganization = "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION",
        /// The caller is not allowed to delete the organization.
        NotAllowedToDeleteOrganization = "YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION",
        /// The caller is not allowed to invite people to the organization.
        NotAllowedToInvite = "YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION",
        /// The roles of the invitation have more permissions than the caller can give.
        NotAllowedToInviteRole = "YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE",
        /// The organization has no role with this name.
        RoleNotFound = "ROLE_NOT_FOUND",
        /// The organization already has a pending invitation for this email address.
        AlreadyInvited = "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION",
        /// The user is already a member of the organization.
        AlreadyMember = "USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION",
        /// The invitation does not exist, was already answered or canceled, or has expired.
        InvitationNotFound = "INVITATION_NOT_FOUND",
        /// The invitation was sent to an email address that is not the caller's.
        NotRecipient = "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION",
        /// The caller is not allowed to cancel invitations of the organization.
        NotAllowedToCancelInvitation = "YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION",
        /// The caller must confirm the email address of the account before listing its invitations.
        EmailVerificationRequired = "EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION",
        /// To answer an invitation, confirm the email address first or use the link of the invitation mail.
        EmailVerificationRequiredToAnswer =
            "EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION",
        /// The operation on API keys requires a valid session, and the request has none.
        UnauthorizedSession = "UNAUTHORIZED_SESSION",
        /// The API key does not exist, or the caller has no access to it.
        KeyNotFound = "KEY_NOT_FOUND",
        /// The name of an API key must have 1 to 32 characters.
        InvalidNameLength = "INVALID_NAME_LENGTH",
        /// The lifetime of the API key is shorter than 1 day.
        ExpiresInTooSmall = "EXPIRES_IN_IS_TOO_SMALL",
        /// The lifetime of the API key is longer than 365 days.
        ExpiresInTooLarge = "EXPIRES_IN_IS_TOO_LARGE",
        /// The request sets a property of an API key that clients cannot set.
        ServerOnlyProperty = "SERVER_ONLY_PROPERTY",
        /// The request sets metadata of an API key, which this service does not support.
        MetadataDisabled = "METADATA_DISABLED",
        /// The update of the API key contains no field.
        NoValuesToUpdate = "NO_VALUES_TO_UPDATE",
        /// The operation requires a recent proof of identity; `details.methods` lists the accepted methods.
        StepUpRequired = "STEP_UP_REQUIRED",
        /// The code of the authenticator app is wrong, already used or expired.
        InvalidCode = "INVALID_CODE",
        /// The recovery code is unknown or already used.
        InvalidBackupCode = "INVALID_BACKUP_CODE",
        /// The cookie belongs to no sign-in that waits for a second factor, or that sign-in has expired.
        InvalidTwoFactorCookie = "INVALID_TWO_FACTOR_COOKIE",
        /// The user has not set up a second factor.
        TwoFactorNotEnabled = "TWO_FACTOR_NOT_ENABLED",
        /// The user already has a second factor.
        TwoFactorAlreadyEnabled = "TWO_FACTOR_ALREADY_ENABLED",
        /// The user has not set up an authenticator app.
        TotpNotEnabled = "TOTP_NOT_ENABLED",
        /// The user has no recovery codes.
        BackupCodesNotEnabled = "BACKUP_CODES_NOT_ENABLED",
        /// The passkey challenge is unknown, already used or expired.
        ChallengeNotFound = "CHALLENGE_NOT_FOUND",
        /// The authenticator's response to the registration of a passkey is invalid.
        FailedToVerifyRegistration = "FAILED_TO_VERIFY_REGISTRATION",
        /// The passkey is unknown or belongs to another user.
        PasskeyNotFound = "PASSKEY_NOT_FOUND",
        /// The authenticator's response to the request for a passkey is invalid.
        AuthenticationFailed = "AUTHENTICATION_FAILED",
        /// The passkey is already registered.
        PreviouslyRegistered = "PREVIOUSLY_REGISTERED",
        /// Passkeys are not configured on this installation.
        PasskeysDisabled = "PASSKEYS_DISABLED",
    }
}

impl Code {
    /// Returns the code as a sentence. Example: `MEMBER_NOT_FOUND` becomes "Member not found".
    #[must_use]
    pub fn sentence(self) -> String {
        let words = self.as_str().replace('_', " ").to_ascii_lowercase();
        let mut letters = words.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// One violation of a rule by a request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Issue {
    /// The path to the invalid value: field names and array positions, starting at the root of the body.
    pub path: Vec<String>,
    /// The kind of violation, in snake case, such as `required` or `too_long`.
    pub code: &'static str,
    /// The description of the violation for people.
    pub message: String,
}

impl Issue {
    /// Creates an issue about one top-level field.
    #[must_use]
    pub fn field(name: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            path: vec![name.to_owned()],
            code,
            message: message.into(),
        }
    }
}

/// The error of a use case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input breaks at least one rule; every violation is listed.
    #[error("The request is not valid.")]
    Invalid(Vec<Issue>),
    /// The request has no valid credential.
    #[error("Authentication is required.")]
    Unauthorized,
    /// The caller does not have the required permission.
    #[error("You may not do this.")]
    Forbidden,
    /// The record does not exist, or the caller has no access to it. The text names the kind of record.
    #[error("There is no such {0}.")]
    NotFound(&'static str),
    /// The current status of the record does not allow the operation.
    #[error("This cannot be done while the status is {status}.")]
    InvalidState {
        /// The current status of the record.
        status: String,
        /// The statuses that allow the operation.
        allowed_from: Vec<String>,
    },
    /// The record does not satisfy the `If-Match` or `If-None-Match` header of the request.
    #[error("The record has changed since it was read.")]
    VersionConflict,
    /// A refusal with another code.
    #[error("{message}")]
    Refused {
        /// The code of the error response.
        code: Code,
        /// The message for the caller.
        message: String,
        /// A JSON object with details for the caller's program.
        details: Value,
    },
    /// An external provider or service failed. The text goes only to the log.
    #[error("A service this depends on failed.")]
    Upstream(String),
    /// The operation is temporarily not possible. The text goes only to the log.
    #[error("This is not possible at the moment.")]
    Unavailable(String),
    /// An internal error. The text goes only to the log.
    #[error("Something went wrong on our side.")]
    Internal(String),
    /// The error of the store. It goes only to the log.
    #[error("Something went wrong on our side.")]
    Store(#[from] StoreError),
}

impl Error {
    /// Creates a refusal with a code, a message and empty details.
    #[must_use]
    pub fn refused(code: Code, message: impl Into<String>) -> Self {
        Self::Refused {
            code,
            message: message.into(),
            details: Value::Object(serde_json::Map::new()),
        }
    }

    /// Creates the error for a code. The message of a refusal is the code written as a sentence.
    #[must_use]
    pub fn of_code(code: Code) -> Self {
        match code {
            Code::Unauthorized => Self::Unauthorized,
            Code::Forbidden => Self::Forbidden,
            code => Self::refused(code, code.sentence()),
        }
    }

    /// Creates a validation error with one issue about a top-level field.
    #[must_use]
    pub fn invalid(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Issue::field(field, code, message)])
    }

    /// Creates a `LIMIT_REACHED` error whose `details.limit` is `limit`.
    #[must_use]
    pub fn limit_reached(limit: impl Into<u64>, message: impl Into<String>) -> Self {
        Self::Refused {
            code: Code::LimitReached,
            message: message.into(),
            details: serde_json::json!({ "limit": limit.into() }),
        }
    }

    /// Returns whether the change may have been made, completely or in part: a reply of the payment provider or of the store
    /// was lost. Nothing may be undone then. The request finds out the outcome when it is repeated with its idempotency key.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Store(StoreError::CommitUnknown(_)))
            || self.code() == Code::PaymentOutcomeUnknown
    }

    /// Returns the code of the error response.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Invalid(_) => Code::ValidationError,
            Self::Unauthorized => Code::Unauthorized,
            Self::Forbidden => Code::Forbidden,
            Self::NotFound(_) => Code::NotFound,
            Self::InvalidState { .. } => Code::InvalidState,
            Self::VersionConflict => Code::VersionConflict,
            Self::Refused { code, .. } => *code,
            Self::Upstream(_) => Code::UpstreamError,
            Self::Unavailable(_) => Code::ServiceUnavailable,
            Self::Internal(_) => Code::InternalError,
            Self::Store(error) => match error {
                StoreError::Conflict { .. } | StoreError::Stale { .. } => Code::Conflict,
                StoreError::InvalidCursor => Code::InvalidCursor,
                StoreError::Retry(_)
                | StoreError::Unavailable(_)
                | StoreError::CommitUnknown(_) => Code::ServiceUnavailable,
                StoreError::Corrupt { .. } | StoreError::Backend(_) => Code::InternalError,
            },
        }
    }

    /// Returns the details for the caller's program: a JSON object, empty if there are none.
    #[must_use]
    pub fn details(&self) -> Value {
        match self {
            Self::Invalid(issues) => serde_json::json!({ "issues": issues }),
            Self::InvalidState {
                status,
                allowed_from,
            } => {
                serde_json::json!({ "status": status, "allowedFrom": allowed_from })
            }
            Self::Refused { details, .. } => details.clone(),
            Self::NotFound(kind) => serde_json::json!({ "resource": kind }),
            _ => Value::Object(serde_json::Map::new()),
        }
    }
}

/// Returns the time to wait that a `Retry-After` header asks for, given as seconds or as a date. Returns zero if the
/// value is invalid or the date is in the past.
#[must_use]
pub fn retry_after(header: &str, now: Timestamp) -> Duration {
    if let Ok(seconds) = header.trim().parse() {
        return Duration::from_secs(seconds);
    }
    let instant = jiff::fmt::rfc2822::parse(header.trim())
        .map(|instant| instant.timestamp().as_millisecond());
    instant.map_or(Duration::ZERO, |millis| {
        Timestamp::from_millis(millis).since(now)
    })
}
