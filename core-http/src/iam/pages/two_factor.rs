//! The page that asks for the second factor of a sign-in.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::ProofMethod;
use core_domain::kernel::{Code, Error, Line, Result};
use core_domain::port::Mode;
use core_domain::use_case::iam::session::challenge_methods;
use core_domain::use_case::iam::two_factor::SecondFactorCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::next::{NextQuery, next_path, with_next};
use super::passkeys;
use super::row::{form, page};
use crate::iam::config::Iam;
use crate::iam::target::Target;
use crate::iam::two_factor;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

/// Path of the page.
pub(super) const PATH: &str = "/two-factor";

const TITLE: &str = "Second factor";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "twoFactorPage"))
            .summary("Asks for the second factor of a sign-in.")
            .description(
                "Shows the second factors with which the waiting sign-in can be completed. \
                 Redirects to the sign-in page if no sign-in waits.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "showSecondFactorByForm"))
            .summary("Completes a sign-in with a code of the second factor.")
            .description(
                "Accepts a code of the authenticator or a recovery code, starts the session and \
                 redirects to `next`. With `trust`, the device becomes trusted: the password \
                 alone signs in on it for 30 days. Wrong codes are counted and delay further \
                 attempts.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::InvalidCode,
                Code::InvalidBackupCode,
                Code::BannedUser,
            ])
            .plain(with(iam, complete)),
    ]
}

/// The field for a code.
pub(super) const CODE: Field<'static> = Field {
    name: "code",
    label: "Code",
    kind: "text",
    autocomplete: "one-time-code",
    value: "",
    hint: Some("The six digits that your authenticator shows, or one of your recovery codes."),
    required: true,
};

/// Removes white space from an entered code, because authenticators show codes in groups.
pub(super) fn without_spaces(entered: &str) -> String {
    entered.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the kind of a code: six digits are a code of an authenticator, everything else is a recovery code.
pub(super) fn proof(code: &str) -> SecondFactorCode<'_> {
    let digits = code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit());
    if digits {
        SecondFactorCode::Totp(code)
    } else {
        SecondFactorCode::RecoveryCode(code)
    }
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), NextQuery>,
) -> Result<PageOr> {
    let next = next_path(input.query.next.as_deref())?;
    let Some(methods) = methods(cx, &iam, &scope).await? else {
        return Ok(layout::redirect(
            &iam,
            &with_next("/sign-in?restart=true", next),
        ));
    };
    let content = content(&iam, next, &methods, &FormErrors::none());
    let page = layout::page(&iam, TITLE, &content);
    Ok(layout::with_script(&iam, page))
}

/// Returns the second factors with which the sign-in of the request can be completed; `None` if no sign-in waits for
/// one.
async fn methods(cx: &Cx, iam: &Iam, scope: &PublicScope) -> Result<Option<Vec<ProofMethod>>> {
    let Some(token) = iam.challenge_token(&cx.headers) else {
        return Ok(None);
    };
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let methods = challenge_methods(scope, uow.as_mut(), &token).await;
    uow.rollback().await;
    match methods {
        Err(error) if error.code() == Code::InvalidTwoFactorCookie => Ok(None),
        methods => methods.map(Some),
    }
}

fn content(iam: &Iam, next: &str, methods: &[ProofMethod], errors: &FormErrors) -> Markup {
    let takes_codes = methods.contains(&ProofMethod::Totp);
    html! {
        @if takes_codes {
            form method="post" action=(iam.path(PATH)) {
                (errors.show())
                (hidden_field("next", next))
                (CODE.show(errors))
                div.choice {
                    input id="trust" name="trust" type="checkbox" value="true";
                    label for="trust" { "Do not ask for a code on this device for 30 days" }
                }
                button type="submit" { "Sign in" }
            }
        }
        @if methods.contains(&ProofMethod::Passkey) {
            (passkeys::passkey_proof(iam, next, "Sign in with a passkey", takes_codes))
        }
        ul.ways {
            li { a href=(iam.path(&with_next("/sign-in?restart=true", next))) { "Start again" } }
        }
    }
}

/// The fields of the form with the code.
#[derive(Clone, Deserialize, JsonSchema)]
struct CodeForm {
    /// A code of the authenticator with six digits, or a recovery code.
    #[schemars(example = "123456")]
    code: Line<0, 64>,
    /// Makes the device trusted for 30 days. Browsers omit the field if the checkbox is not ticked.
    trust: Option<bool>,
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
}

async fn complete(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), CodeForm>,
) -> Result<PageOr> {
    let CodeForm { code, trust, next } = input.body;
    let trust = trust.unwrap_or(false);
    iam.ensure_trusted_form(cx)?;
    let next = next_path(next.as_deref())?;
    let again = || {
        Ok(layout::redirect(
            &iam,
            &with_next("/sign-in?restart=true", next),
        ))
    };
    let Some(token) = iam.challenge_token(&cx.headers) else {
        return again();
    };
    let code = without_spaces(code.as_str());
    let proof = proof(&code);
    match two_factor::complete_sign_in(cx, &iam, &scope, &token, proof, trust).await {
        Ok(done) => {
            let on = Output::new(iam.path(next));
            Ok(PageOr::To(two_factor::set_completed_cookies(
                cx, &iam, on, &done,
            )))
        }
        Err(error) if no_longer_waits(&error) => again(),
        Err(error) => {
            let errors = FormErrors::of(error)?;
            let methods = methods(cx, &iam, &scope).await?.unwrap_or_default();
            let content = content(&iam, next, &methods, &errors);
            let page = layout::error_page(&iam, TITLE, errors.status(), &content);
            Ok(layout::with_script(&iam, page))
        }
    }
}

/// Returns whether the sign-in no longer waits, or no longer accepts a code.
fn no_longer_waits(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::InvalidTwoFactorCookie | Code::TotpNotEnabled | Code::BackupCodesNotEnabled
    )
}
