//! The page that lists everything with access to a person's account, with a form to end it. Mails about changes of the
//! account link to it.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_person, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{ApiKey, DeviceAuthorization, Passkey, Session, TrustedDevice};
use core_domain::kernel::{
    ApiKeyId, Code, DeviceAuthorizationId, Error, Line, PasskeyId, Result, SessionId, Timestamp,
};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::own_access::{self, AccessItem, AccessSelection, OwnAccess};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::account::name_of;
use super::confirm;
use super::layout::{self, day, moment};
use super::next::{ACCOUNT, CONFIRM, confirm_first, sign_in_first, with_next};
use super::row::{form, page};
use super::user_agent::program;
use crate::iam::config::{Iam, SECURITY_PAGE as PATH};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

const TITLE: &str = "Access to your account";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "securityPage"))
            .summary("Shows everything with access to the caller's account.")
            .description(
                "Lists sessions, devices, API keys, passkeys and the authenticator. Redirects to \
                 the sign-in page without a session.",
            )
            .plain(with(iam, show)),
        form(post(PATH, "endAccessByForm"))
            .summary("Ends selected access to the caller's account.")
            .description(
                "Ends the selected items; items that no longer exist are ignored. With \
                 `everything`, ends all access except the session of the browser and the \
                 authenticator. Removed passkeys and authenticators are reported to the owner by \
                 mail. Without a proof of identity from the last 10 minutes, the browser is \
                 redirected to the page that asks for one.",
            )
            .rate(RateClass::Strict)
            .plain(with(iam, end)),
    ]
}

/// The confirmation that the page shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    Ended,
}

/// The query of the page.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct SecurityQuery {
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
}

/// The data that the page shows.
struct PageData {
    access: OwnAccess,
    own: SessionId,
    /// Whether the person must give a fresh proof of identity before ending anything.
    confirms_first: bool,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), SecurityQuery>,
) -> Result<PageOr> {
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, PATH));
    };
    let shown = &PageData {
        access: load(cx).await?,
        own: session.session_id().clone(),
        confirms_first: confirm::needs_fresh_proof(cx).await?,
    };
    let content = html! {
        @if let Some(Notice::Ended) = input.query.notice {
            (layout::notice("The selected access was ended."))
        }
        (content(&iam, shown))
    };
    Ok(layout::page(&iam, TITLE, &content))
}

async fn load(cx: &Cx) -> Result<OwnAccess> {
    let person = authorize_person(cx)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let access = own_access::list(&person, uow.as_mut()).await;
    uow.rollback().await;
    access
}

fn content(iam: &Iam, shown: &PageData) -> Markup {
    html! {
        p { "If you do not recognize something here, end it and " a href=(iam.path("/reset-password")) { "set a new password" } "." }
        @if shown.confirms_first {
            p { a href=(iam.path(&with_next(CONFIRM, PATH))) { "Confirm that it is you" } " to end something." }
            (sections(shown))
        } @else {
            form method="post" action=(iam.path(PATH)) {
                (sections(shown))
                div.actions { button type="submit" { "End the selected access" } }
            }
            form method="post" action=(iam.path(PATH)) {
                p.hint {
                    "Ends all other sessions, and removes all devices, API keys and passkeys. Your authenticator is kept."
                }
                button.quiet type="submit" name="everything" value="true" { "End everything but this session" }
            }
        }
        ul.ways {
            li { a href=(iam.path(ACCOUNT)) { "Back to your account" } }
        }
    }
}

fn sections(shown: &PageData) -> Markup {
    let OwnAccess {
        sessions,
        approved_devices,
        trusted_devices,
        api_keys,
        passkeys,
        has_authenticator,
    } = &shown.access;
    let can_end = !shown.confirms_first;
    let other = |session: &Session| can_end && session.id != shown.own;
    html! {
        (section("sessions", "Browsers and programs", "No sessions.", sessions.iter().map(|session| {
            entry(other(session), &AccessItem::Session(session.id.clone()), &of_session(session, &shown.own))
        })))
        @if !approved_devices.is_empty() {
            (section("approved", "Devices that you approved and that have not signed in yet", "", approved_devices.iter().map(|device| {
                entry(can_end, &AccessItem::ApprovedDevice(device.id.clone()), &of_device(device))
            })))
        }
        (section("trusted", "Devices that are not asked for a second factor", "None.", trusted_devices.iter().map(|device| {
            entry(can_end, &AccessItem::TrustedDevice(device.created_at), &of_trusted(device))
        })))
        (section("keys", "API keys", "None.", api_keys.iter().map(|key| {
            entry(can_end, &AccessItem::ApiKey(key.id.clone()), &of_key(key))
        })))
        (section("passkeys", "Passkeys", "None.", passkeys.iter().map(|passkey| {
            entry(can_end, &AccessItem::Passkey(passkey.id.clone()), &of_passkey(passkey))
        })))
        (section("authenticator", "Authenticator", "None. Signing in does not ask for a code.", has_authenticator.then(|| {
            entry(can_end, &AccessItem::Authenticator, &of_authenticator())
        }).into_iter()))
    }
}

fn section(
    id: &str,
    title: &str,
    without: &str,
    entries: impl ExactSizeIterator<Item = Markup>,
) -> Markup {
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            @if entries.len() == 0 { p { (without) } }
            ul.sessions { @for entry in entries { li { (entry) } } }
        }
    }
}

/// The name and the description of an item.
struct Words {
    name: Markup,
    about: Markup,
}

/// Renders an item, with a checkbox if it can be ended.
fn entry(can_end: bool, item: &AccessItem, words: &Words) -> Markup {
    let value = item_text(item);
    let about = format!("about-{value}");
    html! {
        @if can_end {
            div.choice {
                input id=(value) name="item" type="checkbox" value=(value) aria-describedby=(about);
                div { label for=(value) { (words.name) } p.hint id=(about) { (words.about) } }
            }
        } @else {
            div { h3 { (words.name) } p.hint { (words.about) } }
        }
    }
}

fn of_session(session: &Session, own: &SessionId) -> Words {
    Words {
        name: html! { (name_of(session)) @if session.id == *own { " " span.badge { "This session" } } },
        about: html! {
            "Signed in " (moment(session.created_at)) (from(session.ip_address.as_deref()))
            ", last used about " (day(session.extended_at))
        },
    }
}

fn of_device(device: &DeviceAuthorization) -> Words {
    Words {
        name: html! { (device.client_id) " (" (program(device.user_agent.as_deref())) ")" },
        about: html! {
            "Requested " (moment(device.created_at)) (from(device.ip_address.as_deref())) ", approved by you, not signed in yet"
        },
    }
}

fn of_trusted(device: &TrustedDevice) -> Words {
    Words {
        name: html! { (program(device.user_agent.as_deref())) },
        about: html! {
            "Since " (moment(device.created_at)) (from(device.ip_address.as_deref()))
            ", until " (moment(device.expires_at)) ", extended by each sign-in"
        },
    }
}

fn of_key(key: &ApiKey) -> Words {
    let name = key.name.as_ref().map_or("Key without a name", Line::as_str);
    Words {
        name: html! { (name) " " code { (key.start) "\u{2026}" } },
        about: html! { "Created " (moment(key.created_at)) (last_use(key.last_used_at)) },
    }
}

fn of_passkey(passkey: &Passkey) -> Words {
    let name = passkey.name.as_ref().map_or("Passkey", Line::as_str);
    Words {
        name: html! { (name) },
        about: html! { "Added " (moment(passkey.created_at)) (last_use(passkey.last_used_at)) },
    }
}

fn of_authenticator() -> Words {
    Words {
        name: html! { "Codes of your authenticator" },
        about: html! { "Without it, the password alone signs in. Its recovery codes are removed with it." },
    }
}

fn from(address: Option<&str>) -> Markup {
    html! { @if let Some(address) = address { " from " (address) } }
}

fn last_use(at: Option<Timestamp>) -> Markup {
    html! { @if let Some(at) = at { ", last used " (moment(at)) } @else { ", never used" } }
}

/// Returns the value of an item's checkbox.
fn item_text(item: &AccessItem) -> String {
    match item {
        AccessItem::Session(id) => format!("session:{id}"),
        AccessItem::ApprovedDevice(id) => format!("approved:{id}"),
        AccessItem::TrustedDevice(since) => format!("trusted:{}", since.to_rfc3339()),
        AccessItem::ApiKey(id) => format!("key:{id}"),
        AccessItem::Passkey(id) => format!("passkey:{id}"),
        AccessItem::Authenticator => "authenticator:".to_owned(),
    }
}

/// Parses a value that `item_text` wrote.
fn parse_item(text: &str) -> Result<AccessItem> {
    let parsed = text.split_once(':').and_then(|(kind, id)| {
        Some(match kind {
            "session" => AccessItem::Session(SessionId::parse(id)?),
            "approved" => AccessItem::ApprovedDevice(DeviceAuthorizationId::parse(id)?),
            "trusted" => AccessItem::TrustedDevice(Timestamp::parse_rfc3339(id)?),
            "key" => AccessItem::ApiKey(ApiKeyId::parse(id)?),
            "passkey" => AccessItem::Passkey(PasskeyId::parse(id)?),
            "authenticator" => AccessItem::Authenticator,
            _ => return None,
        })
    });
    parsed.ok_or_else(|| Error::invalid("item", "pattern", "is not a checkbox of the page"))
}

/// The fields of the form that ends access.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct EndAccessForm {
    /// The values of the ticked checkboxes.
    #[serde(default)]
    #[schemars(length(max = 1_000), example = [&"authenticator:"])]
    item: Vec<Line<1, 200>>,
    /// Ends everything except the session of the browser and the authenticator. Default: false.
    everything: Option<bool>,
}

async fn end(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), EndAccessForm>,
) -> Result<PageOr> {
    let EndAccessForm { item, everything } = input.body;
    iam.ensure_trusted_form(cx)?;
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, PATH));
    };
    let selection = &if everything.unwrap_or(false) {
        AccessSelection::Everything
    } else {
        let items = item.iter().map(|item| parse_item(item.as_str()));
        AccessSelection::Items(items.collect::<Result<_>>()?)
    };
    let (session, notices) = (&session, iam.notices(cx));
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(own_access::end_access(cx, session, uow, selection, notices))
    })
    .await;
    match outcome {
        Ok(()) => Ok(layout::redirect(&iam, "/account/security?notice=ended")),
        Err(Error::Unauthorized) => Ok(sign_in_first(&iam, PATH)),
        Err(error) if error.code() == Code::StepUpRequired => Ok(confirm_first(&iam, PATH)),
        Err(error) => Err(error),
    }
}
