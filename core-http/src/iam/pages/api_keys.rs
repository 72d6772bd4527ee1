//! The page of a person's own API keys: listing, creating and deleting them.

use std::sync::Arc;

use core_domain::access::{
    ApiKeyPurpose, NewApiKeyScope, PublicScope, authorize_api_key, authorize_new_api_key,
    authorize_person, authorize_session,
};
use core_domain::gateway::RateClass;
use core_domain::iam::{ApiKey, ApiKeyStatus, Organization};
use core_domain::kernel::{
    ApiKeyId, Code, Error, Line, OrganizationId, PermissionPattern, Record, Result, Stored,
    Timestamp,
};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::api_key::{self, IssuedApiKey, NewApiKey};
use core_domain::use_case::iam::organization::list_own_organizations;
use http::StatusCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::confirm;
use super::form::{Choice, Field, hidden_field};
use super::form_errors::{FieldMessage, FormErrors};
use super::layout;
use super::layout::moment;
use super::next::{ACCOUNT, CONFIRM, confirm_first, sign_in_first, with_next};
use super::row::{form, page};
use crate::iam::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

/// Path of the page.
pub(super) const PATH: &str = "/account/api-keys";

const DELETE: &str = "/account/api-keys/delete";
const TITLE: &str = "API keys";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "apiKeysPage"))
            .summary("Shows the caller's API keys.")
            .description(
                "Shows the keys and a form for a new one. Redirects to the sign-in page without a \
                 session.",
            )
            .plain(with(iam, show)),
        form(post(PATH, "createApiKeyByForm"))
            .summary("Creates an API key and shows its secret.")
            .description(
                "The secret is shown only on this page. Without a proof of identity from the last \
                 10 minutes, the browser is redirected to the page that asks for one. If the form \
                 is refused, the page is shown again with the error.",
            )
            .success(&[StatusCode::OK, StatusCode::SEE_OTHER])
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidNameLength,
                Code::PlatformSuspended,
                Code::NotFound,
                Code::Forbidden,
                Code::Conflict,
                Code::LimitReached,
            ])
            .plain(with(iam, create)),
        form(post(DELETE, "deleteApiKeyByForm"))
            .summary("Deletes one of the caller's API keys.")
            .description(
                "The key is rejected from the next request on. Redirects to the page of API keys.",
            )
            .refuses(&[Code::KeyNotFound, Code::Forbidden, Code::PlatformSuspended])
            .plain(with(iam, delete)),
    ]
}

/// The confirmation that the page shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    Deleted,
}

/// The query of the page.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
struct ApiKeysQuery {
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
}

/// The data that the page shows.
struct PageData {
    keys: Vec<Stored<ApiKey>>,
    organizations: Vec<Stored<Organization>>,
    /// Whether the person must give a fresh proof of identity before creating a key.
    confirms_first: bool,
    now: Timestamp,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), ApiKeysQuery>,
) -> Result<PageOr> {
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, PATH));
    }
    let shown = &load(cx).await?;
    let content = html! {
        @if let Some(Notice::Deleted) = input.query.notice {
            (layout::notice("The key was deleted. It can no longer be used."))
        }
        (content(&iam, shown, &FormValues::default(), &FormErrors::none()))
    };
    Ok(layout::page(&iam, TITLE, &content))
}

async fn load(cx: &Cx) -> Result<PageData> {
    let person = authorize_person(cx)?;
    let confirms_first = confirm::needs_fresh_proof(cx).await?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let keys = api_key::list_own(&person, uow.as_mut()).await;
    let organizations = list_own_organizations(&person, uow.as_mut()).await;
    uow.rollback().await;
    Ok(PageData {
        keys: keys?,
        organizations: organizations?,
        confirms_first,
        now: cx.app.clock.now(),
    })
}

/// The values that the form contains when it is shown.
#[derive(Default)]
struct FormValues {
    name: String,
    organization: Option<String>,
    access: Access,
    lifetime: Lifetime,
}

fn content(iam: &Iam, shown: &PageData, entered: &FormValues, errors: &FormErrors) -> Markup {
    html! {
        (errors.show())
        section aria-labelledby="keys" {
            h2 id="keys" { "Your keys" }
            p.hint { "A program with a key acts for you in one organization. A key for you alone can only read your profile and has no access to organizations." }
            @if shown.keys.is_empty() { p { "You have none." } }
            ul.sessions {
                @for key in &shown.keys { li { (entry(iam, shown, key)) } }
            }
        }
        (new_key(iam, shown, entered, errors))
        ul.ways {
            li { a href=(iam.path(ACCOUNT)) { "Back to your account" } }
        }
    }
}

fn entry(iam: &Iam, shown: &PageData, key: &ApiKey) -> Markup {
    let name = key.name.as_ref().map_or("Key without a name", Line::as_str);
    let organization = shown.organizations.iter();
    let organization = organization
        .filter(|organization| key.organization_id.as_ref() == Some(&organization.id))
        .map(|organization| organization.name.as_str())
        .next();
    let state = match key.status {
        _ if key.has_expired(shown.now) => Some("Expired"),
        ApiKeyStatus::Disabled => Some("Disabled"),
        _ => None,
    };
    html! {
        div {
            h3 { (name) @if let Some(state) = state { " " span.badge { (state) } } }
            p.hint {
                code { (key.start) "\u{2026}" }
                @if let Some(organization) = organization { " for " (organization) }
                @if key.organization_id.is_none() { " for you alone" }
                @if let Some(scopes) = &key.scopes {
                    ", may " (scopes.iter().map(PermissionPattern::as_str).collect::<Vec<_>>().join(", "))
                }
                ", made " (moment(key.created_at))
                @if let Some(used) = key.last_used_at { ", last used " (moment(used)) }
                @else { ", never used" }
                @if let Some(end) = key.expires_at { ", valid until " (moment(end)) }
            }
        }
        form method="post" action=(iam.path(DELETE)) {
            (hidden_field("key", key.id.as_str()))
            button.quiet type="submit" aria-label=(format!("Delete key: {name}")) { "Delete" }
        }
    }
}

fn new_key(iam: &Iam, shown: &PageData, entered: &FormValues, errors: &FormErrors) -> Markup {
    let with_platform = || {
        let organizations = shown.organizations.iter();
        organizations.filter(|organization| organization.platform_id.is_some())
    };
    let mut organizations: Vec<(&str, &str)> = with_platform()
        .map(|organization| (organization.id.as_str(), organization.name.as_str()))
        .collect();
    organizations.push(("", "None: for you alone"));
    let chosen = entered.organization.as_deref();
    html! {
        section aria-labelledby="new" {
            h2 id="new" { "New key" }
            @if shown.confirms_first {
                p { "Confirm your identity before you create a key." }
                p { a href=(iam.path(&with_next(CONFIRM, PATH))) { "Confirm that it is you" } }
            } @else {
                form method="post" action=(iam.path(PATH)) {
                    (Field {
                        name: "name",
                        label: "Name",
                        kind: "text",
                        autocomplete: "off",
                        value: &entered.name,
                        hint: Some("A name that tells you what the key is for, at most 32 characters."),
                        required: true,
                    }.show(errors))
                    (Choice {
                        name: "organization",
                        label: "Organization",
                        options: &organizations,
                        chosen,
                    }.show())
                    (Choice {
                        name: "access",
                        label: "Access",
                        options: &Access::OPTIONS,
                        chosen: Some(entered.access.value()),
                    }.show())
                    (Choice {
                        name: "lifetime",
                        label: "It works",
                        options: &Lifetime::OPTIONS,
                        chosen: Some(entered.lifetime.value()),
                    }.show())
                    button type="submit" { "Make the key" }
                }
            }
        }
    }
}

macro_rules! options {
    ($(#[$meta:meta])* $name:ident { $($(#[$default:ident])? $option:ident = $value:literal, $label:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
        enum $name {
            $($(#[$default])? #[serde(rename = $value)] $option,)+
        }

        impl $name {
            const OPTIONS: [(&'static str, &'static str); [$($value),+].len()] = [$(($value, $label)),+];

            const fn value(self) -> &'static str {
                match self {
                    $(Self::$option => $value,)+
                }
            }
        }
    };
}

options! {
    /// The access of a new key.
    Access {
        #[default] Reads = "reads", "Read everything that you can read";
        Everything = "everything", "Do everything that you can do";
    }
}

options! {
    /// The lifetime of a new key.
    Lifetime {
        Month = "30", "For 30 days";
        #[default] Quarter = "90", "For 90 days";
        Year = "365", "For a year";
        Unlimited = "unlimited", "Until you delete it";
    }
}

impl Access {
    fn scopes(self, maker: &NewApiKeyScope) -> Option<Vec<PermissionPattern>> {
        match self {
            // A personal key has no permissions that scopes could limit.
            Self::Reads if maker.organization().is_some() => {
                Some(maker.permissions_within("*:read"))
            }
            Self::Reads | Self::Everything => None,
        }
    }
}

impl Lifetime {
    const fn seconds(self) -> Option<i64> {
        const DAY: i64 = 24 * 60 * 60;
        match self {
            Self::Month => Some(30 * DAY),
            Self::Quarter => Some(90 * DAY),
            Self::Year => Some(365 * DAY),
            Self::Unlimited => None,
        }
    }
}

/// The fields of the form that creates a key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct NewKeyForm {
    /// The name of the key, 1 to 32 characters.
    #[schemars(example = &"CI")]
    name: Line<0, 255>,
    /// The organization that the key acts for; empty for a personal key.
    organization: Line<0, 64>,
    /// The permissions of the key.
    access: Access,
    /// The lifetime of the key: a number of days, or `unlimited`.
    lifetime: Lifetime,
}

impl NewKeyForm {
    /// Returns the selected organization. A text that is not a valid id is reported as an unknown organization.
    fn organization(&self) -> Result<Option<OrganizationId>> {
        match self.organization.as_str() {
            "" => Ok(None),
            id => OrganizationId::parse(id)
                .map(Some)
                .ok_or(Error::NotFound(Organization::KIND)),
        }
    }
}

async fn create(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), NewKeyForm>,
) -> Result<PageOr> {
    let form = input.body;
    iam.ensure_trusted_form(cx)?;
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, PATH));
    }
    let error = match create_key(cx, &form).await {
        Ok(issued) => return Ok(secret_page(&iam, &issued)),
        Err(error) => error,
    };
    if error.code() == Code::StepUpRequired {
        return Ok(confirm_first(&iam, PATH));
    }
    let errors = FormErrors::on_page(error, words)?;
    let entered = FormValues {
        name: form.name.as_str().to_owned(),
        organization: Some(form.organization.as_str().to_owned()),
        access: form.access,
        lifetime: form.lifetime,
    };
    let content = content(&iam, &load(cx).await?, &entered, &errors);
    Ok(layout::error_page(&iam, TITLE, errors.status(), &content))
}

async fn create_key(cx: &Cx, form: &NewKeyForm) -> Result<IssuedApiKey> {
    let organization = &form.organization()?;
    let purpose = organization
        .as_ref()
        .map_or(ApiKeyPurpose::Oneself, ApiKeyPurpose::Member);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope = authorize_new_api_key(cx, uow, purpose).await?;
            let new = NewApiKey {
                name: Some(form.name.clone()),
                expires_in: form.lifetime.seconds(),
                scopes: form.access.scopes(&scope),
                ..NewApiKey::default()
            };
            api_key::create(cx, &scope, uow, new).await
        })
    })
    .await
}

fn words(code: Code) -> Option<FieldMessage> {
    Some(match code {
        Code::InvalidNameLength => (Some("name"), "A name has 1 to 32 characters."),
        Code::NotFound => (None, "You are not in this organization any more."),
        Code::Forbidden => (
            None,
            "You do not have the permissions to give a key this access.",
        ),
        Code::Conflict => (
            None,
            "This organization has no platform. A key can act only for an organization with a platform.",
        ),
        Code::LimitReached => (
            None,
            "You have the maximum number of API keys. Delete one first.",
        ),
        _ => return None,
    })
}

fn secret_page(iam: &Iam, issued: &IssuedApiKey) -> PageOr {
    let content = html! {
        (layout::notice("The key was made. Copy it now: it is not shown again."))
        p { code.secret { (issued.secret.expose()) } }
        p { "A program sends it as " code { "X-API-Key" } ", or as " code { "Authorization: Bearer" } "." }
        ul.ways {
            li { a href=(iam.path(PATH)) { "To your keys" } }
        }
    };
    layout::page(iam, "Your new key", &content)
}

/// The fields of the form that deletes a key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DeleteKeyForm {
    /// The id of the key.
    key: ApiKeyId,
}

async fn delete(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), DeleteKeyForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, PATH));
    }
    let id = &input.body.key;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope = authorize_api_key(cx, uow, id).await?;
            api_key::delete(cx, &scope, uow).await
        })
    })
    .await?;
    Ok(layout::redirect(&iam, "/account/api-keys?notice=deleted"))
}
