//! The page on which people prove their identity again, before actions that need a fresh proof.

use std::sync::Arc;

use core_domain::access::{
    PublicScope, SessionScope, authorize_person, authorize_session, missing_proof, proof_methods,
};
use core_domain::gateway::RateClass;
use core_domain::iam::ProofMethod;
use core_domain::kernel::{Code, Line, Result};
use core_domain::port::Mode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::MAX_PASSWORD_TEXT;
use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::next::{ACCOUNT, CONFIRM, NextQuery, next_path, sign_in_first};
use super::passkeys;
use super::row::{form, page};
use super::two_factor::{CODE, proof, without_spaces};
use crate::iam::config::Iam;
use crate::iam::target::Target;
use crate::iam::{password, two_factor};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

const TITLE: &str = "Confirm that it is you";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(CONFIRM, "confirmPage"))
            .summary("Asks for a fresh proof of identity.")
            .description(
                "Shows the proofs that the caller can give: a password, a code of the second \
                 factor, a passkey or a new sign-in. Redirects to the sign-in page without a \
                 session.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(CONFIRM, "confirmByForm"))
            .summary("Confirms the caller's identity with a password or a code.")
            .description(
                "Records the fresh proof, which is valid for 10 minutes, and redirects to `next`. \
                 A wrong password or code is counted, and the page is shown again with the error.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::InvalidPassword,
                Code::InvalidCode,
                Code::InvalidBackupCode,
                Code::TotpNotEnabled,
                Code::BackupCodesNotEnabled,
            ])
            .plain(with(iam, confirm)),
    ]
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), NextQuery>,
) -> Result<PageOr> {
    let next = next_path(input.query.next.as_deref())?;
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, next));
    }
    let content = content(&iam, next, &methods(cx).await?, &FormErrors::none());
    let page = layout::page(&iam, TITLE, &content);
    Ok(layout::with_script(&iam, page))
}

async fn methods(cx: &Cx) -> Result<Vec<ProofMethod>> {
    let person = authorize_person(cx)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let methods = proof_methods(&person, uow.as_mut()).await;
    uow.rollback().await;
    methods
}

/// Returns whether the caller must give a fresh proof of identity before an action that needs one.
pub(super) async fn needs_fresh_proof(cx: &Cx) -> Result<bool> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let missing = missing_proof(cx, uow.as_mut()).await;
    uow.rollback().await;
    Ok(missing?.is_some())
}

fn content(iam: &Iam, next: &str, methods: &[ProofMethod], errors: &FormErrors) -> Markup {
    let field = methods.iter().find_map(|method| match method {
        ProofMethod::Password => Some(Field::password("Password", "current-password")),
        ProofMethod::Totp | ProofMethod::BackupCode => Some(CODE),
        ProofMethod::Passkey | ProofMethod::SignIn => None,
    });
    html! {
        p { "The next step cannot be undone, or it gives access to your account. Confirm your identity to continue." }
        @if let Some(field) = field {
            form method="post" action=(iam.path(CONFIRM)) {
                (errors.show())
                (hidden_field("next", next))
                (field.show(errors))
                button type="submit" { "Confirm" }
            }
        }
        @if methods.contains(&ProofMethod::SignIn) {
            (sign_in_again(iam, next))
        }
        @if methods.contains(&ProofMethod::Passkey) {
            (passkeys::passkey_proof(iam, next, "Confirm with a passkey", field.is_some()))
        }
        ul.ways {
            li { a href=(iam.path(ACCOUNT)) { "Back to your account" } }
        }
    }
}

fn sign_in_again(iam: &Iam, next: &str) -> Markup {
    html! {
        form method="post" action=(iam.path("/sign-out")) {
            (hidden_field("next", next))
            button type="submit" { "Sign in again" }
        }
    }
}

/// The fields of the form: either a password or a code.
#[derive(Clone, Deserialize, JsonSchema)]
struct ConfirmForm {
    /// The current password of the caller.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: Option<String>,
    /// A code of the authenticator with six digits, or a recovery code.
    code: Option<Line<0, 64>>,
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
}

async fn confirm(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), ConfirmForm>,
) -> Result<PageOr> {
    let form = input.body;
    iam.ensure_trusted_form(cx)?;
    let next = next_path(form.next.as_deref())?;
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, next));
    };
    let Err(error) = confirm_identity(cx, &iam, &session, &form).await else {
        return Ok(layout::redirect(&iam, next));
    };
    let errors = FormErrors::of(error)?;
    let content = content(&iam, next, &methods(cx).await?, &errors);
    let page = layout::error_page(&iam, TITLE, errors.status(), &content);
    Ok(layout::with_script(&iam, page))
}

async fn confirm_identity(
    cx: &Cx,
    iam: &Iam,
    session: &SessionScope,
    form: &ConfirmForm,
) -> Result<()> {
    if let (None, Some(code)) = (&form.password, &form.code) {
        let code = without_spaces(code.as_str());
        two_factor::reauthenticate(cx, iam, session, proof(&code)).await?;
        return Ok(());
    }
    let entered = form.password.as_deref().unwrap_or_default();
    password::reauthenticate(cx, iam, session, entered).await
}
