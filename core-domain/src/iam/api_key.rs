//! API keys: what programs call with.

use std::time::Duration;

use serde::Serialize;

use super::{Member, Organization, TokenHash, membership};
use crate::kernel::{
    ApiKeyId, BASE62, Code, Entropy, Error, IllegalMove, Line, Membership, OrganizationId,
    PermissionPattern, PermissionSet, PlatformId, Result, Role, TOKEN_LENGTH, TextError, Timestamp,
    UserId, record, secret_token, state_machine, text, text_enum,
};

/// What a key of an organization's own may: its scopes, or everything.
#[must_use]
pub fn organization_key_patterns(key: &ApiKey) -> Vec<PermissionPattern> {
    let everything = || PermissionPattern::parse("*:*").into_iter().collect();
    key.scopes.clone().unwrap_or_else(everything)
}

/// What a key is to the rest of the suite at this instant: the member it belongs to, narrowed to its scopes, or by itself
/// the organization's. `None` when it may not act: its owner is no member any more, or the organization has another
/// platform now.
///
/// A key operates nothing, even in the organization that operates the installation.
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
            // A name has to be given; the least of them. What it may are its scopes.
            role: Role::MEMBER.into(),
            permissions: PermissionSet::new(patterns),
            operates: false,
        }
    };
    Some(Membership {
        operates: false,
        ..acting
    })
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest life a key may be given.
pub const SHORTEST_LIFETIME: Duration = DAY;

/// The longest life a key may be given; one that is given none lives until it is deleted.
pub const LONGEST_LIFETIME: Duration = DAY.saturating_mul(365);

/// The longest time for which the former secret of a rotated key goes on working.
pub const LONGEST_OVERLAP: Duration = DAY.saturating_mul(7);

/// For how long it does when nothing is said.
pub const DEFAULT_OVERLAP: Duration = DAY;

/// How often a key may be used in a minute unless something else is set.
pub const DEFAULT_REQUESTS_PER_MINUTE: u32 = 600;

/// The most that may be set.
pub const MAX_REQUESTS_PER_MINUTE: u32 = 10_000;

/// For how long a key is kept that is over.
const KEPT_FOR: Duration = DAY.saturating_mul(30);

/// How exactly it is known when a key was used last.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);

/// A key with which a program acts for an organization, as a member of it or by itself, or for a person alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ApiKey {
    /// The key's id; safe to show.
    pub id: ApiKeyId,
    /// The person it belongs to; `None` for a key of the organization's own.
    pub user_id: Option<UserId>,
    /// The organization it acts for; `None` for a personal key, which acts for its owner alone.
    pub organization_id: Option<OrganizationId>,
    /// The platform of that organization.
    pub platform_id: Option<PlatformId>,
    /// What its owner calls it.
    pub name: Option<Line<1, 32>>,
    /// What its maker wanted it to begin with, after `core_`.
    pub prefix: Option<KeyPrefix>,
    /// The first characters of its secret.
    pub start: String,
    /// What it is narrowed to; everything its owner may when `None`.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::opt_few()")
    )]
    pub scopes: Option<Vec<PermissionPattern>>,
    /// How often it may be used in a minute.
    pub requests_per_minute: u32,
    /// Whether it is accepted, as far as its owner decides.
    pub status: ApiKeyStatus,
    /// What its secret is recognised by.
    #[serde(skip)]
    pub token_hash: TokenHash,
    /// What its former secret is recognised by.
    #[serde(skip)]
    pub previous_hash: Option<TokenHash>,
    /// From when on the former secret does not work any more.
    pub previous_until: Option<Timestamp>,
    /// From when on it is over.
    pub expires_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    #[serde(skip)]
    pub last_used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    ApiKey as "API key" by id, asked ApiKeyQuery;
    audited in |key| key.platform_id.as_ref(), touched updated_at;
}

/// Who owns a key. As many keys as one owner may have are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeyOwner {
    /// A person.
    User(UserId),
    /// An organization, for a key of its own.
    Organization(OrganizationId),
}

/// Questions about keys.
#[derive(Clone, Debug, PartialEq)]
pub enum ApiKeyQuery {
    /// The user's keys that are not revoked, newest first.
    OfUser(UserId),
    /// The organization's own keys that are not revoked, newest first.
    OfOrganization(OrganizationId),
    /// The user's keys that were revoked, or have expired, before this instant.
    ForgottenOfUser(UserId, Timestamp),
    /// The same of the organization's own keys.
    ForgottenOfOrganization(OrganizationId, Timestamp),
    /// The keys that a user has made for themselves in an organization.
    OfMember(OrganizationId, UserId),
    /// All that were revoked before this instant.
    RevokedBefore(Timestamp),
    /// All that have expired before this instant.
    ExpiredBefore(Timestamp),
    /// Those that act for this platform, whosever they are.
    OfPlatform(PlatformId),
}

impl ApiKeyQuery {
    /// Selects the keys of an owner that are not revoked.
    #[must_use]
    pub fn of_owner(owner: &ApiKeyOwner) -> Self {
        match owner.clone() {
            ApiKeyOwner::User(user) => Self::OfUser(user),
            ApiKeyOwner::Organization(organization) => Self::OfOrganization(organization),
        }
    }

    /// The keys of an owner that have been over for so long that nobody presents them any more.
    #[must_use]
    pub fn forgotten(owner: &ApiKeyOwner, now: Timestamp) -> Self {
        let before = now.minus(KEPT_FOR);
        match owner.clone() {
            ApiKeyOwner::User(user) => Self::ForgottenOfUser(user, before),
            ApiKeyOwner::Organization(organization) => {
                Self::ForgottenOfOrganization(organization, before)
            }
        }
    }

    /// Everybody's keys that have been over for so long that nobody presents them any more.
    #[must_use]
    pub fn all_forgotten(now: Timestamp) -> [Self; 2] {
        let before = now.minus(KEPT_FOR);
        [Self::RevokedBefore(before), Self::ExpiredBefore(before)]
    }
}

impl ApiKey {
    /// Tells whether its time is over.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Tells whether its former secret still works, as far as time decides.
    #[must_use]
    pub fn overlaps(&self, now: Timestamp) -> bool {
        self.previous_until.is_some_and(|end| now < end)
    }

    /// Until when a secret works if nobody changes anything; `None` when for good.
    ///
    /// # Errors
    /// Why it does not work.
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
        if !self.overlaps(now) {
            return Err(ApiKeyRefusal::Revoked);
        }
        let ends = self.previous_until.into_iter().chain(self.expires_at);
        Ok(ends.min())
    }

    /// The key with a new secret; the one it has goes on working for the overlap. Without an overlap every former secret
    /// ends at once, as is wanted of one that is known to strangers.
    ///
    /// # Errors
    /// `INVALID_STATE` for a key that is not in use; `CONFLICT` while its former secret still works, unless all are to end.
    pub fn rotate(&self, secret: &ApiKeySecret, overlap: Duration, now: Timestamp) -> Result<Self> {
        if self.status != ApiKeyStatus::Active {
            return Err(IllegalMove::new(self.status, [ApiKeyStatus::Active]).into());
        }
        if self.has_expired(now) {
            return Err(Error::refused(Code::InvalidState, "The key has expired."));
        }
        if self.overlaps(now) && !overlap.is_zero() {
            let message =
                "The former secret of the key still works; rotate with an overlap of 0 to end it.";
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

    /// Tells whether its use at this instant is to be noted: when the last one that was is a minute ago.
    #[must_use]
    pub fn use_is_due(&self, now: Timestamp) -> bool {
        self.last_used_at
            .is_none_or(|last| now.since(last) >= USE_NOTED_EVERY)
    }
}

text_enum! {
    /// Why a key is not accepted, in the words of `POST /api/core/apikey/validate`.
    pub enum ApiKeyRefusal {
        /// There is no such key.
        NotFound = "NOT_FOUND",
        /// Its time is over.
        Expired = "EXPIRED",
        /// It was revoked, disabled or rotated, or its owner may not act any more.
        Revoked = "REVOKED",
        /// It was used too often.
        RateLimited = "RATE_LIMITED",
    }
}

/// What every key begins with.
pub const API_KEY_PREFIX: &str = "core_";

/// The characters of the checksum: 6 of 62 hold the 32 bits of a CRC.
const CHECKSUM: usize = 6;

/// The most characters of a maker's prefix.
const LONGEST_PREFIX: usize = 32;

/// How much of a key is kept for people to recognise it by.
const START: usize = 12;

text! {
    /// What the maker of a key wants it to begin with, after `core_`: 1 to 32 characters `[A-Za-z0-9_-]`.
    KeyPrefix, prefix, {
        "type": "string", "minLength": 1, "maxLength": LONGEST_PREFIX,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["ci_"],
    }
}

fn prefix(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match text.len() {
        0 => Err(TextError::TooShort),
        length if length > LONGEST_PREFIX => Err(TextError::TooLong),
        _ if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// The secret text of a key. It is shown to its maker once; what is stored of it is its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

// The secret stays out of logs.
impl std::fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeySecret(..)")
    }
}

impl ApiKeySecret {
    /// A new secret.
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

    /// Reads a text that is presented as a key; `None` when it cannot be one: its checksum says so of one that was
    /// mistyped or made up, so that nobody looks for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(API_KEY_PREFIX)?;
        let length = rest.len().checked_sub(TOKEN_LENGTH + CHECKSUM)?;
        // Only after this are positions those of characters.
        if !text.is_ascii() || length > LONGEST_PREFIX {
            return None;
        }
        let (own, secret) = rest.split_at(length);
        let (body, found) = text.split_at(text.len() - CHECKSUM);
        let good = (own.is_empty() || prefix(own).is_ok())
            && secret.bytes().all(|b| b.is_ascii_alphanumeric())
            && checksum(body) == found;
        good.then(|| Self(text.to_owned()))
    }

    /// The text, to be shown to its maker.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the key is recognised by.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// The first 12 characters, for people to recognise it by.
    #[must_use]
    pub fn start(&self) -> String {
        self.0.chars().take(START).collect()
    }
}

/// The CRC-32 of a text in base 62, most significant digit first.
fn checksum(text: &str) -> String {
    let mut rest = crc32(text.as_bytes());
    let mut digits = [0_u8; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[usize::try_from(rest % 62).unwrap_or_default()];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

/// The CRC-32 of IEEE 802.3, as of zip and Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let shifted = crc >> 1;
            if crc & 1 == 1 {
                shifted ^ 0xEDB8_8320
            } else {
                shifted
            }
        })
    });
    !crc
}

text_enum! {
    /// Whether a key is accepted, as far as its owner decides.
    pub enum ApiKeyStatus {
        /// It is.
        Active = "active",
        /// Not until it is enabled again.
        Disabled = "disabled",
        /// Never again. It is kept for a while, so that who still presents it learns why it is refused.
        Revoked = "revoked",
    }
}

state_machine! {
    /// What happens to a key. It is created `active`.
    pub enum ApiKeyEvent moves ApiKeyStatus {
        /// Its owner takes it out of use.
        Disable = "api_key.disabled": [Active] => Disabled;
        /// Its owner takes it into use again.
        Enable = "api_key.enabled": [Disabled] => Active;
        /// Its owner deletes it.
        Revoke = "api_key.deleted": [Active, Disabled] => Revoked;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::strategy::some;
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

    /// A secret as one would keep a list of them: from when on it does not work any more.
    struct Known {
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
            ..some::<ApiKey>(1).remove(0)
        }
    }

    proptest! {
        #[test]
        fn exactly_the_last_secret_and_one_within_its_overlap_work_while_the_key_is_in_use(
            lifetime in prop::option::of(prop::sample::select(vec![86_400_u64, 172_800])),
            steps in prop::collection::vec(some_step(), 0..20),
        ) {
            let entropy = SeededEntropy::new(3);
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let first = ApiKeySecret::generate(None, &entropy);
            let mut key = new_key(&first, now, lifetime);
            let mut known = vec![Known { hash: first.hash(), until: None }];
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
                            known.push(Known { hash: secret.hash(), until: None });
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
    fn each_reason_has_its_word() {
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
    fn the_checksum_is_the_crc_32_everybody_knows() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), "DtjbWO");
        assert_eq!(checksum("").len(), CHECKSUM);
    }

    #[test]
    fn a_key_is_core_then_43_characters_then_a_checksum_and_its_debug_form_hides_it() {
        let key = ApiKeySecret::generate(None, &SeededEntropy::new(1));
        assert_eq!(key.expose().len(), 5 + 43 + 6);
        assert_eq!(key.start(), key.expose()[..12]);
        assert_eq!(format!("{key:?}"), "ApiKeySecret(..)");
    }

    proptest! {
        #[test]
        fn every_key_that_is_made_is_read_back(seed in any::<u64>(), prefix in prop::option::of(any::<KeyPrefix>())) {
            let key = ApiKeySecret::generate(prefix.as_ref(), &SeededEntropy::new(seed));
            let prefix = prefix.as_ref().map_or("", KeyPrefix::as_str);
            let start = format!("core_{prefix}");
            prop_assert!(key.expose().starts_with(&start));
            prop_assert_eq!(ApiKeySecret::parse(key.expose()), Some(key));
        }

        #[test]
        fn a_key_with_one_character_changed_missing_or_swapped_is_none(
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
        fn any_text_is_read_without_harm(text in "(core_)?\\PC{0,60}") {
            prop_assert_eq!(ApiKeySecret::parse(&text), None);
        }
    }

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_are_made(events in prop::collection::vec(any::<ApiKeyEvent>(), 0..12)) {
            assert_only_table_moves(ApiKeyStatus::Active, &events);
        }
    }
}
