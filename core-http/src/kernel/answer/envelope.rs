//! Error responses: their status, their shape ([`ErrorStyle`]) and their text.
//!
//! The usual shape is the envelope `{"error": {"code", "message", "requestId", "details"}}`. Clients of better-auth and
//! of OAuth expect other shapes, and browsers get HTML pages.

use core_domain::kernel::{Code, Error, Issue};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::media::{Html, page_headers};
use crate::kernel::request::body::{Body, bytes_body};
use crate::kernel::request::media_types::HTML;
use crate::kernel::request::parse::is_form;

/// The header that clients of better-auth read instead of `Retry-After`.
const X_RETRY_AFTER: HeaderName = HeaderName::from_static("x-retry-after");

/// The shape of an error response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorStyle {
    /// The envelope `{"error":{code,message,requestId,details}}`.
    #[default]
    Envelope,
    /// The envelope, with `code` and `message` also at the top level, as clients of better-auth expect.
    TopLevelCode,
    /// The envelope without `details`.
    WithoutDetails,
    /// The envelope, not cacheable. For requests with a form, as OAuth clients send, [`ErrorStyle::OAuthForm`].
    OAuth,
    /// `{"error","error_description"}` of RFC 6749, not cacheable.
    OAuthForm,
    /// The envelope. For browsers that accept HTML, [`ErrorStyle::Html`].
    Page,
    /// An HTML page, if the service has error pages; otherwise the envelope.
    Html,
}

impl ErrorStyle {
    /// Returns the style of the response to a request with these headers.
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

/// Returns whether the client is a browser that displays the response: `Accept` contains `text/html`.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// Creates the response to a failed request. Its status is that of the error's code, unless `status` is given. The
/// cause of a server error is logged and not sent.
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
    let (code, message) = code_and_message(error, style);
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
    let (code, message) = code_and_message(error, style);
    body(code, &message, request_id, &error.details(), style).to_string()
}

/// Returns the code and the message of an error in this style.
fn code_and_message(error: &Error, style: ErrorStyle) -> (Code, String) {
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

/// Returns the message of an error. Errors of the store have fixed messages, so that no internals are sent.
fn message_of(error: &Error) -> String {
    match error {
        Error::Store(_) => store_message(error.code()).to_owned(),
        error => error.to_string(),
    }
}

const fn store_message(code: Code) -> &'static str {
    match code {
        Code::InvalidCursor => "The cursor does not belong to this list.",
        Code::Conflict => "The request conflicts with existing records.",
        Code::ServiceUnavailable => "This is not possible at the moment.",
        _ => "Something went wrong on our side.",
    }
}

/// Returns the value of `Retry-After` in seconds, if the code has one. `details.retryAfter` takes precedence over the
/// default of one second.
fn retry_after(code: Code, details: &Value) -> Option<u64> {
    let known = details.get("retryAfter").and_then(Value::as_u64);
    match code {
        Code::IdempotencyInProgress | Code::OperationInProgress | Code::ServiceUnavailable => {
            Some(known.unwrap_or(1))
        }
        Code::RateLimited => known,
        _ => None,
    }
}

/// Returns the HTTP status of an error code.
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
        | Code::QuotaExceeded
        | Code::HostnameReserved
        | Code::StepUpRequired
        | Code::MissingOrNullOrigin
        | Code::InvalidOrigin
        | Code::InvalidCallbackUrl
        | Code::BannedUser
        | Code::NotAllowedToUpdateMember
        | Code::UserIsNotMember
        | Code::NotMemberOfOrganization
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
        | Code::SubscriptionExists
        | Code::CustomerExists
        | Code::TierUnchanged
        | Code::NothingToInvoice
        | Code::AlreadyOnPlan
        | Code::QuoteExpired
        | Code::PreviewExpired
        | Code::OperationInProgress
        | Code::PaymentMethodInUse
        | Code::CurrencyMismatch
        | Code::IdempotencyInProgress => StatusCode::CONFLICT,
        Code::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        Code::VersionConflict => StatusCode::PRECONDITION_FAILED,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UriTooLong => StatusCode::URI_TOO_LONG,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::IdempotencyKeyReused | Code::UserAlreadyExists => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::PlatformSuspended => StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
        Code::UpstreamError | Code::PaymentProviderUnavailable | Code::PaymentOutcomeUnknown => {
            StatusCode::BAD_GATEWAY
        }
        Code::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        // Only `InternalError`. A test fails if another code is missing above.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the code and the message that clients of better-auth expect for an error.
pub(crate) fn to_better_auth(error: &Error, code: Code, message: String) -> (Code, String) {
    match (error, code) {
        (Error::Invalid(issues), _) => (code, format_issues(issues)),
        (_, Code::MalformedJson) => (Code::BadRequest, "Invalid JSON in request body".to_owned()),
        (Error::Unauthorized, _) => (code, "Unauthorized".to_owned()),
        _ => (code, message),
    }
}

/// Returns the issues in the format of better-auth: `[body.name] Invalid input: ...; [body.email] ...`.
fn format_issues(issues: &[Issue]) -> String {
    let faults: Vec<String> = issues.iter().map(format_issue).collect();
    faults.join("; ")
}

/// Returns one issue in the format of better-auth.
fn format_issue(issue: &Issue) -> String {
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

/// Returns the body of an error response of RFC 6749.
fn oauth_body(error: &Error, message: &str) -> Value {
    json!({
        "error": oauth_error(error.code()),
        "error_description": oauth_description(error, message),
    })
}

/// Returns the `error` value of RFC 6749 or RFC 8628 for a code.
fn oauth_error(code: Code) -> &'static str {
    if code.as_str().starts_with(|c: char| c.is_ascii_lowercase()) {
        return code.as_str();
    }
    match status_of(code) {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Code::AccessDenied.as_str(),
        // A polling client continues with longer pauses.
        StatusCode::TOO_MANY_REQUESTS => Code::SlowDown.as_str(),
        StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request",
    }
}

/// Returns the `error_description`: the message and all issues, reduced to the characters that RFC 6749 allows.
fn oauth_description(error: &Error, message: &str) -> String {
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

/// Renders the HTML error pages of a service.
pub trait ErrorPages: Send + Sync + std::fmt::Debug {
    /// Renders the page for a status and a request id. `retry_after` is the value of `Retry-After` in seconds, if the
    /// response has one.
    fn page(&self, status: StatusCode, request_id: &str, retry_after: Option<u64>) -> Html;
}

/// Replaces the body of an error response by an HTML page.
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
    fn only_internal_errors_have_status_500() {
        for code in Code::ALL {
            let is_500 = status_of(*code) == StatusCode::INTERNAL_SERVER_ERROR;
            assert_eq!(is_500, *code == Code::InternalError, "{code}");
        }
    }

    #[test]
    fn better_auth_messages_list_every_issue_with_its_path() {
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
    fn oauth_errors_are_lower_case_words() {
        for code in Code::ALL {
            let word = oauth_error(*code);
            assert!(
                word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{code}"
            );
        }
        assert_eq!(oauth_error(Code::SlowDown), "slow_down");
        assert_eq!(oauth_error(Code::ValidationError), "invalid_request");
        assert_eq!(oauth_error(Code::InternalError), "server_error");
    }

    #[test]
    fn oauth_descriptions_list_the_issues_in_allowed_characters() {
        let error = Error::Invalid(vec![Issue::field(
            "client_id",
            "required",
            "is \"required\"",
        )]);
        let told = oauth_description(&error, "The request is not valid.");
        assert_eq!(told, "The request is not valid. client_id is required.");
    }
}
