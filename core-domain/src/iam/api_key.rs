//! API keys, with which programs authenticate.
//!
//! A key acts for an organization itself, for a member of an organization, or for a person alone. Each key has a secret
//! of the form `core_<prefix><43 characters><6-character checksum>`. Only the SHA-256 hash of the secret is stored.

use std::time::Duration;

use serde::Serialize;

use super::{Member, Organization, TokenHash, membership};
use crate::kernel::{
    ApiKeyId, BASE62, Code, Entropy, Error, IllegalTransition, Line, Membership, OrganizationId,
    PermissionPattern, PermissionSet, PlatformId, Result, Role, TOKEN_LENGTH, TextError, Timestamp,
    UserId, record, secret_token, state_machine, text, text_enum,
};

/// Returns the permissions of a key that an organization owns: its scopes, or `*:*` if it has none.
#[must_use]
pub fn organization_key_patterns(key: &ApiKey) -> Vec<PermissionPattern> {
    let everything = || PermissionPattern::parse("*:*").into_iter().collect();
    key.scopes.clone().unwrap_or_else(everything)
}

/// Returns the roles and permissions of a key in its organization at the given time. A key of a member has the member's
/// permissions, restricted to its scopes. A key of an organization has its scopes.
///
/// Returns `None` if the key must not act: its owner is no longer a member, or the organization has another platform
/// than the key. A key never operates the installation, not even in the operator organization.
#[must_use]
pub fn key_membership(
    key: &ApiKey,
    organization: &Organization,
    member: Option<&Member>,
    now: Timestamp,
) -> Option<Membership> {
    let of_key = key.organization_id.as_ref() == Some(&organization.id);
    if !of_key || key.platform_id.is_none() || organization.platform_id != key.platform_id {
        return None;
    }
    let acting = if key.user_id.is_some() {
        let own = membership(organization, member?, now);
        let permissions = match &key.scopes {
            Some(scopes) => {
                let scopes = scopes.iter().map(PermissionPattern::as_str);
                own.permissions.within(scopes)
            }
            None => own.permissions,
        };
        Membership { permissions, ..own }
    } else {
        let patterns = organization_key_patterns(key);
        let patterns = patterns.iter().map(PermissionPattern::as_str);
        Membership {
            organization_id: organization.id.clone(),
            platform_id: organization.platform_id.clone(),
            // A membership needs a role, and `member` is the weakest. The permissions come from the scopes alone.
            roles: Role::MEMBER.into(),
            permissions: PermissionSet::new(patterns),
            is_operator: false,
        }
    };
    Some(Membership {
        is_operator: false,
        ..acting
    })
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Minimum lifetime of a key that expires: 1 day.
pub const MIN_API_KEY_LIFETIME: Duration = DAY;

/// Maximum lifetime of a key that expires: 365 days. A key without an expiry lives until it is deleted.
pub const MAX_API_KEY_LIFETIME: Duration = DAY.saturating_mul(365);

/// Maximum time for which the previous secret of a rotated key stays valid: 7 days.
pub const MAX_ROTATION_OVERLAP: Duration = DAY.saturating_mul(7);

/// Default time for which the previous secret of a rotated key stays valid: 1 day.
pub const DEFAULT_ROTATION_OVERLAP: Duration = DAY;

/// Default maximum number of requests per minute with one key.
pub const DEFAULT_REQUESTS_PER_MINUTE: u32 = 600;

/// Upper bound for the configurable number of requests per minute with one key.
pub const MAX_REQUESTS_PER_MINUTE: u32 = 10_000;

/// Time for which a revoked or expired key stays stored: 30 days. During this time, requests with it get the exact
/// reason.
const ENDED_KEY_RETENTION: Duration = DAY.saturating_mul(30);

/// Minimum time between two updates of [`ApiKey::last_used_at`].
const LAST_USED_PRECISION: Duration = Duration::from_secs(60);

/// A key with which a program acts for an organization, for a member of an organization, or for a person alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ApiKey {
    /// The key's id, which is not secret.
    pub id: ApiKeyId,
    /// The user who owns the key; `null` for a key that an organization owns.
    pub user_id: Option<UserId>,
    /// The organization that the key acts for; `null` for a personal key, which acts for its owner alone.
    pub organization_id: Option<OrganizationId>,
    /// The platform of that organization; `null` for a personal key.
    pub platform_id: Option<PlatformId>,
    /// The display name that its owner gave it; `null` if it has none.
    pub name: Option<Line<1, 32>>,
    /// The custom text of the secret after `core_`; `null` if it has none.
    pub prefix: Option<KeyPrefix>,
    /// The first 12 characters of its secret, which help people to recognise the key.
    pub start: String,
    /// The permission patterns that the key is restricted to; `null` if the key has all permissions of its owner.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::opt_few()")
    )]
    pub scopes: Option<Vec<PermissionPattern>>,
    /// Maximum number of requests per minute with this key. Default: 600.
    pub requests_per_minute: u32,
    /// The lifecycle status, which its owner controls.
    pub status: ApiKeyStatus,
    /// The hash of the current secret.
    #[serde(skip)]
    pub token_hash: TokenHash,
    /// The hash of the previous secret; `None` if the key was never rotated.
    #[serde(skip)]
    pub previous_hash: Option<TokenHash>,
    /// The time at which the previous secret becomes invalid; `null` if the key was never rotated.
    pub previous_until: Option<Timestamp>,
    /// The time at which the key expires; `null` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The time of the last use, with a precision of one minute.
    #[serde(skip)]
    pub last_used_at: Option<Timestamp>,
    /// The time at which the key was created.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

record! {
    ApiKey as "API key" by id, asked ApiKeyQuery;
    audited in |key| key.platform_id.as_ref(), touched updated_at;
}

/// The owner of a key. The limit on the number of keys applies to each owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeyOwner {
    /// A user who owns personal keys and keys as a member.
    User(UserId),
    /// An organization that owns keys independent of its members.
    Organization(OrganizationId),
}

/// Queries on API keys.
#[derive(Clone, Debug, PartialEq)]
pub enum ApiKeyQuery {
    /// The user's keys that are not revoked, newest first.
    OfUser(UserId),
    /// The organization's own keys that are not revoked, newest first.
    OfOrganization(OrganizationId),
    /// The user's keys that were revoked or that expired before this time.
    EndedOfUser(UserId, Timestamp),
    /// The organization's own keys that were revoked or that expired before this time.
    ForgottenOfOrganization(OrganizationId, Timestamp),
    /// The keys of a user that act for them in an organization.
    OfMember(OrganizationId, UserId),
    /// All keys that were revoked before this time.
    RevokedBefore(Timestamp),
    /// All keys that expired before this time.
    ExpiredBefore(Timestamp),
    /// All keys that act for this platform, of any owner.
    OfPlatform(PlatformId),
}

impl ApiKeyQuery {
    /// Returns the query for the keys of an owner that are not revoked.
    #[must_use]
    pub fn of_owner(owner: &ApiKeyOwner) -> Self {
        match owner.clone() {
            ApiKeyOwner::User(user) => Self::OfUser(user),
            ApiKeyOwner::Organization(organization) => Self::OfOrganization(organization),
        }
    }

    /// Returns the query for the keys of an owner that were revoked or expired more than 30 days ago.
    #[must_use]
    pub fn ended_of_owner(owner: &ApiKeyOwner, now: Timestamp) -> Self {
        let before = now.minus(ENDED_KEY_RETENTION);
        match owner.clone() {
            ApiKeyOwner::User(user) => Self::EndedOfUser(user, before),
            ApiKeyOwner::Organization(organization) => {
                Self::ForgottenOfOrganization(organization, before)
            }
        }
    }

    /// Returns the queries for all keys that were revoked or expired more than 30 days ago.
    #[must_use]
    pub fn all_ended(now: Timestamp) -> [Self; 2] {
        let before = now.minus(ENDED_KEY_RETENTION);
        [Self::RevokedBefore(before), Self::ExpiredBefore(before)]
    }
}

impl ApiKey {
    /// Returns whether the key has expired at the given time.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns whether the overlap after a rotation still lasts, so that the previous secret is accepted.
    #[must_use]
    pub fn is_overlap_active(&self, now: Timestamp) -> bool {
        self.previous_until.is_some_and(|end| now < end)
    }

    /// Checks a secret of the key. Returns the time at which the secret stops to work if nothing changes; `None` if it
    /// never stops.
    ///
    /// # Errors
    /// Returns the reason why the secret is not accepted.
    pub fn check(
        &self,
        secret: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ApiKeyRefusal> {
        let former = self.previous_hash.as_ref() == Some(secret);
        if self.token_hash != *secret && !former {
            return Err(ApiKeyRefusal::NotFound);
        }
        if self.status != ApiKeyStatus::Active {
            return Err(ApiKeyRefusal::Revoked);
        }
        if self.has_expired(now) {
            return Err(ApiKeyRefusal::Expired);
        }
        if !former {
            return Ok(self.expires_at);
        }
        if !self.is_overlap_active(now) {
            return Err(ApiKeyRefusal::Revoked);
        }
        let ends = self.previous_until.into_iter().chain(self.expires_at);
        Ok(ends.min())
    }

    /// Returns the key with a new secret. The old secret stays valid for `overlap`. An overlap of zero ends all
    /// previous secrets at once, as needed after a leak.
    ///
    /// # Errors
    /// - `INVALID_STATE` if the key is not active or has expired.
    /// - `CONFLICT` if the secret before the current one is still valid and `overlap` is not zero.
    pub fn rotate(&self, secret: &ApiKeySecret, overlap: Duration, now: Timestamp) -> Result<Self> {
        if self.status != ApiKeyStatus::Active {
            return Err(IllegalTransition::new(self.status, [ApiKeyStatus::Active]).into());
        }
        if self.has_expired(now) {
            return Err(Error::refused(Code::InvalidState, "The key has expired."));
        }
        if self.is_overlap_active(now) && !overlap.is_zero() {
            let message = "The previous secret of the key is still valid. Rotate with an overlap of 0 to end it.";
            return Err(Error::refused(Code::Conflict, message));
        }
        Ok(Self {
            token_hash: secret.hash(),
            start: secret.start(),
            previous_hash: Some(self.token_hash.clone()),
            previous_until: Some(now.plus(overlap)),
            ..self.clone()
        })
    }

    /// Returns whether a use at the given time must be stored: the last stored use is at least a minute old.
    #[must_use]
    pub fn is_use_update_due(&self, now: Timestamp) -> bool {
        self.last_used_at
            .is_none_or(|last| now.since(last) >= LAST_USED_PRECISION)
    }
}

text_enum! {
    /// The reason why a key is not accepted, as in responses of `POST /api/core/apikey/validate`.
    pub enum ApiKeyRefusal {
        /// No key has this secret.
        NotFound = "NOT_FOUND",
        /// The key has expired.
        Expired = "EXPIRED",
        /// The key was revoked, disabled or rotated, or its owner may no longer act.
        Revoked = "REVOKED",
        /// The key has reached its limit of requests per minute.
        RateLimited = "RATE_LIMITED",
    }
}

/// The prefix of every API key.
pub const API_KEY_PREFIX: &str = "core_";

/// Number of characters of the checksum. Six base-62 digits hold the 32 bits of a CRC.
const CHECKSUM_LENGTH: usize = 6;

/// Maximum length of a custom prefix, in characters.
const MAX_PREFIX_LENGTH: usize = 32;

/// Number of characters of a secret that are stored so that people can recognise the key.
const START_LENGTH: usize = 12;

text! {
    /// A custom text that the secret starts with, after `core_`. 1 to 32 characters `[A-Za-z0-9_-]`.
    KeyPrefix, prefix, {
        "type": "string", "minLength": 1, "maxLength": MAX_PREFIX_LENGTH,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["ci_"],
    }
}

fn prefix(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match text.len() {
        0 => Err(TextError::TooShort),
        length if length > MAX_PREFIX_LENGTH => Err(TextError::TooLong),
        _ if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// The secret of a key. Its creator sees it once; only its hash is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

// The `Debug` output hides the secret, so that it does not appear in logs.
impl std::fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeySecret(..)")
    }
}

impl ApiKeySecret {
    /// Generates a new secret.
    #[must_use]
    pub fn generate(prefix: Option<&KeyPrefix>, entropy: &dyn Entropy) -> Self {
        let prefix = prefix.map_or("", KeyPrefix::as_str);
        let body = format!(
            "{API_KEY_PREFIX}{prefix}{}",
            secret_token(entropy, TOKEN_LENGTH)
        );
        let checksum = checksum(&body);
        Self(body + &checksum)
    }

    /// Parses the text of a key. Returns `None` if the text cannot be a key, for example after a typing error. The
    /// checksum detects this without a look-up.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(API_KEY_PREFIX)?;
        let length = rest.len().checked_sub(TOKEN_LENGTH + CHECKSUM_LENGTH)?;
        // The text must be ASCII before it is split at byte positions.
        if !text.is_ascii() || length > MAX_PREFIX_LENGTH {
            return None;
        }
        let (own, secret) = rest.split_at(length);
        let (body, found) = text.split_at(text.len() - CHECKSUM_LENGTH);
        let good = (own.is_empty() || prefix(own).is_ok())
            && secret.bytes().all(|b| b.is_ascii_alphanumeric())
            && checksum(body) == found;
        good.then(|| Self(text.to_owned()))
    }

    /// Returns the secret text, for the response to its creator.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash under which the key is stored.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// Returns the first 12 characters, which help people to recognise the key.
    #[must_use]
    pub fn start(&self) -> String {
        self.0.chars().take(START_LENGTH).collect()
    }
}

/// Returns the CRC-32 of a text in base 62, most significant digit first.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [0_u8; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[usize::try_from(rest % 62).unwrap_or_default()];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

text_enum! {
    /// The lifecycle status of an API key.
    pub enum ApiKeyStatus {
        /// The key is accepted.
        Active = "active",
        /// The key is refused until its owner enables it again.
        Disabled = "disabled",
        /// The key is refused for good. It stays stored for 30 days, so that requests with it get the exact reason.
        Revoked = "revoked",
    }
}

state_machine! {
    /// The lifecycle events of an API key. A new key is `active`.
    pub enum ApiKeyEvent moves ApiKeyStatus {
        /// The owner disables the key.
        Disable = "api_key.disabled": [Active] => Disabled;
        /// The owner enables the key again.
        Enable = "api_key.enabled": [Disabled] => Active;
        /// The owner deletes the key.
        Revoke = "api_key.deleted": [Active, Disabled] => Revoked;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::strategy::fixed_sample;
    use crate::kernel::{Machine, assert_only_table_moves};
    use crate::testing::SeededEntropy;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Rotate { overlap: u64 },
        Move(ApiKeyEvent),
        Wait { seconds: u64 },
    }

    fn some_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            prop::sample::select(vec![0, 60, 3_600]).prop_map(|overlap| Step::Rotate { overlap }),
            any::<ApiKeyEvent>().prop_map(Step::Move),
            prop::sample::select(vec![1, 59, 60, 4_000, 90_000])
                .prop_map(|seconds| Step::Wait { seconds }),
        ]
    }

    /// A secret in the model, with the time at which it stops to work.
    struct ModelSecret {
        hash: TokenHash,
        until: Option<Timestamp>,
    }

    fn new_key(secret: &ApiKeySecret, now: Timestamp, lifetime: Option<u64>) -> ApiKey {
        ApiKey {
            status: ApiKeyStatus::Active,
            token_hash: secret.hash(),
            previous_hash: None,
            previous_until: None,
            expires_at: lifetime.map(|seconds| now.plus(Duration::from_secs(seconds))),
            ..fixed_sample::<ApiKey>(1).remove(0)
        }
    }

    proptest! {
        #[test]
        fn only_the_current_secret_and_a_previous_one_within_its_overlap_are_valid(
            lifetime in prop::option::of(prop::sample::select(vec![86_400_u64, 172_800])),
            steps in prop::collection::vec(some_step(), 0..20),
        ) {
            let entropy = SeededEntropy::new(3);
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let first = ApiKeySecret::generate(None, &entropy);
            let mut key = new_key(&first, now, lifetime);
            let mut known = vec![ModelSecret { hash: first.hash(), until: None }];
            for step in steps {
                match step {
                    Step::Wait { seconds } => now = now.plus(Duration::from_secs(seconds)),
                    Step::Move(event) => {
                        if let Ok(status) = event.next(key.status) {
                            key.status = status;
                        }
                    }
                    Step::Rotate { overlap } => {
                        let secret = ApiKeySecret::generate(None, &entropy);
                        let overlapping = known.iter().any(|k| k.until.is_some_and(|end| now < end));
                        let usable = key.status == ApiKeyStatus::Active && !key.has_expired(now);
                        let rotated = key.rotate(&secret, Duration::from_secs(overlap), now);
                        prop_assert_eq!(rotated.is_ok(), usable && (overlap == 0 || !overlapping));
                        if let Ok(next) = rotated {
                            key = next;
                            let end = now.plus(Duration::from_secs(overlap));
                            for former in &mut known {
                                former.until = Some(former.until.map_or(end, |until| until.min(end)));
                            }
                            known.push(ModelSecret { hash: secret.hash(), until: None });
                        }
                    }
                }
                for secret in &known {
                    let in_time = secret.until.is_none_or(|end| now < end);
                    let usable = key.status == ApiKeyStatus::Active && !key.has_expired(now);
                    let found = key.check(&secret.hash, now);
                    prop_assert_eq!(found.is_ok(), usable && in_time, "{:?}", found);
                    if let Ok(end) = found {
                        let ends = secret.until.into_iter().chain(key.expires_at);
                        prop_assert_eq!(end, ends.min());
                    }
                }
            }
        }
    }

    #[test]
    fn check_reports_the_exact_reason_of_a_refusal() {
        let entropy = SeededEntropy::new(4);
        let now = Timestamp::from_seconds(1_800_000_000);
        let [first, second, other] = [(); 3].map(|()| ApiKeySecret::generate(None, &entropy));
        let key = new_key(&first, now, Some(86_400));
        let rotated = key.rotate(&second, Duration::from_secs(60), now).unwrap();
        let at = |seconds| now.plus(Duration::from_secs(seconds));
        let disabled = ApiKey {
            status: ApiKeyStatus::Disabled,
            ..rotated.clone()
        };
        for (key, secret, seconds, expected) in [
            (&key, &first, 0, Ok(Some(at(86_400)))),
            (&key, &first, 86_400, Err(ApiKeyRefusal::Expired)),
            (&key, &other, 0, Err(ApiKeyRefusal::NotFound)),
            (&rotated, &first, 59, Ok(Some(at(60)))),
            (&rotated, &first, 60, Err(ApiKeyRefusal::Revoked)),
            (&rotated, &second, 60, Ok(Some(at(86_400)))),
            (&disabled, &second, 0, Err(ApiKeyRefusal::Revoked)),
        ] {
            assert_eq!(key.check(&secret.hash(), at(seconds)), expected);
        }
    }

    #[test]
    fn checksum_is_the_standard_crc_32() {
        assert_eq!(checksum("123456789"), "DtjbWO");
        assert_eq!(checksum("").len(), CHECKSUM_LENGTH);
    }

    #[test]
    fn key_has_the_documented_length_and_its_debug_output_hides_it() {
        let key = ApiKeySecret::generate(None, &SeededEntropy::new(1));
        assert_eq!(key.expose().len(), 5 + 43 + 6);
        assert_eq!(key.start(), key.expose()[..12]);
        assert_eq!(format!("{key:?}"), "ApiKeySecret(..)");
    }

    proptest! {
        #[test]
        fn generated_keys_can_be_parsed(seed in any::<u64>(), prefix in prop::option::of(any::<KeyPrefix>())) {
            let key = ApiKeySecret::generate(prefix.as_ref(), &SeededEntropy::new(seed));
            let prefix = prefix.as_ref().map_or("", KeyPrefix::as_str);
            let start = format!("core_{prefix}");
            prop_assert!(key.expose().starts_with(&start));
            prop_assert_eq!(ApiKeySecret::parse(key.expose()), Some(key));
        }

        #[test]
        fn checksum_detects_a_changed_missing_or_swapped_character(
            seed in any::<u64>(), at in 5_usize..54, other in "[A-Za-z0-9]",
        ) {
            let key = ApiKeySecret::generate(None, &SeededEntropy::new(seed));
            let text = key.expose();
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(ApiKeySecret::parse(&changed).is_some(), changed == text);
            let missing = format!("{}{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(ApiKeySecret::parse(&missing), None);
            if at + 1 < text.len() {
                let (one, two) = (&text[at..=at], &text[at + 1..at + 2]);
                let swapped = format!("{}{two}{one}{}", &text[..at], &text[at + 2..]);
                prop_assert_eq!(ApiKeySecret::parse(&swapped).is_some(), one == two);
            }
        }

        #[test]
        fn parse_rejects_arbitrary_text(text in "(core_)?\\PC{0,60}") {
            prop_assert_eq!(ApiKeySecret::parse(&text), None);
        }
    }

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(events in prop::collection::vec(any::<ApiKeyEvent>(), 0..12)) {
            assert_only_table_moves(ApiKeyStatus::Active, &events);
        }
    }
}
