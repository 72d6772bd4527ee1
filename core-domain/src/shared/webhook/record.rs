//! The webhook record, its commands, its status and its secrets.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

use super::WebhookUrl;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
use crate::kernel::{
    Audited, Entropy, JsonText, Line, PlatformId, TextError, Timestamp, WebhookId, record,
    snapshot, state_machine, text, text_enum, update_command,
};
use crate::shared::ChangeEvent;

/// Maximum number of secrets of a webhook that are in use at the same time.
pub const MAX_SECRETS: usize = 5;

/// Time for which a secret remains in use after it was replaced.
const SECRET_OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Time without a successful attempt after which a webhook is disabled.
const DISABLED_AFTER: Duration = Duration::from_secs(5 * 24 * 60 * 60);

text! {
    /// The type of events that a webhook receives: an action (`platform.suspended`), the first segment of actions
    /// (`platform`), or `*` for all.
    WebhookEventType, event_type, {
        "type": "string", "minLength": 1, "maxLength": 100, "pattern": "^(\\*|[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*)$",
        "examples": ["platform"],
    }
}

fn event_type(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_lowercase()) && segment.bytes().all(fits)
    };
    match text.len() {
        0 => Err(TextError::TooShort),
        length if length > 100 => Err(TextError::TooLong),
        _ if text == "*" || text.split('.').all(is_segment) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

text_enum! {
    /// The status of a webhook.
    pub enum WebhookStatus {
        /// The webhook receives events.
        Enabled = "enabled",
        /// The webhook receives no events, and pending messages to it fail.
        Disabled = "disabled",
    }
}

state_machine! {
    /// A change of the status of a webhook. A new webhook is `enabled`.
    pub enum WebhookEvent moves WebhookStatus {
        /// The webhook receives events again.
        Enable = "enable": [Disabled] => Enabled, "webhook.enabled";
        /// The webhook stops receiving events.
        Disable = "disable": [Enabled] => Disabled, "webhook.disabled";
    }
}

/// A stored secret of a webhook. It is encrypted and bound to the id of the webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct SealedWebhookSecret {
    /// The encrypted secret.
    pub sealed: String,
    /// The time until which the secret is used for signing; `None` for the newest secret.
    pub until: Option<Timestamp>,
}

/// A receiver of change events. Events are sent to it as signed HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Webhook {
    /// Unique id of the webhook.
    pub id: WebhookId,
    /// The platform whose events the webhook receives. `null` for a webhook of the installation, which receives the
    /// events of all platforms.
    pub platform_id: Option<PlatformId>,
    /// The URL that messages are sent to.
    pub url: WebhookUrl,
    /// A description of the purpose of the webhook. `null` if none was given.
    pub description: Option<Line<0, 255>>,
    /// The types of events that the webhook receives: actions, first segments of actions, or `*`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub event_types: Vec<WebhookEventType>,
    /// Whether the webhook receives events.
    pub status: WebhookStatus,
    /// Why the webhook was disabled automatically. `null` if it is enabled or was disabled by a caller.
    pub disabled_reason: Option<String>,
    /// Number of failed attempts since the latest successful one. Enabling the webhook resets it to 0.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub consecutive_failures: i64,
    /// The time of the first of these failed attempts. `null` if there are none.
    pub failing_since: Option<Timestamp>,
    /// The secrets that sign the messages, newest first.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub secrets: Vec<SealedWebhookSecret>,
    /// The time at which the webhook was created.
    pub created_at: Timestamp,
    /// The time of the latest change of the webhook's settings, status or secrets.
    pub updated_at: Timestamp,
}

record! {
    Webhook as "webhook" by id, asked WebhookQuery;
}

// The path and query of the URL may contain a secret, and more people can read the audit log than webhooks.
impl Audited for Webhook {
    fn audit_snapshot(&self) -> JsonText {
        let mut shown = snapshot(self, &[]);
        shown["url"] = Value::from(self.url.origin());
        JsonText::of(&shown)
    }

    fn audit_platform(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

/// Queries for webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookQuery {
    /// The webhooks of a platform, or of the installation for `None`; newest first.
    Of(Option<PlatformId>),
    /// One webhook of a platform or of the installation.
    One {
        /// The platform; `None` for the installation.
        platform_id: Option<PlatformId>,
        /// The id of the webhook.
        id: WebhookId,
    },
    /// The enabled webhooks of the installation and of these platforms.
    EnabledFor {
        /// The ids of the platforms.
        platforms: Vec<PlatformId>,
        /// The ids of webhooks to leave out.
        except: Vec<String>,
    },
}

/// Creates a webhook.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateWebhook {
    /// The URL that messages are sent to. It must be an `https` URL of a public address, unless the installation allows
    /// others.
    pub url: WebhookUrl,
    /// A description of the purpose of the webhook. Optional.
    pub description: Option<Line<0, 255>>,
    /// The types of events to receive: actions, first segments of actions, or `*`.
    #[schemars(length(min = 1, max = 100))]
    pub event_types: Vec<WebhookEventType>,
}

update_command! {
    /// Changes a webhook.
    pub struct UpdateWebhook for Webhook {
        set {
            /// The URL that messages are sent to.
            url: WebhookUrl,
            /// The types of events to receive: actions, first segments of actions, or `*`.
            #[schemars(length(min = 1, max = 100))]
            event_types: Vec<WebhookEventType>,
        }
        also {
            /// Whether the webhook receives events. Enabling it resets the count of failures.
            status: Option<WebhookStatus>,
        }
        optional {
            /// A description of the purpose of the webhook; `null` removes it.
            description: Line<0, 255>,
        }
    }
}

impl Webhook {
    /// Creates an enabled webhook with its first secret, which is encrypted.
    #[must_use]
    pub fn create(
        id: WebhookId,
        platform_id: Option<PlatformId>,
        command: CreateWebhook,
        sealed: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id,
            url: command.url,
            description: command.description,
            event_types: command.event_types,
            status: WebhookStatus::Enabled,
            disabled_reason: None,
            consecutive_failures: 0,
            failing_since: None,
            secrets: vec![SealedWebhookSecret {
                sealed,
                until: None,
            }],
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns whether the webhook receives this event.
    #[must_use]
    pub fn receives(&self, event: &ChangeEvent) -> bool {
        let reaches = self.platform_id.is_none() || self.platform_id == event.platform_id;
        let wants =
            |wanted: &WebhookEventType| wanted.as_str() == "*" || event.is_of_type(wanted.as_str());
        self.status == WebhookStatus::Enabled && reaches && self.event_types.iter().any(wants)
    }

    /// Returns the encrypted secrets that sign messages at this time, newest first.
    pub fn secrets_at(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let signs =
            move |secret: &&SealedWebhookSecret| secret.until.is_none_or(|until| now < until);
        self.secrets
            .iter()
            .filter(signs)
            .map(|secret| secret.sealed.as_str())
    }

    /// Returns the webhook with a new encrypted secret. The replaced one remains in use for 24 hours. `None` if
    /// [`MAX_SECRETS`] secrets are in use.
    #[must_use]
    pub fn with_new_secret(mut self, sealed: String, now: Timestamp) -> Option<Self> {
        self.secrets
            .retain(|secret| secret.until.is_none_or(|until| now < until));
        if self.secrets.len() >= MAX_SECRETS {
            return None;
        }
        for replaced in self
            .secrets
            .iter_mut()
            .filter(|secret| secret.until.is_none())
        {
            replaced.until = Some(now.plus(SECRET_OVERLAP));
        }
        self.secrets.insert(
            0,
            SealedWebhookSecret {
                sealed,
                until: None,
            },
        );
        Some(self)
    }

    /// Returns the webhook with another status. Enabling it resets the failures.
    #[must_use]
    pub fn with_status(self, status: WebhookStatus) -> Self {
        let moved = Self { status, ..self };
        match status {
            WebhookStatus::Enabled => Self {
                disabled_reason: None,
                ..moved.after_success()
            },
            WebhookStatus::Disabled => moved,
        }
    }

    /// Returns the webhook after a successful attempt.
    #[must_use]
    pub fn after_success(self) -> Self {
        Self {
            consecutive_failures: 0,
            failing_since: None,
            ..self
        }
    }

    /// Returns the webhook after a failed attempt. It is disabled if no attempt succeeded for five days, or if the
    /// receiver responded with 410.
    #[must_use]
    pub fn after_failure(self, now: Timestamp, gone: bool) -> Self {
        let since = self.failing_since.unwrap_or(now);
        let failed = Self {
            consecutive_failures: self.consecutive_failures.saturating_add(1),
            failing_since: Some(since),
            ..self
        };
        let reason = match gone {
            true => "The receiver answered 410 Gone.",
            false if now.since(since) >= DISABLED_AFTER => "Every attempt of five days has failed.",
            false => return failed,
        };
        if failed.status == WebhookStatus::Disabled {
            return failed;
        }
        Self {
            status: WebhookStatus::Disabled,
            disabled_reason: Some(reason.to_owned()),
            ..failed
        }
    }
}

/// Prefix of every secret.
const PREFIX: &str = "whsec_";

/// Number of bytes of a generated secret. Other secrets may have 24 to 64.
const SECRET_BYTES: usize = 32;

/// A secret for signing messages, which receivers use to verify them: `whsec_` and the base64 of its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

// Keeps the secret out of logs.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

impl WebhookSecret {
    /// Generates a random secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        entropy.fill(&mut bytes);
        Self(format!("{PREFIX}{}", STANDARD.encode(bytes)))
    }

    /// Parses the text form. `None` if it is not `whsec_` and the base64 of 24 to 64 bytes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = decode_secret(text)?;
        (24..=64)
            .contains(&bytes.len())
            .then(|| Self(text.to_owned()))
    }

    /// Returns the secret in its text form.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the signature of a message: `v1,` and the base64 of an HMAC-SHA256. It covers the id, the time of the
    /// attempt in Unix seconds and the body, joined with dots.
    #[must_use]
    pub fn sign(&self, id: &str, at: Timestamp, body: &str) -> String {
        let key = decode_secret(&self.0).unwrap_or_default();
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
            return String::new();
        };
        for part in [id, ".", &at.seconds().to_string(), ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

fn decode_secret(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::fixed_sample;
    use crate::shared::AuditEntry;
    use crate::testing::SeededEntropy;

    use super::*;

    fn webhook(types: &[&str]) -> Webhook {
        let types = types
            .iter()
            .map(|text| WebhookEventType::parse(text).unwrap());
        let command = CreateWebhook {
            url: WebhookUrl::parse("https://hooks.example.org/in?key=hidden").unwrap(),
            description: None,
            event_types: types.collect(),
        };
        let id = WebhookId::parse("w1").unwrap();
        Webhook::create(
            id,
            PlatformId::parse("p1"),
            command,
            "first".to_owned(),
            Timestamp::EPOCH,
        )
    }

    #[test]
    fn enabled_webhook_receives_only_the_requested_events_of_its_platform() {
        let mut event = ChangeEvent::of(1, &fixed_sample::<AuditEntry>(1)[0]);
        event.event_type = "platform.suspended".to_owned();
        event.platform_id = PlatformId::parse("p1");
        for (types, wants) in [
            (&["*"][..], true),
            (&["platform"], true),
            (&["entity", "platform.suspended"], true),
            (&["platform.restored"], false),
            (&["plat"], false),
            (&["suspended"], false),
        ] {
            let mut webhook = webhook(types);
            assert_eq!(webhook.receives(&event), wants, "{types:?}");
            webhook.platform_id = PlatformId::parse("p2");
            assert!(!webhook.receives(&event));
            webhook.platform_id = None;
            assert_eq!(webhook.receives(&event), wants);
            assert!(
                !webhook
                    .with_status(WebhookStatus::Disabled)
                    .receives(&event)
            );
        }
    }

    #[test]
    fn replaced_secrets_sign_for_one_day_and_at_most_five_are_in_use() {
        let at = |hours: u64| Timestamp::EPOCH.plus(Duration::from_secs(hours * 3_600));
        let rotated = webhook(&["*"])
            .with_new_secret("second".to_owned(), at(1))
            .unwrap();
        assert_eq!(
            rotated.secrets_at(at(24)).collect::<Vec<_>>(),
            ["second", "first"]
        );
        assert_eq!(rotated.secrets_at(at(25)).collect::<Vec<_>>(), ["second"]);
        let again =
            |webhook: Webhook, hours| webhook.with_new_secret(format!("at {hours}"), at(hours));
        let full = (2..5).fold(rotated, |webhook, hours| again(webhook, hours).unwrap());
        assert_eq!(again(full.clone(), 24), None);
        assert_eq!(again(full, 25).unwrap().secrets.len(), 5);
    }

    #[test]
    fn webhook_is_disabled_after_five_days_of_failures_or_at_once_on_410() {
        let day = |days: u64| Timestamp::EPOCH.plus(Duration::from_secs(days * 24 * 3_600));
        let failing = webhook(&["*"])
            .after_failure(day(1), false)
            .after_failure(day(5), false);
        assert_eq!(
            (failing.status, failing.consecutive_failures),
            (WebhookStatus::Enabled, 2)
        );
        let taken = failing.clone().after_success().after_failure(day(6), false);
        assert_eq!(
            (taken.status, taken.failing_since),
            (WebhookStatus::Enabled, Some(day(6)))
        );
        let disabled = failing.clone().after_failure(day(6), false);
        assert_eq!(disabled.status, WebhookStatus::Disabled);
        assert!(disabled.disabled_reason.is_some());
        assert_eq!(
            failing.after_failure(day(5), true).status,
            WebhookStatus::Disabled
        );
        let enabled = disabled.with_status(WebhookStatus::Enabled);
        assert_eq!(
            (enabled.disabled_reason, enabled.consecutive_failures),
            (None, 0)
        );
    }

    #[test]
    fn audit_snapshot_contains_neither_secrets_nor_the_url_path() {
        let kept = webhook(&["*"]).audit_snapshot();
        assert!(
            !kept.as_str().contains("hidden") && !kept.as_str().contains("first"),
            "{kept:?}"
        );
        assert_eq!(kept.value()["url"], "https://hooks.example.org");
    }

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_declared_transitions(
            events in prop::collection::vec(prop::sample::select(WebhookEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(WebhookStatus::Enabled, &events);
        }
    }

    #[test]
    fn signature_equals_the_example_of_the_standard() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Timestamp::from_seconds(1_614_265_330);
        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secret_has_32_random_bytes_parses_again_and_is_hidden_in_debug_output() {
        let entropy = SeededEntropy::new(1);
        let secret = WebhookSecret::generate(&entropy);
        assert_eq!(WebhookSecret::parse(secret.expose()), Some(secret.clone()));
        assert_ne!(WebhookSecret::generate(&entropy), secret);
        assert_eq!(
            (secret.expose().len(), format!("{secret:?}")),
            (6 + 44, "WebhookSecret(..)".to_owned())
        );
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for (text, good) in [
            (of(24), true),
            (of(64), true),
            (of(23), false),
            (of(65), false),
            ("whsec_!".to_owned(), false),
            (of(24)[6..].to_owned(), false),
        ] {
            assert_eq!(WebhookSecret::parse(&text).is_some(), good, "{text}");
        }
    }
}
