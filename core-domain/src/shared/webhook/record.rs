//! Webhooks: where changes are told, and whether they are.

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

/// How many secrets of a webhook sign at once at most.
pub const MAX_SECRETS: usize = 5;

/// How long a secret goes on signing once there is a newer one.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// How long nothing may be taken before the webhook is disabled.
const DISABLED_AFTER: Duration = Duration::from_secs(5 * 24 * 60 * 60);

text! {
    /// Which events a webhook is for: an action (`platform.suspended`), the first segment of actions (`platform`), or `*` for all.
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
    /// Whether a webhook is told of changes.
    pub enum WebhookStatus {
        /// It is.
        Enabled = "enabled",
        /// It is not, and what waits for it is given up.
        Disabled = "disabled",
    }
}

state_machine! {
    /// What happens to a webhook. It is created `enabled`.
    pub enum WebhookEvent moves WebhookStatus {
        /// It is told of changes again.
        Enable = "enable": [Disabled] => Enabled, "webhook.enabled";
        /// It is not told any more.
        Disable = "disable": [Enabled] => Disabled, "webhook.disabled";
    }
}

/// A secret as it is stored: encrypted, bound to the webhook's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct SealedWebhookSecret {
    /// The secret, encrypted.
    pub sealed: String,
    /// Until when it signs; the newest has no end.
    pub until: Option<Timestamp>,
}

/// Somebody who is told of changes by signed requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Webhook {
    /// The webhook's id.
    pub id: WebhookId,
    /// The platform whose changes it is told; `null` for one of the installation, which is told everything.
    pub platform_id: Option<PlatformId>,
    /// Where it is told.
    pub url: WebhookUrl,
    /// What it is for, in its owner's words.
    pub description: Option<Line<0, 255>>,
    /// What it is told of.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub event_types: Vec<WebhookEventType>,
    /// Whether it is told of changes.
    pub status: WebhookStatus,
    /// Why it was disabled, when nobody asked for that.
    pub disabled_reason: Option<String>,
    /// Attempts that failed since the last one that did not.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub consecutive_failures: i64,
    /// When the first of these was.
    pub failing_since: Option<Timestamp>,
    /// What it is signed with, the newest first.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub secrets: Vec<SealedWebhookSecret>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its owner last changed it.
    pub updated_at: Timestamp,
}

record! {
    Webhook as "webhook" by id, asked WebhookQuery;
}

// Path and query of the address may hold a secret, and more people read the audit than webhooks.
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

/// Questions about webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookQuery {
    /// Those of a platform, or of the installation; newest first.
    Of(Option<PlatformId>),
    /// One of these.
    One {
        /// Whose.
        platform_id: Option<PlatformId>,
        /// Which.
        id: WebhookId,
    },
    /// Those of the installation and of some platforms that are enabled.
    EnabledFor {
        /// The platforms.
        platforms: Vec<PlatformId>,
        /// But for those with these ids.
        except: Vec<String>,
    },
}

/// Asks for changes to be told.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateWebhook {
    /// Where they are told.
    pub url: WebhookUrl,
    /// What it is for.
    pub description: Option<Line<0, 255>>,
    /// What is told: actions, first segments of actions, or `*`.
    #[schemars(length(min = 1, max = 100))]
    pub event_types: Vec<WebhookEventType>,
}

update_command! {
    /// Changes a webhook.
    pub struct UpdateWebhook for Webhook {
        set {
            /// Where changes are told.
            url: WebhookUrl,
            /// What is told.
            #[schemars(length(min = 1, max = 100))]
            event_types: Vec<WebhookEventType>,
        }
        also {
            /// Whether changes are told. Enabling forgets what has failed.
            status: Option<WebhookStatus>,
        }
        optional {
            /// What it is for; `null` takes it away.
            description: Line<0, 255>,
        }
    }
}

impl Webhook {
    /// A new webhook, with its first secret encrypted.
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

    /// Tells whether the webhook is told of an event.
    #[must_use]
    pub fn wants(&self, event: &ChangeEvent) -> bool {
        let reaches = self.platform_id.is_none() || self.platform_id == event.platform_id;
        let wants =
            |wanted: &WebhookEventType| wanted.as_str() == "*" || event.is_of_type(wanted.as_str());
        self.status == WebhookStatus::Enabled && reaches && self.event_types.iter().any(wants)
    }

    /// The secrets that sign at an instant, encrypted, the newest first.
    pub fn secrets_at(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let signs =
            move |secret: &&SealedWebhookSecret| secret.until.is_none_or(|until| now < until);
        self.secrets
            .iter()
            .filter(signs)
            .map(|secret| secret.sealed.as_str())
    }

    /// The webhook with a new secret, encrypted; the one it replaces goes on signing for 24 hours. `None` when too many
    /// still do.
    #[must_use]
    pub fn rotated(mut self, sealed: String, now: Timestamp) -> Option<Self> {
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
            replaced.until = Some(now.plus(OVERLAP));
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

    /// The webhook with another status; what has failed is forgotten when it is enabled.
    #[must_use]
    pub fn with_status(self, status: WebhookStatus) -> Self {
        let moved = Self { status, ..self };
        match status {
            WebhookStatus::Enabled => Self {
                disabled_reason: None,
                ..moved.delivered()
            },
            WebhookStatus::Disabled => moved,
        }
    }

    /// The webhook once a message was taken.
    #[must_use]
    pub fn delivered(self) -> Self {
        Self {
            consecutive_failures: 0,
            failing_since: None,
            ..self
        }
    }

    /// The webhook once an attempt has failed: disabled when nothing was taken for five days, or when the receiver said
    /// that it is gone.
    #[must_use]
    pub fn failed(self, now: Timestamp, gone: bool) -> Self {
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

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// The bytes of a secret of ours; others have 24 to 64.
const BYTES: usize = 32;

/// A secret that receivers check signatures with: `whsec_` and the base64 of its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

// The secret stays out of logs.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

impl WebhookSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; BYTES];
        entropy.fill(&mut bytes);
        Self(format!("{PREFIX}{}", STANDARD.encode(bytes)))
    }

    /// Reads the text form; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = bytes(text)?;
        (24..=64)
            .contains(&bytes.len())
            .then(|| Self(text.to_owned()))
    }

    /// The text, for whoever receives what is signed with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The signature of a message, `v1,` in front: HMAC-SHA256 of its id, the instant of the attempt in seconds, and its
    /// body, joined with dots.
    #[must_use]
    pub fn sign(&self, id: &str, at: Timestamp, body: &str) -> String {
        let key = bytes(&self.0).unwrap_or_default();
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
            return String::new();
        };
        for part in [id, ".", &at.seconds().to_string(), ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::some;
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
    fn a_webhook_is_told_what_it_asked_for_of_its_platform_alone_while_it_is_enabled() {
        let mut event = ChangeEvent::of(1, &some::<AuditEntry>(1)[0]);
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
            assert_eq!(webhook.wants(&event), wants, "{types:?}");
            webhook.platform_id = PlatformId::parse("p2");
            assert!(!webhook.wants(&event));
            webhook.platform_id = None;
            assert_eq!(webhook.wants(&event), wants);
            assert!(!webhook.with_status(WebhookStatus::Disabled).wants(&event));
        }
    }

    #[test]
    fn replaced_secrets_sign_for_a_day_and_never_more_than_five_do() {
        let at = |hours: u64| Timestamp::EPOCH.plus(Duration::from_secs(hours * 3_600));
        let rotated = webhook(&["*"]).rotated("second".to_owned(), at(1)).unwrap();
        assert_eq!(
            rotated.secrets_at(at(24)).collect::<Vec<_>>(),
            ["second", "first"]
        );
        assert_eq!(rotated.secrets_at(at(25)).collect::<Vec<_>>(), ["second"]);
        let again = |webhook: Webhook, hours| webhook.rotated(format!("at {hours}"), at(hours));
        let full = (2..5).fold(rotated, |webhook, hours| again(webhook, hours).unwrap());
        assert_eq!(again(full.clone(), 24), None);
        assert_eq!(again(full, 25).unwrap().secrets.len(), 5);
    }

    #[test]
    fn five_days_without_a_message_taken_disable_it_and_gone_does_at_once() {
        let day = |days: u64| Timestamp::EPOCH.plus(Duration::from_secs(days * 24 * 3_600));
        let failing = webhook(&["*"]).failed(day(1), false).failed(day(5), false);
        assert_eq!(
            (failing.status, failing.consecutive_failures),
            (WebhookStatus::Enabled, 2)
        );
        let taken = failing.clone().delivered().failed(day(6), false);
        assert_eq!(
            (taken.status, taken.failing_since),
            (WebhookStatus::Enabled, Some(day(6)))
        );
        let disabled = failing.clone().failed(day(6), false);
        assert_eq!(disabled.status, WebhookStatus::Disabled);
        assert!(disabled.disabled_reason.is_some());
        assert_eq!(failing.failed(day(5), true).status, WebhookStatus::Disabled);
        let enabled = disabled.with_status(WebhookStatus::Enabled);
        assert_eq!(
            (enabled.disabled_reason, enabled.consecutive_failures),
            (None, 0)
        );
    }

    #[test]
    fn the_audit_keeps_neither_secrets_nor_the_path_of_the_address() {
        let kept = webhook(&["*"]).audit_snapshot();
        assert!(
            !kept.as_str().contains("hidden") && !kept.as_str().contains("first"),
            "{kept:?}"
        );
        assert_eq!(kept.value()["url"], "https://hooks.example.org");
    }

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(WebhookEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(WebhookStatus::Enabled, &events);
        }
    }

    #[test]
    fn a_message_is_signed_as_the_standard_signs_its_example() {
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
    fn a_secret_has_32_random_bytes_reads_back_and_its_debug_form_hides_it() {
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
