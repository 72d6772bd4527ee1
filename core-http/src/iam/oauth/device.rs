//! Device login: a device requests its codes, and a person approves or denies the device.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope};
use core_domain::gateway::RateClass;
use core_domain::iam::{DeviceAuthorization, DeviceDecision, UserCode};
use core_domain::kernel::{Code, Error, Record, Result, Stored, TextValue};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::oauth::{self, DeviceCodes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{DEVICE_CODE, client};
use crate::iam::config::Iam;
use crate::iam::cookies::no_store;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post(DEVICE_CODE, "requestDeviceCode")
            .summary("Starts a device login.")
            .description(
                "Returns a device code, with which the device polls `/oauth/device/token`, and a \
                 user code, which a person enters on the verification page. Both are valid for 10 \
                 minutes. Each call creates a new authorization.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::OAuth)
            .takes_forms()
            .refuses(&[Code::InvalidClient])
            .writes(with(iam, request)),
        post("/oauth/device/authorize", "decideAboutDevice")
            .summary("Approves or denies the device with a user code.")
            .description(
                "An approved device signs in as the user of the session and acts for the \
                 session's active organization. Repeating the same decision has no effect; the \
                 opposite decision is refused. Sessions of programs cannot decide. Wrong codes \
                 are counted per session and client, by default at most 5 in 10 minutes.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::OAuth)
            .takes_forms()
            .refuses(&[
                Code::NotFound,
                Code::ExpiredToken,
                Code::InvalidState,
                Code::Forbidden,
                Code::AccessDenied,
            ])
            .plain(with(iam, decide)),
    ]
}

/// The client that starts the device login.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DeviceCodeRequest {
    /// The id of the client: `core-cli`.
    #[schemars(length(max = 255))]
    client_id: String,
}

/// The codes of a device login.
#[derive(Clone, Serialize, JsonSchema)]
struct DeviceCodeResponse {
    /// The secret code with which the device polls for its tokens.
    device_code: String,
    /// The code that the person enters, as `XXXX-XXXX`.
    user_code: String,
    /// The page on which the person enters the code.
    verification_uri: String,
    /// The same page with the code filled in.
    verification_uri_complete: String,
    /// The lifetime of the codes, in seconds.
    expires_in: u64,
    /// The minimum time between two polls, in seconds.
    interval: i64,
}

impl DeviceCodeResponse {
    fn new(base_url: &str, codes: DeviceCodes) -> Self {
        let device = &codes.authorization;
        let page = format!("{base_url}/device");
        let code = device.user_code.as_text();
        Self {
            user_code: code.to_owned(),
            verification_uri_complete: format!("{page}?user_code={code}"),
            verification_uri: page,
            expires_in: device.expires_at.since(device.created_at).as_secs(),
            interval: device.interval,
            device_code: codes.device_code,
        }
    }
}

async fn request(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeviceCodeRequest>,
) -> Result<Output<DeviceCodeResponse>> {
    let client = client(&input.body.client_id)?;
    let codes = oauth::request(cx, &scope, uow, client).await?;
    let answer = DeviceCodeResponse::new(&iam.base_url, codes);
    Ok(no_store(Output::new(answer)))
}

/// The decision about a device.
#[derive(Clone, Deserialize, JsonSchema)]
struct DecideAboutDevice {
    /// The code that the device shows. Case, spaces and dashes are ignored.
    #[schemars(length(min = 1, max = 64), example = "BCDF-GHJK")]
    user_code: String,
    /// Approves or denies the device. Default: `approve`.
    action: Option<DeviceDecision>,
}

/// The response to a decision.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct DecisionAccepted {
    /// Always `true` in this response.
    ok: bool,
}

async fn decide(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), DecideAboutDevice>,
) -> Result<Output<DecisionAccepted>> {
    let body = input.body;
    let decision = body.action.unwrap_or(DeviceDecision::Approve);
    decide_by_user_code(cx, &iam, &scope, &body.user_code, decision).await?;
    Ok(no_store(Output::new(DecisionAccepted { ok: true })))
}

/// Approves or denies the device with a user code.
pub(crate) async fn decide_by_user_code(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    code: &str,
    decision: DeviceDecision,
) -> Result<()> {
    let decided = async |code: UserCode| {
        let code = &code;
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(oauth::decide(cx, scope, uow, code, decision))
        })
        .await
    };
    with_counted_code(cx, iam, scope, code, decided).await
}

/// Returns the device with a user code if it waits for a decision.
pub(crate) async fn find_pending(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    code: &str,
) -> Result<Stored<DeviceAuthorization>> {
    let found = async |code: UserCode| {
        let mut uow = cx.app.store.begin(Mode::Read).await?;
        let found = oauth::pending(scope, uow.as_mut(), &code).await;
        uow.rollback().await;
        found
    };
    with_counted_code(cx, iam, scope, code, found).await
}

/// Runs an operation with an entered user code. A code that does not exist is counted as wrong.
async fn with_counted_code<T, F>(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    code: &str,
    with_code: impl FnOnce(UserCode) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let ip = cx.request.ip.as_deref();
    let attempt = iam.wrong_user_codes.begin(scope.session_id(), ip).await?;
    let outcome = match UserCode::parse(code) {
        Some(code) => with_code(code).await,
        None => Err(Error::NotFound(DeviceAuthorization::KIND)),
    };
    if !matches!(outcome, Err(Error::NotFound(_))) {
        iam.wrong_user_codes.record_success(&attempt).await;
    }
    outcome
}
