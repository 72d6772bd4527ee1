//! What can go wrong, by meaning. Which HTTP status a meaning has is decided in `core-http` alone.

use std::time::Duration;

use serde_json::Value;

use super::Timestamp;
use super::store_error::StoreError;
use super::text::text_enum;

/// The result of a use case.
pub type Result<T, E = Error> = std::result::Result<T, E>;

text_enum! {
    /// The code of an error envelope. A code never changes its meaning.
    #[non_exhaustive]
    pub enum Code {
        /// The request breaks the rules written on its shape.
        ValidationError = "VALIDATION_ERROR",
        /// The body is not JSON.
        MalformedJson = "MALFORMED_JSON",
        /// The cursor is not one of ours, or of another list.
        InvalidCursor = "INVALID_CURSOR",
        /// The request itself cannot be taken (path, headers, framing).
        BadRequest = "BAD_REQUEST",
        /// No credential, or one that is not valid.
        Unauthorized = "UNAUTHORIZED",
        /// The caller is known and may not do this.
        Forbidden = "FORBIDDEN",
        /// There is no such thing for this caller.
        NotFound = "NOT_FOUND",
        /// The path exists, the method does not.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// No acceptable representation.
        NotAcceptable = "NOT_ACCEPTABLE",
        /// The request contradicts what is stored.
        Conflict = "CONFLICT",
        /// The caller has created as many as the installation allows. `details.limit` is the number.
        LimitReached = "LIMIT_REACHED",
        /// The slug belongs to another one.
        SlugTaken = "SLUG_TAKEN",
        /// The hostname is in a zone of the operator's and not reserved for the caller's platform.
        HostnameReserved = "HOSTNAME_RESERVED",
        /// The thing is in a state in which this cannot be done.
        InvalidState = "INVALID_STATE",
        /// The dead-letter entry cannot be replayed.
        DlqEntryNotReplayable = "DLQ_ENTRY_NOT_REPLAYABLE",
        /// The first request with this idempotency key still runs.
        IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS",
        /// The idempotency key was used with another request.
        IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED",
        /// The record is not at the version the caller names.
        VersionConflict = "VERSION_CONFLICT",
        /// More bytes than allowed.
        PayloadTooLarge = "PAYLOAD_TOO_LARGE",
        /// A content type that is not understood here.
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
        /// Too many requests.
        RateLimited = "RATE_LIMITED",
        /// The caller's platform is suspended.
        PlatformSuspended = "PLATFORM_SUSPENDED",
        /// Something broke on our side.
        InternalError = "INTERNAL_ERROR",
        /// A service or provider behind us answered wrongly or not at all.
        UpstreamError = "UPSTREAM_ERROR",
        /// Not possible at the moment; the same request may go through later.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// A service behind us did not answer in time.
        UpstreamTimeout = "UPSTREAM_TIMEOUT",
        /// The request target is too long.
        UriTooLong = "URI_TOO_LONG",
        /// Sign-in with a wrong password or an unknown address.
        InvalidEmailOrPassword = "INVALID_EMAIL_OR_PASSWORD",
        /// Sign-in with something that is no address.
        InvalidEmail = "INVALID_EMAIL",
        /// Fewer characters than a password needs.
        PasswordTooShort = "PASSWORD_TOO_SHORT",
        /// More characters than a password may have.
        PasswordTooLong = "PASSWORD_TOO_LONG",
        /// A password everybody knows.
        PasswordTooCommon = "PASSWORD_TOO_COMMON",
        /// Sign-up with an address that has an account.
        UserAlreadyExists = "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
        /// A request with cookies that says nothing of where it comes from.
        MissingOrNullOrigin = "MISSING_OR_NULL_ORIGIN",
        /// A request with cookies from a page that is not trusted.
        InvalidOrigin = "INVALID_ORIGIN",
        /// OAuth: a client that is not known.
        InvalidClient = "invalid_client",
        /// OAuth: a code or token that is unknown, used or over.
        InvalidGrant = "invalid_grant",
        /// OAuth: a grant type that is not known here.
        UnsupportedGrantType = "unsupported_grant_type",
        /// OAuth: nobody has decided yet about the device.
        AuthorizationPending = "authorization_pending",
        /// OAuth: the device asks too often.
        SlowDown = "slow_down",
        /// OAuth: the codes of the device are over.
        ExpiredToken = "expired_token",
        /// OAuth: a person refused the device.
        AccessDenied = "access_denied",
        /// A redirect target that is not trusted.
        InvalidCallbackUrl = "INVALID_CALLBACK_URL",
        /// A token that is unknown, used or too old.
        InvalidToken = "INVALID_TOKEN",
        /// A password that is not the user's.
        InvalidPassword = "INVALID_PASSWORD",
        /// An address cannot be changed like this.
        EmailCanNotBeUpdated = "EMAIL_CAN_NOT_BE_UPDATED",
        /// The user is kept out.
        BannedUser = "BANNED_USER",
        /// The user has not proved that the address is theirs.
        EmailNotVerified = "EMAIL_NOT_VERIFIED",
        /// Who may not change the roles of a member.
        NotAllowedToUpdateMember = "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER",
        /// The last owner of an organization cannot be made something else.
        OrganizationWithoutOwner = "YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER",
        /// The last owner of an organization cannot leave it.
        OnlyOwner = "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER",
        /// Who may not remove a member.
        NotAllowedToDeleteMember = "YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER",
        /// There is no such member.
        MemberNotFound = "MEMBER_NOT_FOUND",
        /// The caller is no member of the organization, or there is none.
        UserIsNotMember = "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
        /// The same, where a list was asked for.
        NotMemberOfThis = "YOU_ARE_NOT_A_MEMBER_OF_THIS_ORGANIZATION",
        /// No organization was named, and the session acts for none.
        NoActiveOrganization = "NO_ACTIVE_ORGANIZATION",
        /// The same, elsewhere.
        OrganizationNotFound = "ORGANIZATION_NOT_FOUND",
        /// The slug of a new organization is taken.
        OrganizationAlreadyExists = "ORGANIZATION_ALREADY_EXISTS",
        /// The slug belongs to another organization.
        OrganizationSlugTaken = "ORGANIZATION_SLUG_ALREADY_TAKEN",
        /// Who may not change an organization.
        NotAllowedToUpdateOrganization = "YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION",
        /// Who may not delete an organization.
        NotAllowedToDeleteOrganization = "YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION",
        /// Who may not invite.
        NotAllowedToInvite = "YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION",
        /// Who may not invite to such a role.
        NotAllowedToInviteRole = "YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE",
        /// The organization has no such role.
        RoleNotFound = "ROLE_NOT_FOUND",
        /// The address is invited already.
        AlreadyInvited = "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION",
        /// The address is that of a member.
        AlreadyMember = "USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION",
        /// There is no such invitation, or it cannot be answered any more.
        InvitationNotFound = "INVITATION_NOT_FOUND",
        /// The invitation is for another address.
        NotRecipient = "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION",
        /// Who may not take an invitation back.
        NotAllowedToCancelInvitation = "YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION",
        /// The caller has not proved that the address is theirs.
        EmailVerificationRequired = "EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION",
        /// The recipient has neither confirmed the address nor shown the secret of the mailed link.
        EmailVerificationRequiredToAnswer =
            "EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION",
        /// No session where an API key is to be made.
        UnauthorizedSession = "UNAUTHORIZED_SESSION",
        /// There is no such API key for this caller.
        KeyNotFound = "KEY_NOT_FOUND",
        /// A name that is too short or too long for an API key.
        InvalidNameLength = "INVALID_NAME_LENGTH",
        /// An API key shall live for less than it may.
        ExpiresInTooSmall = "EXPIRES_IN_IS_TOO_SMALL",
        /// An API key shall live for longer than it may.
        ExpiresInTooLarge = "EXPIRES_IN_IS_TOO_LARGE",
        /// A property of an API key that no client sets.
        ServerOnlyProperty = "SERVER_ONLY_PROPERTY",
        /// API keys have no metadata here.
        MetadataDisabled = "METADATA_DISABLED",
        /// A change that changes nothing.
        NoValuesToUpdate = "NO_VALUES_TO_UPDATE",
        /// The caller must prove once more who they are; `details.methods` says how.
        StepUpRequired = "STEP_UP_REQUIRED",
        /// A code of an authenticator that is wrong, used or too old.
        InvalidCode = "INVALID_CODE",
        /// A recovery code that is none, or was used.
        InvalidBackupCode = "INVALID_BACKUP_CODE",
        /// A sign-in that does not wait for a second factor any more, or never did.
        InvalidTwoFactorCookie = "INVALID_TWO_FACTOR_COOKIE",
        /// The user has no second factor.
        TwoFactorNotEnabled = "TWO_FACTOR_NOT_ENABLED",
        /// The user has a second factor already.
        TwoFactorAlreadyEnabled = "TWO_FACTOR_ALREADY_ENABLED",
        /// The user has no authenticator.
        TotpNotEnabled = "TOTP_NOT_ENABLED",
        /// The user has no recovery codes.
        BackupCodesNotEnabled = "BACKUP_CODES_NOT_ENABLED",
        /// A challenge of passkeys that does not wait any more, or never did.
        ChallengeNotFound = "CHALLENGE_NOT_FOUND",
        /// The answer of an authenticator that was to make a passkey is refused.
        FailedToVerifyRegistration = "FAILED_TO_VERIFY_REGISTRATION",
        /// There is no such passkey, or it is somebody else's.
        PasskeyNotFound = "PASSKEY_NOT_FOUND",
        /// The answer of an authenticator that was to show a passkey is refused.
        AuthenticationFailed = "AUTHENTICATION_FAILED",
        /// The passkey is registered already.
        PreviouslyRegistered = "PREVIOUSLY_REGISTERED",
        /// This installation has no passkeys.
        PasskeysDisabled = "PASSKEYS_DISABLED",
    }
}

impl Code {
    /// The code as a sentence: `MEMBER_NOT_FOUND` is "Member not found".
    #[must_use]
    pub fn sentence(self) -> String {
        let words = self.as_str().replace('_', " ").to_ascii_lowercase();
        let mut letters = words.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Issue {
    /// Where: field names and array positions from the root of the body.
    pub path: Vec<String>,
    /// What kind of wrong, in snake case.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

impl Issue {
    /// An issue with one field.
    #[must_use]
    pub fn field(name: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            path: vec![name.to_owned()],
            code,
            message: message.into(),
        }
    }
}

/// What can go wrong in a use case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input breaks a rule; every violation is listed.
    #[error("The request is not valid.")]
    Invalid(Vec<Issue>),
    /// No credential, or one that is not valid.
    #[error("Authentication is required.")]
    Unauthorized,
    /// The caller may not do this.
    #[error("You may not do this.")]
    Forbidden,
    /// There is no such thing for this caller; the word names its kind.
    #[error("There is no such {0}.")]
    NotFound(&'static str),
    /// The thing is in a state in which this cannot be done.
    #[error("This cannot be done while the status is {status}.")]
    InvalidState {
        /// The status it has.
        status: String,
        /// The statuses from which it can be done.
        allowed_from: Vec<String>,
    },
    /// The record is not at the version the caller named with `If-Match`.
    #[error("The record has changed since it was read.")]
    VersionConflict,
    /// Any other refusal that has a code of its own.
    #[error("{message}")]
    Refused {
        /// The code of the envelope.
        code: Code,
        /// What to tell the caller.
        message: String,
        /// More for the caller's program; an object.
        details: Value,
    },
    /// A provider or service outside failed; the text is for the log alone.
    #[error("A service this depends on failed.")]
    Upstream(String),
    /// Cannot be done at the moment; the text is for the log alone.
    #[error("This is not possible at the moment.")]
    Unavailable(String),
    /// Our own fault; the text is for the log alone.
    #[error("Something went wrong on our side.")]
    Internal(String),
    /// The store failed.
    #[error("Something went wrong on our side.")]
    Store(#[from] StoreError),
}

impl Error {
    /// A refusal with a code, a message and no details.
    #[must_use]
    pub fn refused(code: Code, message: impl Into<String>) -> Self {
        Self::Refused {
            code,
            message: message.into(),
            details: Value::Object(serde_json::Map::new()),
        }
    }

    /// The refusal of a code. Its message is the code, written as a sentence.
    #[must_use]
    pub fn of_code(code: Code) -> Self {
        match code {
            Code::Unauthorized => Self::Unauthorized,
            Code::Forbidden => Self::Forbidden,
            code => Self::refused(code, code.sentence()),
        }
    }

    /// The input breaks one rule.
    #[must_use]
    pub fn invalid(field: &str, code: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Issue::field(field, code, message)])
    }

    /// The caller has created as many as the installation allows: `LIMIT_REACHED` with `details.limit`.
    #[must_use]
    pub fn limit_reached(limit: impl Into<u64>, message: impl Into<String>) -> Self {
        Self::Refused {
            code: Code::LimitReached,
            message: message.into(),
            details: serde_json::json!({ "limit": limit.into() }),
        }
    }

    /// The code of the envelope.
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

    /// More for the caller's program; an object, `{}` when there is nothing to say.
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
            _ => Value::Object(serde_json::Map::new()),
        }
    }
}

/// What the header `Retry-After` asks for: seconds, or an instant. Nothing when it is neither.
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
