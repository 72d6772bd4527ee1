//! Which key signs, which are published, and when the next one is made. Keys are given oldest first.

use std::borrow::Borrow;
use std::time::Duration;

use super::SigningKey;
use crate::kernel::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long tokens are signed with a key.
const ACTIVE_FOR: Duration = DAY.saturating_mul(30);

/// How long a key is published before tokens are signed with it, so that everybody has it by then.
const PUBLISHED_BEFORE: Duration = DAY;

/// How long a key is published after the next one took its place; every token it signed is over by then.
const PUBLISHED_AFTER: Duration = DAY;

/// The keys that tokens may be signed with now, best first: the newest that is in use, and those before it that are still
/// published. Empty when there is no key at all.
#[must_use]
pub fn keys_to_sign_with<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Vec<&K> {
    let published = published_keys(keys, now).iter().rev();
    let in_use = |key: &&K| (*key).borrow().active_from <= now;
    let mut candidates: Vec<&K> = published.filter(in_use).collect();
    if candidates.is_empty() {
        // After a clock was set back all may begin in the future.
        candidates.extend(keys.first());
    }
    candidates
}

/// The keys that signatures are checked with now.
#[must_use]
pub fn published_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[retired(keys, now)..]
}

/// The keys nobody needs any more.
#[must_use]
pub fn retired_keys<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> &[K] {
    &keys[..retired(keys, now)]
}

/// How many keys are retired: those whose successor has taken their place for long enough.
fn retired<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> usize {
    let successors = keys.iter().skip(1);
    let gone = |key: &&K| now >= (*key).borrow().active_from.plus(PUBLISHED_AFTER);
    successors.take_while(gone).count()
}

/// From when on tokens are signed with the next key, if it is time to make it.
#[must_use]
pub fn next_key_begins<K: Borrow<SigningKey>>(keys: &[K], now: Timestamp) -> Option<Timestamp> {
    let Some(last) = keys.last() else {
        return Some(now);
    };
    let begins = last.borrow().active_from.plus(ACTIVE_FOR);
    let due = now.plus(PUBLISHED_BEFORE) >= begins;
    due.then(|| begins.max(now.plus(PUBLISHED_BEFORE)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn current_key(keys: &[SigningKey], now: Timestamp) -> Option<&SigningKey> {
        keys_to_sign_with(keys, now).first().copied()
    }

    fn start() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn key(generation: usize, now: Timestamp, active_from: Timestamp) -> SigningKey {
        SigningKey {
            kid: generation.to_string(),
            generation: i64::try_from(generation).unwrap(),
            public_key: String::new(),
            sealed_private_key: String::new(),
            active_from,
            created_at: now,
        }
    }

    proptest! {
        #[test]
        fn however_seldom_anybody_looks_a_key_is_published_a_day_before_and_after_its_use(
            hours in prop::collection::vec(0_u64..2_000, 1..60)
        ) {
            let mut keys: Vec<SigningKey> = Vec::new();
            let mut now = start();
            for hours in hours {
                now = now.plus(Duration::from_secs(hours * 3_600));
                if let Some(begins) = next_key_begins(&keys, now) {
                    prop_assert!(keys.is_empty() || begins >= now.plus(DAY));
                    keys.push(key(keys.len(), now, begins));
                }
                prop_assert_eq!(next_key_begins(&keys, now), None, "one at a time");
                let current = current_key(&keys, now).unwrap();
                prop_assert!(current.active_from <= now);
                prop_assert!(published_keys(&keys, now).contains(current));
                prop_assert!(published_keys(&keys, now.plus(DAY)).contains(current));
                prop_assert_eq!(published_keys(&keys, now).last(), keys.last());
                let retired = retired_keys(&keys, now).len();
                prop_assert!(published_keys(&keys, now).len() <= 3);
                keys.drain(..retired);
            }
        }
    }

    #[test]
    fn a_key_signs_for_thirty_days_and_the_next_is_made_a_day_before() {
        let day = |days| start().plus(DAY * days);
        let mut keys = vec![key(1, start(), start())];
        assert_eq!(next_key_begins(&keys, day(28)), None);
        assert_eq!(next_key_begins(&keys, day(29)), Some(day(30)));
        keys.push(key(2, day(29), day(30)));
        for (now, signs, published) in [(29, "1", 2), (30, "2", 2), (31, "2", 1)] {
            assert_eq!(current_key(&keys, day(now)).unwrap().kid, signs);
            assert_eq!(published_keys(&keys, day(now)).len(), published);
        }
    }
}
