//! The second factor: set up by a fresh proof or the password, confirmed by its first code, and asked for to complete a sign-in
//! and, within a session, as a fresh proof.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Error, Line, Result, Stored};
use core_domain::port::transact;
use core_domain::use_case::iam::two_factor::{self, CompletedSignIn, Proof};
use core_domain::use_case::iam::user::PasswordCredential;
use http::header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::MAX_PASSWORD_TEXT;
use super::challenge::set_trust_cookie;
use super::config::Iam;
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use super::password::check_own;
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
            .summary("Sets up a second factor; its first code, shown to verify-totp, enables it.")
            .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::EmailNotVerified,
                Code::TwoFactorAlreadyEnabled,
            ])
            .plain(with(iam, enable)),
        row("/api/auth/two-factor/disable", "disableTwoFactor")
            .summary("Removes the second factor.")
            .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::TwoFactorNotEnabled,
            ])
            .plain(with(iam, disable)),
        row("/api/auth/two-factor/get-totp-uri", "getTotpUri")
            .summary("Shows once more what an authenticator reads.")
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
        .refuses(&[
                Code::InvalidPassword,
                Code::StepUpRequired,
                Code::TwoFactorNotEnabled,
            ])
        .plain(with(iam, backup_codes)),
        row("/api/auth/two-factor/verify-totp", "verifyTotp")
            .summary("Completes a sign-in by a code of the authenticator; within a session it enables a second factor that was set up, and is a fresh proof.")
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
        row("/api/auth/two-factor/verify-backup-code", "verifyBackupCode")
            .summary("The same by a recovery code, which is good once.")
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

/// A body with the caller's password.
#[derive(Clone, Deserialize, JsonSchema)]
struct OwnPassword {
    /// The caller's password. It takes the place of a fresh proof for people without a second factor.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
}

/// The body of a set-up.
#[derive(Clone, Deserialize, JsonSchema)]
struct EnableTwoFactor {
    /// The caller's password. It takes the place of a fresh proof for people without a second factor.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
    /// What the authenticator calls this installation; its host name when not said.
    issuer: Option<Line<1, 64>>,
}

/// A second factor that was set up.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TwoFactorSetUp {
    /// What an authenticator reads from a picture of it.
    #[serde(rename = "totpURI")]
    totp_uri: String,
    /// Shown now and never again.
    backup_codes: Vec<String>,
}

/// Checks the password of a body that has one.
///
/// # Errors
/// `INVALID_PASSWORD`; `RATE_LIMITED` when too many were wrong.
async fn check_if_given(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: Option<&str>,
) -> Result<Option<PasswordCredential>> {
    let Some(password) = password else {
        return Ok(None);
    };
    let (_, checked) = check_own(cx, iam, scope, password).await?;
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

/// What an authenticator reads.
#[derive(Clone, Serialize, JsonSchema)]
struct TotpUri {
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
        Box::pin(two_factor::show_uri(
            cx, &scope, uow, checked, issuer, notices,
        ))
    })
    .await?;
    Ok(no_store(Output::new(TotpUri { totp_uri })))
}

/// New recovery codes.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BackupCodes {
    /// Always true.
    status: bool,
    /// Shown now and never again.
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

/// The body with a code.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShownCode {
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^[^\u0000]*$"),
        example = "123456"
    )]
    code: String,
    /// With a sign-in: the password alone signs in on this device for 30 days.
    trust_device: Option<bool>,
}

/// The answer to a code that was right.
#[derive(Clone, Serialize, JsonSchema)]
struct SecondFactorShown {
    /// Of the session: the new one of a sign-in, or the one of the request.
    token: Option<String>,
    user: User,
}

async fn verify_totp(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), ShownCode>,
) -> Result<Output<SecondFactorShown>> {
    let trust = input.body.trust_device.unwrap_or(false);
    verify(cx, &iam, &scope, Proof::Totp(&input.body.code), trust).await
}

async fn verify_backup_code(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), ShownCode>,
) -> Result<Output<SecondFactorShown>> {
    let trust = input.body.trust_device.unwrap_or(false);
    verify(
        cx,
        &iam,
        &scope,
        Proof::RecoveryCode(&input.body.code),
        trust,
    )
    .await
}

/// Completes the sign-in that waits, if the request names one; otherwise the code is that of the session.
async fn verify(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    proof: Proof<'_>,
    trust: bool,
) -> Result<Output<SecondFactorShown>> {
    let session = authorize_session(cx);
    let Some(token) = iam.challenge_token(&cx.headers) else {
        return in_session(cx, iam, &session?, proof).await;
    };
    let over = |error: &Error| error.code() == Code::InvalidTwoFactorCookie;
    match (
        for_sign_in(cx, iam, scope, &token, proof, trust).await,
        session,
    ) {
        (Err(error), Ok(session)) if over(&error) => in_session(cx, iam, &session, proof).await,
        (outcome, _) => Ok(signed_in(cx, iam, &outcome?)),
    }
}

/// Completes the sign-in that waits under this token, and trusts its device, if wanted.
pub(super) async fn for_sign_in(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    token: &str,
    proof: Proof<'_>,
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

fn signed_in(cx: &Cx, iam: &Iam, done: &CompletedSignIn) -> Output<SecondFactorShown> {
    let answer = no_store(Output::new(SecondFactorShown {
        token: Some(done.signed_in.token.clone()),
        user: done.signed_in.user.edit(),
    }));
    set_completed_cookies(cx, iam, answer, done)
}

/// Gives the session of a sign-in that is complete, and takes away what it waited under.
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
    proof: Proof<'_>,
) -> Result<Output<SecondFactorShown>> {
    let user = reauthenticate(cx, iam, scope, proof).await?;
    Ok(no_store(Output::new(SecondFactorShown {
        token: iam.presented_token(&cx.headers),
        user: user.edit(),
    })))
}

/// Takes a code as a fresh proof of who the caller is.
pub(super) async fn reauthenticate(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    proof: Proof<'_>,
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
