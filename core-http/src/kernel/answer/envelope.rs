//! The error envelope, the one place that writes it.

use core_domain::kernel::{Code, Error, Issue};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::media::{HTML, Html, page_headers};
use crate::kernel::request::body::{Body, bytes_body};
use crate::kernel::request::parse::is_form;

/// What better-auth's clients read instead of `Retry-After`.
const X_RETRY_AFTER: HeaderName = HeaderName::from_static("x-retry-after");

/// What surrounds an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorStyle {
    /// `{"error":{code,message,requestId,details}}`.
    #[default]
    Envelope,
    /// The envelope, and `code` and `message` beside it, as better-auth's clients want.
    TopLevelCode,
    /// The envelope without `details`.
    WithoutDetails,
    /// The envelope, never cached; to whom sent a form, as OAuth's clients do, [`ErrorStyle::OAuthForm`].
    OAuth,
    /// `{"error","error_description"}` of RFC 6749, never cached.
    OAuthForm,
    /// The envelope; to browsers that ask for a page, [`ErrorStyle::Html`].
    Page,
    /// A page for people.
    Html,
}

impl ErrorStyle {
    /// The style of an answer to a request with these headers.
    pub(crate) fn for_request(self, headers: &HeaderMap) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        match self {
            Self::OAuth if is_form(content_type) => Self::OAuthForm,
            Self::Page if wants_page(headers) => Self::Html,
            style => style,
        }
    }
}

/// Tells whether the client is a browser that wants to show the answer.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// The answer to a request that failed; in the status of its code, unless another one is given. What broke on our side goes
/// to the log alone.
#[must_use]
pub fn error_response(
    error: &Error,
    request_id: &str,
    style: ErrorStyle,
    status: Option<StatusCode>,
) -> Response<Body> {
    let code = error.code();
    let status = status.unwrap_or_else(|| status_of(code));
    if status.is_server_error() {
        tracing::error!(request_id, code = code.as_str(), cause = ?error, "request failed");
    }
    let (code, message) = worded(error, style);
    let details = error.details();
    let body = match style {
        ErrorStyle::OAuthForm => oauth_body(error, &message),
        style => body(code, &message, request_id, &details, style),
    };
    let mut response = Response::new(bytes_body(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if matches!(style, ErrorStyle::OAuth | ErrorStyle::OAuthForm) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = retry_after(code, &details) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        if style == ErrorStyle::TopLevelCode {
            headers.insert(X_RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
    response
}

/// Returns the body of an error response, for a refusal that is stored or written without a service.
pub(crate) fn error_body(error: &Error, request_id: &str, style: ErrorStyle) -> String {
    let (code, message) = worded(error, style);
    body(code, &message, request_id, &error.details(), style).to_string()
}

/// The code and message of the style.
fn worded(error: &Error, style: ErrorStyle) -> (Code, String) {
    let (code, message) = (error.code(), message_of(error));
    match style {
        ErrorStyle::TopLevelCode => to_better_auth(error, code, message),
        _ => (code, message),
    }
}

fn body(code: Code, message: &str, request_id: &str, details: &Value, style: ErrorStyle) -> Value {
    let mut error = Map::new();
    error.insert("code".into(), code.as_str().into());
    error.insert("message".into(), message.into());
    error.insert("requestId".into(), request_id.into());
    if style != ErrorStyle::WithoutDetails {
        error.insert("details".into(), details.clone());
    }
    let mut body = json!({ "error": error });
    if style == ErrorStyle::TopLevelCode {
        body["code"] = code.as_str().into();
        body["message"] = message.into();
    }
    body
}

fn message_of(error: &Error) -> String {
    match error {
        Error::Store(_) => store_message(error.code()).to_owned(),
        error => error.to_string(),
    }
}

const fn store_message(code: Code) -> &'static str {
    match code {
        Code::InvalidCursor => "The cursor does not belong to this list.",
        Code::Conflict => "The request contradicts what is stored.",
        Code::ServiceUnavailable => "This is not possible at the moment.",
        _ => "Something went wrong on our side.",
    }
}

/// Whole seconds; from `details.retryAfter` where the refusal knows better.
fn retry_after(code: Code, details: &Value) -> Option<u64> {
    let known = details.get("retryAfter").and_then(Value::as_u64);
    match code {
        Code::IdempotencyInProgress | Code::ServiceUnavailable => Some(known.unwrap_or(1)),
        Code::RateLimited => known,
        _ => None,
    }
}

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

/// The code and message to answer with.
pub(crate) fn to_better_auth(error: &Error, code: Code, message: String) -> (Code, String) {
    match (error, code) {
        (Error::Invalid(issues), _) => (code, faults(issues)),
        (_, Code::MalformedJson) => (Code::BadRequest, "Invalid JSON in request body".to_owned()),
        (Error::Unauthorized, _) => (code, "Unauthorized".to_owned()),
        _ => (code, message),
    }
}

/// `[body.name] Invalid input: ...; [body.email] ...`
fn faults(issues: &[Issue]) -> String {
    let faults: Vec<String> = issues.iter().map(fault).collect();
    faults.join("; ")
}

fn fault(issue: &Issue) -> String {
    let place: Vec<&str> = std::iter::once("body")
        .chain(issue.path.iter().map(String::as_str))
        .collect();
    let words = match (issue.code, issue.path.last().map(String::as_str)) {
        ("required", _) => "Invalid input: expected string, received undefined",
        (_, Some("email")) if issue.code != "invalid_type" => "Invalid email address",
        ("invalid_type", _) => "Invalid input: wrong type",
        _ => issue.message.as_str(),
    };
    format!("[{}] {words}", place.join("."))
}

/// The body of an error for a client that sent a form.
fn oauth_body(error: &Error, message: &str) -> Value {
    json!({
        "error": word(error.code()),
        "error_description": description(error, message),
    })
}

/// The word of RFC 6749 or RFC 8628 for a code.
fn word(code: Code) -> &'static str {
    if code.as_str().starts_with(|c: char| c.is_ascii_lowercase()) {
        return code.as_str();
    }
    match status_of(code) {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Code::AccessDenied.as_str(),
        // A client that polls goes on, and more slowly.
        StatusCode::TOO_MANY_REQUESTS => Code::SlowDown.as_str(),
        StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request",
    }
}

/// The message, with what is wrong where; of the characters that RFC 6749 allows there.
fn description(error: &Error, message: &str) -> String {
    let issues = match error {
        Error::Invalid(issues) => issues.as_slice(),
        _ => &[],
    };
    let mut text = message.to_owned();
    for issue in issues {
        text.push_str(&format!(" {} {}.", issue.path.join("."), issue.message));
    }
    let allowed = |c: &char| matches!(c, ' '..='!' | '#'..='[' | ']'..='~');
    text.chars().filter(allowed).collect()
}

/// Writes the pages of errors, for a service that has pages.
pub trait ErrorPages: Send + Sync + std::fmt::Debug {
    /// The page of a status; of a request with this id, which may be tried again in so many seconds.
    fn page(&self, status: StatusCode, request_id: &str, retry_after: Option<u64>) -> Html;
}

/// The answer to a request that failed, as a page.
pub(crate) fn as_page(
    pages: &dyn ErrorPages,
    mut response: Response<Body>,
    request_id: &str,
) -> Response<Body> {
    let seconds = response.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let Html(text) = pages.page(response.status(), request_id, seconds);
    *response.body_mut() = bytes_body(text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(page_headers());
    response
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Issue;

    use super::*;

    #[test]
    fn only_our_own_fault_is_a_500() {
        for code in Code::ALL {
            let is_500 = status_of(*code) == StatusCode::INTERNAL_SERVER_ERROR;
            assert_eq!(is_500, *code == Code::InternalError, "{code}");
        }
    }

    #[test]
    fn faults_are_joined_and_say_where_they_are() {
        let issues = vec![
            Issue::field("name", "required", "is required"),
            Issue::field("email", "invalid_format", "must be of the format email"),
        ];
        let (code, message) = to_better_auth(
            &Error::Invalid(issues),
            Code::ValidationError,
            String::new(),
        );
        assert_eq!(code, Code::ValidationError);
        assert_eq!(
            message,
            "[body.name] Invalid input: expected string, received undefined; \
         [body.email] Invalid email address"
        );
    }

    #[test]
    fn every_code_has_a_word_in_lower_case() {
        for code in Code::ALL {
            let word = word(*code);
            assert!(
                word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{code}"
            );
        }
        assert_eq!(word(Code::SlowDown), "slow_down");
        assert_eq!(word(Code::ValidationError), "invalid_request");
        assert_eq!(word(Code::InternalError), "server_error");
    }

    #[test]
    fn a_description_names_what_is_wrong_in_allowed_characters() {
        let error = Error::Invalid(vec![Issue::field(
            "client_id",
            "required",
            "is \"required\"",
        )]);
        let told = description(&error, "The request is not valid.");
        assert_eq!(told, "The request is not valid. client_id is required.");
    }
}
