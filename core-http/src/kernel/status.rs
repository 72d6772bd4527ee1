//! Which status a code has, decided here alone.

use core_domain::kernel::Code;
use http::StatusCode;

/// The status of a code.
#[must_use]
pub const fn status_of(code: Code) -> StatusCode {
    match code {
        Code::ValidationError
        | Code::MalformedJson
        | Code::InvalidCursor
        | Code::BadRequest
        | Code::InvalidEmail
        | Code::InvalidToken
        | Code::InvalidPassword
        | Code::EmailCanNotBeUpdated
        | Code::OrganizationWithoutOwner
        | Code::OnlyOwner
        | Code::MemberNotFound
        | Code::NoActiveOrganization
        | Code::OrganizationNotFound
        | Code::OrganizationAlreadyExists
        | Code::OrganizationSlugTaken
        | Code::RoleNotFound
        | Code::AlreadyInvited
        | Code::AlreadyMember
        | Code::InvitationNotFound
        | Code::TwoFactorNotEnabled
        | Code::TwoFactorAlreadyEnabled
        | Code::TotpNotEnabled
        | Code::BackupCodesNotEnabled
        | Code::ChallengeNotFound
        | Code::FailedToVerifyRegistration
        | Code::PreviouslyRegistered
        | Code::PasskeysDisabled
        | Code::PasswordTooShort
        | Code::PasswordTooLong
        | Code::PasswordTooCommon
        | Code::InvalidClient
        | Code::InvalidGrant
        | Code::UnsupportedGrantType
        | Code::AuthorizationPending
        | Code::SlowDown
        | Code::ExpiredToken
        | Code::AccessDenied
        | Code::InvalidNameLength
        | Code::ExpiresInTooSmall
        | Code::ExpiresInTooLarge
        | Code::ServerOnlyProperty
        | Code::MetadataDisabled
        | Code::NoValuesToUpdate => StatusCode::BAD_REQUEST,
        Code::Unauthorized
        | Code::InvalidEmailOrPassword
        | Code::InvalidCode
        | Code::InvalidBackupCode
        | Code::InvalidTwoFactorCookie
        | Code::AuthenticationFailed
        | Code::NotAllowedToDeleteMember
        | Code::UnauthorizedSession => StatusCode::UNAUTHORIZED,
        Code::Forbidden
        | Code::HostnameReserved
        | Code::StepUpRequired
        | Code::MissingOrNullOrigin
        | Code::InvalidOrigin
        | Code::InvalidCallbackUrl
        | Code::BannedUser
        | Code::NotAllowedToUpdateMember
        | Code::UserIsNotMember
        | Code::NotMemberOfThis
        | Code::NotAllowedToUpdateOrganization
        | Code::NotAllowedToDeleteOrganization
        | Code::NotAllowedToInvite
        | Code::NotAllowedToInviteRole
        | Code::NotRecipient
        | Code::NotAllowedToCancelInvitation
        | Code::EmailVerificationRequired
        | Code::EmailVerificationRequiredToAnswer
        | Code::EmailNotVerified => StatusCode::FORBIDDEN,
        Code::NotFound | Code::KeyNotFound | Code::PasskeyNotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Code::Conflict
        | Code::LimitReached
        | Code::SlugTaken
        | Code::InvalidState
        | Code::DlqEntryNotReplayable
        | Code::IdempotencyInProgress => StatusCode::CONFLICT,
        Code::VersionConflict => StatusCode::PRECONDITION_FAILED,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UriTooLong => StatusCode::URI_TOO_LONG,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::IdempotencyKeyReused | Code::UserAlreadyExists => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::PlatformSuspended => StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
        Code::UpstreamError => StatusCode::BAD_GATEWAY,
        Code::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        // `InternalError`; a test finds a code that was forgotten here.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_fault_is_a_500() {
        for code in Code::ALL {
            let is_500 = status_of(*code) == StatusCode::INTERNAL_SERVER_ERROR;
            assert_eq!(is_500, *code == Code::InternalError, "{code}");
        }
    }
}
