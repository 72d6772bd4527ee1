//! The second factor: setting it up, and verifying its codes at sign-in or as a fresh proof of identity.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Error, Line, Result, Stored};
use core_domain::port::transact;
use core_domain::use_case::iam::two_factor::{self, CompletedSignIn, SecondFactorCode};
use core_domain::use_case::iam::user::PasswordCredential;
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::MAX_PASSWORD_TEXT;
use super::challenge::set_trust_cookie;
use super::config::Iam;
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use super::password::check_own_password;
use super::status::Status;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let row = |path, operation| {
        post(path, operation)
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
    };
    vec![
        row("/api/auth/two-factor/enable", "enableTwoFactor")
            .summary("Sets up an authenticator as the second factor.")
            .description(
                "Returns the secret as a URI and 10 recovery codes, which are shown only once. \
                 The second factor is enabled by its first correct code at `verifyTotp`; until \
                 then, each call replaces the secret and the codes. Requires the password or a \
                 proof of identity from the last 10 minutes, and a verified email address. Users \
                 with a passkey need the proof even with the password.",
            )
            .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::EmailNotVerified,
                Code::TwoFactorAlreadyEnabled,
            ])
            .plain(with(iam, enable)),
        row("/api/auth/two-factor/disable", "disableTwoFactor")
            .summary("Removes the authenticator and its recovery codes.")
            .description(
                "The password alone signs in from then on, and all trusted devices are removed. \
                 Passkeys are kept. If the second factor is enabled, this requires a proof by a \
                 second factor from the last 10 minutes. The owner is then informed by mail.",
            )
            .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::TwoFactorNotEnabled,
            ])
            .plain(with(iam, disable)),
        row("/api/auth/two-factor/get-totp-uri", "getTotpUri")
            .summary("Returns the URI of the authenticator's secret again.")
            .description(
                "The URI sets up another authenticator with the same codes. If the second factor \
                 is enabled, this requires a proof by a second factor from the last 10 minutes. \
                 The owner is then informed by mail. Each call is recorded in the audit log.",
            )
            .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::TwoFactorNotEnabled,
            ])
            .plain(with(iam, totp_uri)),
        row(
            "/api/auth/two-factor/generate-backup-codes",
            "generateBackupCodes",
        )
        .summary("Creates new recovery codes; the old ones become invalid.")
        .description(
            "Returns 10 codes, which are shown only once. If the second factor is enabled, this \
             requires a proof by a second factor from the last 10 minutes. The owner is then \
             informed by mail.",
        )
        .refuses(&[
            Code::InvalidPassword,
            Code::StepUpRequired,
            Code::TwoFactorNotEnabled,
        ])
        .plain(with(iam, backup_codes)),
        row("/api/auth/two-factor/verify-totp", "verifyTotp")
            .summary("Verifies a code of the authenticator.")
            .description(
                "Completes the sign-in that the cookie identifies and starts its session. Without \
                 such a sign-in, the code counts as a fresh proof of identity in the session of \
                 the request. The first correct code enables a second factor that was set up; the \
                 owner is informed by mail. Each code works once. After 5 wrong codes in 10 \
                 minutes, codes are rejected for a while.",
            )
            .refuses(&[
                Code::Unauthorized,
                Code::InvalidCode,
                Code::InvalidTwoFactorCookie,
                Code::TotpNotEnabled,
                Code::StepUpRequired,
                Code::EmailNotVerified,
                Code::BannedUser,
            ])
            .plain(with(iam, verify_totp)),
        row(
            "/api/auth/two-factor/verify-backup-code",
            "verifyBackupCode",
        )
        .summary("Verifies a recovery code in place of an authenticator code.")
        .description(
            "Completes the sign-in that the cookie identifies and starts its session. Without \
             such a sign-in, the code counts as a fresh proof of identity in the session of \
             the request. Each code works once; the owner is informed by mail how many are \
             left. Wrong codes count together with wrong authenticator codes.",
        )
        .refuses(&[
            Code::Unauthorized,
            Code::InvalidBackupCode,
            Code::InvalidTwoFactorCookie,
            Code::BackupCodesNotEnabled,
            Code::BannedUser,
        ])
        .plain(with(iam, verify_backup_code)),
    ]
}

/// The caller's password, if it is used as the proof.
#[derive(Clone, Deserialize, JsonSchema)]
struct OwnPassword {
    /// The caller's password. It replaces a fresh proof of identity for users without a second factor.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
}

/// Options for setting up the second factor.
#[derive(Clone, Deserialize, JsonSchema)]
struct EnableTwoFactor {
    /// The caller's password. It replaces a fresh proof of identity for users without a second factor.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
    /// The name of this installation in the authenticator, 1 to 64 characters. Default: the host name.
    issuer: Option<Line<1, 64>>,
}

/// The secret and the recovery codes of a new second factor.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TwoFactorSetUp {
    /// The `otpauth` URI of the secret. Show it as a QR code for the authenticator.
    #[serde(rename = "totpURI")]
    totp_uri: String,
    /// The recovery codes. They are returned only in this response.
    backup_codes: Vec<String>,
}

/// Checks the password if the body contains one.
///
/// # Errors
/// Returns `INVALID_PASSWORD` for a wrong password, and `RATE_LIMITED` after too many wrong passwords.
async fn check_if_given(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: Option<&str>,
) -> Result<Option<PasswordCredential>> {
    let Some(password) = password else {
        return Ok(None);
    };
    let (_, checked) = check_own_password(cx, iam, scope, password).await?;
    Ok(Some(checked))
}

async fn enable(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), EnableTwoFactor>,
) -> Result<Output<TwoFactorSetUp>> {
    let checked = check_if_given(cx, &iam, &scope, input.body.password.as_deref()).await?;
    let issuer = input.body.issuer.as_ref().map(Line::as_str);
    let (issuer, cipher) = (issuer.unwrap_or_else(|| iam.host()), &cx.app.cipher);
    let checked = checked.as_ref();
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::set_up(cx, &scope, uow, cipher, checked, issuer))
    })
    .await?;
    Ok(no_store(Output::new(TwoFactorSetUp {
        totp_uri: done.uri,
        backup_codes: done.recovery_codes,
    })))
}

async fn disable(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), OwnPassword>,
) -> Result<Output<Status>> {
    let checked = check_if_given(cx, &iam, &scope, input.body.password.as_deref()).await?;
    let checked = checked.as_ref();
    let notices = iam.notices(cx);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::disable(cx, &scope, uow, checked, notices))
    })
    .await?;
    Ok(Output::new(Status::OK))
}

/// The secret of the authenticator.
#[derive(Clone, Serialize, JsonSchema)]
struct TotpUri {
    /// The `otpauth` URI of the secret. Show it as a QR code for the authenticator.
    #[serde(rename = "totpURI")]
    totp_uri: String,
}

async fn totp_uri(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), OwnPassword>,
) -> Result<Output<TotpUri>> {
    let checked = check_if_given(cx, &iam, &scope, input.body.password.as_deref()).await?;
    let (checked, issuer) = (checked.as_ref(), iam.host());
    let notices = iam.notices(cx);
    let totp_uri = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::get_uri(
            cx, &scope, uow, checked, issuer, notices,
        ))
    })
    .await?;
    Ok(no_store(Output::new(TotpUri { totp_uri })))
}

/// The new recovery codes of the user.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BackupCodes {
    /// Always `true` in this response.
    status: bool,
    /// The recovery codes. They are returned only in this response.
    backup_codes: Vec<String>,
}

async fn backup_codes(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), OwnPassword>,
) -> Result<Output<BackupCodes>> {
    let checked = check_if_given(cx, &iam, &scope, input.body.password.as_deref()).await?;
    let checked = checked.as_ref();
    let notices = iam.notices(cx);
    let backup_codes = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::renew_recovery_codes(
            cx, &scope, uow, checked, notices,
        ))
    })
    .await?;
    Ok(no_store(Output::new(BackupCodes {
        status: true,
        backup_codes,
    })))
}

/// A code of the second factor.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TwoFactorCode {
    /// The code of the authenticator, or a recovery code.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^[^\u0000]*$"),
        example = "123456"
    )]
    code: String,
    /// Makes this device trusted after a sign-in: the password alone then signs in on it for 30 days. Default: false.
    trust_device: Option<bool>,
}

/// The response to a correct code.
#[derive(Clone, Serialize, JsonSchema)]
struct SecondFactorVerified {
    /// The token of the session: the new one after a sign-in, otherwise the session of the request.
    token: Option<String>,
    /// The user who entered the code.
    user: User,
}

async fn verify_totp(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), TwoFactorCode>,
) -> Result<Output<SecondFactorVerified>> {
    let trust = input.body.trust_device.unwrap_or(false);
    verify(
        cx,
        &iam,
        &scope,
        SecondFactorCode::Totp(&input.body.code),
        trust,
    )
    .await
}

async fn verify_backup_code(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), TwoFactorCode>,
) -> Result<Output<SecondFactorVerified>> {
    let trust = input.body.trust_device.unwrap_or(false);
    verify(
        cx,
        &iam,
        &scope,
        SecondFactorCode::RecoveryCode(&input.body.code),
        trust,
    )
    .await
}

/// Completes the sign-in that the request identifies. Otherwise uses the code as a proof of identity in the session.
async fn verify(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    proof: SecondFactorCode<'_>,
    trust: bool,
) -> Result<Output<SecondFactorVerified>> {
    let session = authorize_session(cx);
    let Some(token) = iam.challenge_token(&cx.headers) else {
        return in_session(cx, iam, &session?, proof).await;
    };
    let over = |error: &Error| error.code() == Code::InvalidTwoFactorCookie;
    match (
        complete_sign_in(cx, iam, scope, &token, proof, trust).await,
        session,
    ) {
        (Err(error), Ok(session)) if over(&error) => in_session(cx, iam, &session, proof).await,
        (outcome, _) => Ok(signed_in(cx, iam, &outcome?)),
    }
}

/// Completes the sign-in with this token. If `trust` is set, its device becomes trusted.
pub(super) async fn complete_sign_in(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    token: &str,
    proof: SecondFactorCode<'_>,
    trust: bool,
) -> Result<CompletedSignIn> {
    let notices = iam.notices(cx);
    let shown = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::verify_for_sign_in(
            cx, scope, uow, notices, token, proof, trust,
        ))
    })
    .await?;
    shown.into_result()
}

fn signed_in(cx: &Cx, iam: &Iam, done: &CompletedSignIn) -> Output<SecondFactorVerified> {
    let answer = no_store(Output::new(SecondFactorVerified {
        token: Some(done.signed_in.token.clone()),
        user: done.signed_in.user.edit(),
    }));
    set_completed_cookies(cx, iam, answer, done)
}

/// Sets the cookies of the new session and of a trusted device, and clears the cookie of the waiting sign-in.
pub(super) fn set_completed_cookies<T>(
    cx: &Cx,
    iam: &Iam,
    output: Output<T>,
    done: &CompletedSignIn,
) -> Output<T> {
    let used = iam.names.set(iam.names.two_factor(), "", Some(0));
    let output = set_sign_in_cookies(cx, iam, output, &done.signed_in);
    let output = with_header(output, header::SET_COOKIE, &used);
    set_trust_cookie(iam, output, done.device.as_deref())
}

async fn in_session(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    proof: SecondFactorCode<'_>,
) -> Result<Output<SecondFactorVerified>> {
    let user = reauthenticate(cx, iam, scope, proof).await?;
    Ok(no_store(Output::new(SecondFactorVerified {
        token: iam.presented_token(&cx.headers),
        user: user.edit(),
    })))
}

/// Verifies a code and records it as a fresh proof of identity.
pub(super) async fn reauthenticate(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    proof: SecondFactorCode<'_>,
) -> Result<Stored<User>> {
    let notices = iam.notices(cx);
    let shown = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(two_factor::verify_in_session(
            cx, scope, uow, notices, proof,
        ))
    })
    .await?;
    shown.into_result()
}
