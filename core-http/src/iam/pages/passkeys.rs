//! Passkeys on the pages: the sign-in button and the section of the account page. Using and adding a passkey needs the
//! script; listing, renaming and removing do not.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_person};
use core_domain::iam::{Passkey, User};
use core_domain::kernel::{Line, PasskeyId, Result, Stored};
use core_domain::port::transact;
use core_domain::use_case::iam::passkey;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::hidden_field;
use super::layout::moment;
use super::next::{CONFIRM, back_to_account};
use super::row::form;
use super::script;
use crate::iam::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, PageOr, post, with};

const RENAME: &str = "/account/rename-passkey";
const REMOVE: &str = "/account/remove-passkey";

/// Path prefix of the passkey routes.
const API: &str = "/api/auth/passkey";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        form(post(RENAME, "renamePasskeyByForm"))
            .summary("Renames one of the caller's passkeys.")
            .description(
                "Redirects to the account page. A passkey that no longer exists is ignored.",
            )
            .plain(with(iam, rename)),
        form(post(REMOVE, "removePasskeyByForm"))
            .summary("Removes one of the caller's passkeys.")
            .description(
                "The passkey can no longer sign in, and the owner is informed by mail. Without a \
                 proof of identity from the last 10 minutes, the browser is redirected to the \
                 page that asks for one. Otherwise it is redirected to the account page.",
            )
            .plain(with(iam, remove)),
    ]
}

/// Renders the button that uses a passkey and then redirects to `next`. Renders nothing if passkeys are disabled.
pub(super) fn passkey_button(iam: &Iam, next: &str, button: &str) -> Markup {
    html! {
        @if iam.passkeys().is_ok() {
            div.passkey hidden data-passkey="signIn" data-api=(iam.path(API)) data-next=(iam.path(next))
                data-confirm=(iam.path("/sign-in")) {
                p.alert role="alert" hidden {}
                button.quiet type="button" { (button) }
            }
            (script::element(iam))
        }
    }
}

/// Renders the same button on a page that asks for a passkey as a proof. If there is no other proof, it also explains
/// what to do if the button does not work.
pub(super) fn passkey_proof(iam: &Iam, next: &str, button: &str, has_other_way: bool) -> Markup {
    let is_possible = iam.passkeys().is_ok();
    html! {
        (passkey_button(iam, next, button))
        @if !has_other_way && is_possible {
            noscript { p { "Turn on script for this page: passkeys need it." } }
        } @else if !has_other_way {
            p { "Passkeys do not work here any more. Ask whoever runs the platform to remove yours." }
        }
    }
}

/// Renders the person's passkeys. Renders nothing if passkeys are disabled and there are none.
pub(super) fn section(iam: &Iam, person: &User, passkeys: &[Stored<Passkey>]) -> Markup {
    let possible = iam.passkeys().is_ok();
    html! {
        @if possible || !passkeys.is_empty() {
            section aria-labelledby="passkeys" {
                h2 id="passkeys" { "Passkeys" }
                p.hint { "A passkey signs you in with your fingerprint, your face or the PIN of your device." }
                @if passkeys.is_empty() {
                    p { "You have no passkeys." }
                } @else {
                    ul.sessions {
                        @for passkey in passkeys { li { (entry(iam, passkey)) } }
                    }
                }
                @if possible && person.email_verified {
                    (adding(iam))
                } @else if possible {
                    p { "Confirm your address to add a passkey." }
                }
            }
        }
    }
}

fn adding(iam: &Iam) -> Markup {
    html! {
        div.passkey hidden data-passkey="add" data-api=(iam.path(API))
            data-next=(iam.path("/account?notice=passkey-added")) data-confirm=(iam.path(CONFIRM)) {
            p.alert role="alert" hidden {}
            div.field {
                label for="passkey-name" { "Name of the new passkey" }
                input id="passkey-name" type="text" maxlength="255" autocomplete="off" placeholder="My phone";
            }
            button.quiet type="button" { "Add a passkey" }
        }
        (script::element(iam))
    }
}

fn entry(iam: &Iam, passkey: &Passkey) -> Markup {
    let name = passkey.name.as_ref().map_or("Passkey", Line::as_str);
    let field = format!("name-{}", passkey.id);
    html! {
        div {
            h3 { (name) @if passkey.backed_up { " " span.badge { "Synced" } } }
            p.hint {
                "Added " (moment(passkey.created_at))
                @if let Some(at) = passkey.last_used_at { ", last used " (moment(at)) }
            }
            details {
                summary { "Rename" span.only-read { ": " (name) } }
                form method="post" action=(iam.path(RENAME)) {
                    (hidden_field("passkey", passkey.id.as_str()))
                    div.field {
                        label for=(field) { "New name" }
                        input id=(field) name="name" type="text" value=(name) maxlength="255" autocomplete="off" required;
                    }
                    button.quiet type="submit" { "Rename" }
                }
            }
        }
        form method="post" action=(iam.path(REMOVE)) {
            (hidden_field("passkey", passkey.id.as_str()))
            button.quiet type="submit" aria-label=(format!("Remove passkey: {name}")) { "Remove" }
        }
    }
}

/// The fields of the form that renames a passkey.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct RenameForm {
    /// The id of the passkey.
    passkey: PasskeyId,
    /// The new name, 1 to 255 characters.
    name: Line<1, 255>,
}

async fn rename(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), RenameForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let outcome = async {
        let scope = authorize_person(cx)?;
        let (scope, body) = (&scope, &input.body);
        let renamed = transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(passkey::rename(
                cx,
                scope,
                uow,
                &body.passkey,
                body.name.clone(),
            ))
        });
        renamed.await.map(drop)
    };
    back_to_account(&iam, outcome.await, "passkey-renamed")
}

/// The fields of the form that removes a passkey.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct RemoveForm {
    /// The id of the passkey.
    passkey: PasskeyId,
}

async fn remove(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), RemoveForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let outcome = async {
        let scope = authorize_person(cx)?;
        let (scope, id, notices) = (&scope, &input.body.passkey, iam.notices(cx));
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(passkey::remove(cx, scope, uow, id, notices))
        })
        .await
    };
    back_to_account(&iam, outcome.await, "passkey-removed")
}
