//! The page on which a person enters the code of a device and approves or denies the device.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{DeviceAuthorization, DeviceDecision};
use core_domain::kernel::{Code, Result, TextValue};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::{Field, hidden_field};
use super::form_errors::{FieldMessage, FormErrors};
use super::layout;
use super::layout::moment;
use super::next::sign_in_first;
use super::row::{form, page};
use super::user_agent::program;
use crate::iam::config::{Iam, with_parameters};
use crate::iam::oauth::{decide_by_user_code, find_pending};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

const PATH: &str = "/device";
const TITLE: &str = "Sign in on a device";
const USER_CODE: &str = "user_code";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "devicePage"))
            .summary("Shows the page that approves a device.")
            .description(
                "Without `user_code` the page asks for the code. With it the page shows the \
                 device and asks for the decision. Redirects to the sign-in page without a \
                 session. Wrong codes are counted and limited.",
            )
            .refuses(&[
                Code::Forbidden,
                Code::NotFound,
                Code::ExpiredToken,
                Code::AccessDenied,
            ])
            .plain(with(iam, show)),
        form(post(PATH, "decideAboutDeviceByForm"))
            .summary("Approves or denies the device with a user code.")
            .description(
                "An approved device signs in as the caller and acts for the session's active \
                 organization. Redirects to a page that shows the decision. Wrong codes are \
                 counted and limited.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::Forbidden,
                Code::NotFound,
                Code::ExpiredToken,
                Code::InvalidState,
                Code::AccessDenied,
            ])
            .plain(with(iam, decide)),
        page(get("/device/approved", "deviceApprovedPage"))
            .summary("Shows that a device was approved.")
            .description("A static page; it changes nothing.")
            .plain(with(iam, approved_page)),
        page(get("/device/denied", "deviceDeniedPage"))
            .summary("Shows that a device was denied.")
            .description("A static page; it changes nothing.")
            .plain(with(iam, denied_page)),
    ]
}

fn words(code: Code) -> Option<FieldMessage> {
    Some(match code {
        Code::NotFound => (
            Some(USER_CODE),
            "This code does not exist. Check the code on your device.",
        ),
        Code::ExpiredToken => (
            Some(USER_CODE),
            "This code has expired. Start again on your device to get a new one.",
        ),
        Code::Forbidden => (
            None,
            "A program cannot approve a device. Sign in with your own account.",
        ),
        _ => return None,
    })
}

/// The query of the page.
#[derive(Clone, Deserialize, JsonSchema)]
struct DeviceQuery {
    /// The code that the device shows. Case, spaces and dashes are ignored. Default: none.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^[^\u0000]*$"),
        example = "BCDF-GHJK"
    )]
    user_code: Option<String>,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), DeviceQuery>,
) -> Result<PageOr> {
    let code = input.query.user_code.unwrap_or_default();
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, &own_path(&code)));
    };
    if code.is_empty() {
        let content = code_content(&iam, "", &FormErrors::none());
        return Ok(layout::page(&iam, TITLE, &content));
    }
    match find_pending(cx, &iam, &session, &code).await {
        Ok(device) => Ok(layout::page(&iam, TITLE, &device_content(&iam, &device))),
        Err(error) => {
            let errors = FormErrors::on_page(error, words)?;
            let content = code_content(&iam, &code, &errors);
            Ok(layout::error_page(&iam, TITLE, errors.status(), &content))
        }
    }
}

fn own_path(code: &str) -> String {
    if code.is_empty() {
        return PATH.to_owned();
    }
    with_parameters(PATH.to_owned(), &[(USER_CODE, code)])
}

fn code_content(iam: &Iam, entered: &str, errors: &FormErrors) -> Markup {
    let code = Field {
        name: USER_CODE,
        label: "Code",
        kind: "text",
        autocomplete: "one-time-code",
        value: entered,
        hint: Some("The eight letters that your device shows, such as BCDF-GHJK."),
        required: true,
    };
    html! {
        form method="get" action=(iam.path(PATH)) {
            (errors.show())
            (code.show(errors))
            button type="submit" { "Continue" }
        }
    }
}

fn device_content(iam: &Iam, device: &DeviceAuthorization) -> Markup {
    html! {
        p { strong { (device.client_id) } " wants to sign in as you." }
        dl {
            dt { "Code" }
            dd { code { (device.user_code.as_text()) } }
            dt { "Program" }
            dd { (program(device.user_agent.as_deref())) }
            @if let Some(address) = &device.ip_address {
                dt { "Address" }
                dd { (address) }
            }
            dt { "Requested" }
            dd { (moment(device.created_at)) }
        }
        p { "Approve only a sign-in that you started yourself, and only if the device shows this code. If another person sent you here, deny it." }
        form method="post" action=(iam.path(PATH)) {
            (hidden_field(USER_CODE, device.user_code.as_text()))
            div.actions {
                button type="submit" name="action" value="approve" { "Approve" }
                button.quiet type="submit" name="action" value="deny" { "Deny" }
            }
        }
    }
}

/// The fields of the form with the decision.
#[derive(Clone, Deserialize, JsonSchema)]
struct DecisionForm {
    /// The code that the device shows. Case, spaces and dashes are ignored.
    #[schemars(length(min = 1, max = 64), example = "BCDF-GHJK")]
    user_code: String,
    /// Approves or denies the device.
    action: DeviceDecision,
}

async fn decide(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), DecisionForm>,
) -> Result<PageOr> {
    let DecisionForm { user_code, action } = input.body;
    iam.ensure_trusted_form(cx)?;
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, &own_path(&user_code)));
    };
    if let Err(error) = decide_by_user_code(cx, &iam, &session, &user_code, action).await {
        let errors = FormErrors::on_page(error, words)?;
        let content = code_content(&iam, &user_code, &errors);
        return Ok(layout::error_page(&iam, TITLE, errors.status(), &content));
    }
    Ok(layout::redirect(
        &iam,
        match action {
            DeviceDecision::Approve => "/device/approved",
            DeviceDecision::Deny => "/device/denied",
        },
    ))
}

async fn approved_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "Your device can sign in now. Go back to it; you can close this page." }
        p { a href=(iam.path("/account")) { "Your sessions and devices" } }
    };
    Ok(layout::page(&iam, "Device approved", &content))
}

async fn denied_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "The device cannot sign in. If you did not start this sign-in, there is nothing more to do." }
        p { a href=(iam.path("/account")) { "Your sessions and devices" } }
    };
    Ok(layout::page(&iam, "Device denied", &content))
}
