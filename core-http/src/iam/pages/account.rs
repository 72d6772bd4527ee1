//! The account page: the profile, the passkeys and the sessions of a person. Each part is a section of its own.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope, authorize_person, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{Passkey, Session, User};
use core_domain::kernel::{Result, SessionId, Stored};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::{passkey, session, user};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::api_keys;
use super::form::hidden_field;
use super::layout;
use super::layout::moment;
use super::next::{ACCOUNT, back_to_account, sign_in_first};
use super::passkeys;
use super::row::{form, page};
use super::user_agent::program;
use crate::iam::config::{Iam, SECURITY_PAGE};
use crate::iam::email_verification::send_link;
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

const REVOKE: &str = "/account/revoke-session";
const REVOKE_OTHERS: &str = "/account/revoke-other-sessions";
const SEND_LINK: &str = "/account/confirm-address";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(ACCOUNT, "accountPage"))
            .summary("Shows the account page.")
            .description(
                "Shows the caller's profile, passkeys and sessions, with forms to change them. \
                 Redirects to the sign-in page without a session.",
            )
            .plain(with(iam, show)),
        form(post(SEND_LINK, "sendVerificationEmailByForm"))
            .summary("Sends the caller an email verification link.")
            .description(
                "Mails a verification link if the address is not verified yet, and redirects to \
                 the account page.",
            )
            .rate(RateClass::Strict)
            .plain(with(iam, send_confirmation)),
        form(post(REVOKE, "revokeSessionByForm"))
            .summary("Revokes one of the caller's sessions.")
            .description(
                "The session ends immediately; an unknown session changes nothing. Redirects to \
                 the account page.",
            )
            .plain(with(iam, revoke)),
        form(post(REVOKE_OTHERS, "revokeOtherSessionsByForm"))
            .summary("Revokes all other sessions of the caller.")
            .description(
                "Ends every session of the user except that of the browser, and removes all \
                 trusted devices. Redirects to the account page.",
            )
            .plain(with(iam, revoke_others)),
    ]
}

/// The confirmation that the page shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    SessionEnded,
    OthersEnded,
    Joined,
    Declined,
    PasskeyAdded,
    PasskeyRenamed,
    PasskeyRemoved,
    LinkSent,
}

impl Notice {
    const fn words(self) -> &'static str {
        match self {
            Self::SessionEnded => "The session was ended.",
            Self::OthersEnded => "All other sessions were ended.",
            Self::Joined => "You are a member of the organization now.",
            Self::Declined => "The invitation was declined.",
            Self::PasskeyAdded => "The passkey was added. You can sign in with it from now on.",
            Self::PasskeyRenamed => "The passkey was renamed.",
            Self::PasskeyRemoved => "The passkey was removed. Remove it from your device as well.",
            Self::LinkSent => {
                "A link is on its way to your address. Open it to confirm the address."
            }
        }
    }
}

/// The query of the page.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct AccountQuery {
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
}

/// The data that the page shows.
struct Account {
    person: Stored<User>,
    sessions: Vec<Stored<Session>>,
    passkeys: Vec<Stored<Passkey>>,
    own: SessionId,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), AccountQuery>,
) -> Result<PageOr> {
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, ACCOUNT));
    };
    let account = &account(cx, &session).await?;
    let content = html! {
        @if let Some(notice) = input.query.notice { (layout::notice(notice.words())) }
        (who(&iam, &account.person))
        (passkeys::section(&iam, &account.person, &account.passkeys))
        (sessions(&iam, account))
        section aria-labelledby="security" {
            h2 id="security" { "Security" }
            p { a href=(iam.path(SECURITY_PAGE)) { "Review everything with access to your account" } }
        }
        section aria-labelledby="api-keys" {
            h2 id="api-keys" { "API keys" }
            p { a href=(iam.path(api_keys::PATH)) { "Keys of your programs" } }
        }
    };
    let page = layout::page(&iam, "Your account", &content);
    Ok(layout::with_script(&iam, page))
}

async fn account(cx: &Cx, own: &SessionScope) -> Result<Account> {
    let scope = authorize_person(cx)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let person = user::get_profile(&scope.account(), uow.as_mut()).await;
    let sessions = session::list(&scope, uow.as_mut()).await;
    let passkeys = passkey::list(&scope, uow.as_mut()).await;
    uow.rollback().await;
    Ok(Account {
        person: person?,
        sessions: sessions?,
        passkeys: passkeys?,
        own: own.session_id().clone(),
    })
}

fn who(iam: &Iam, person: &User) -> Markup {
    html! {
        section aria-labelledby="who" {
            h2 id="who" { "Signed in as" }
            p {
                @if !person.name.as_str().is_empty() { strong { (person.name) } br; }
                (person.email)
            }
            @if !person.email_verified {
                p { "This address is not confirmed." }
                form method="post" action=(iam.path(SEND_LINK)) {
                    button.quiet type="submit" { "Send a link that confirms it" }
                }
            }
            form method="post" action=(iam.path("/sign-out")) {
                button.quiet type="submit" { "Sign out" }
            }
        }
    }
}

fn sessions(iam: &Iam, account: &Account) -> Markup {
    let (own, others): (Vec<_>, Vec<_>) = account
        .sessions
        .iter()
        .partition(|session| session.id == account.own);
    html! {
        section aria-labelledby="sessions" {
            h2 id="sessions" { "Sessions and devices" }
            ul.sessions {
                @for session in own.iter().chain(&others) {
                    li { (entry(iam, session, session.id == account.own)) }
                }
            }
            @if !others.is_empty() {
                form method="post" action=(iam.path(REVOKE_OTHERS)) {
                    button.quiet type="submit" { "End all other sessions" }
                }
            }
        }
    }
}

fn entry(iam: &Iam, session: &Session, is_own: bool) -> Markup {
    let name = name_of(session);
    html! {
        div {
            h3 { (name) @if is_own { " " span.badge { "This session" } } }
            p.hint {
                "Signed in " (moment(session.created_at))
                @if let Some(address) = &session.ip_address { " from " (address) }
                ", valid until " (moment(session.expires_at))
            }
        }
        @if !is_own {
            form method="post" action=(iam.path(REVOKE)) {
                (hidden_field("session", session.id.as_str()))
                button.quiet type="submit" aria-label=(format!("End session: {name}")) { "End" }
            }
        }
    }
}

/// Returns the name of a session for people.
pub(super) fn name_of(session: &Session) -> String {
    let program = program(session.user_agent.as_deref());
    match session.client_id {
        Some(client) => format!("Device: {client} ({program})"),
        None => program,
    }
}

async fn send_confirmation(cx: &Cx, iam: Arc<Iam>, scope: PublicScope, _: Input) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let outcome = async {
        let (iam, person) = (&iam, &authorize_person(cx)?);
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let email = user::get_profile(&person.account(), uow)
                    .await?
                    .email
                    .clone();
                send_link(cx, iam, &scope, uow, &email, Some(ACCOUNT)).await
            })
        })
        .await
    };
    back_to_account(&iam, outcome.await, "link-sent")
}

/// The fields of the form that revokes a session.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct RevokeForm {
    /// The id of the session.
    session: SessionId,
}

async fn revoke(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), RevokeForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let outcome = async {
        let scope = authorize_session(cx)?;
        let (scope, name) = (&scope, input.body.session.as_str());
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(session::revoke_by_token_or_id(cx, scope, uow, name))
        })
        .await
    };
    back_to_account(&iam, outcome.await, "session-ended")
}

async fn revoke_others(cx: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let outcome = async {
        let scope = authorize_session(cx)?;
        let scope = &scope;
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(session::revoke_all(cx, scope, uow, false))
        })
        .await
    };
    back_to_account(&iam, outcome.await, "others-ended")
}
