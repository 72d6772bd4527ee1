//! Invalidates the session cache, by session, API key, platform, user or organization.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use core_domain::kernel::{ApiKeyId, OrganizationId, PlatformId, SessionId, UserId};

use super::authority::ResolvedCredential;

/// Maximum number of entries in a generation of the log.
const MAX_GENERATION_ENTRIES: usize = 8_192;

/// Invalidates the session cache of a gateway. Clones invalidate the same cache.
///
/// Call it when a session or an API key has ended, and when a platform is suspended or restored: after the change is
/// committed, and before it is acknowledged.
///
/// A result that was requested before its session, key or platform was invalidated is never used afterwards, even if it
/// arrives later. Results for other credentials stay cached. A rejected credential has no subject: it is cached for at
/// most one second, and [`Invalidate::all`] invalidates it.
#[derive(Clone, Debug, Default)]
pub struct Invalidate(Arc<InvalidationLog>);

impl Invalidate {
    /// Invalidates the results for a session.
    pub fn session(&self, id: &SessionId) {
        self.0.record(Subject::Session(id));
    }

    /// Invalidates the results for an API key.
    pub fn api_key(&self, id: &ApiKeyId) {
        self.0.record(Subject::ApiKey(id));
    }

    /// Invalidates the results for every credential that acts for a platform.
    pub fn platform(&self, id: &PlatformId) {
        self.0.record(Subject::Platform(id));
    }

    /// Invalidates the results for every credential of a user.
    pub fn user(&self, id: &UserId) {
        self.0.record(Subject::User(id));
    }

    /// Invalidates the results for every credential that acts for an organization.
    pub fn organization(&self, id: &OrganizationId) {
        self.0.record(Subject::Organization(id));
    }

    /// Invalidates every result.
    pub fn all(&self) {
        self.0.record_all();
    }

    pub(super) fn log(&self) -> &InvalidationLog {
        &self.0
    }
}

/// A thing that a cached result depends on.
#[derive(Clone, Copy, Hash)]
enum Subject<'s> {
    Session(&'s SessionId),
    ApiKey(&'s ApiKeyId),
    Platform(&'s PlatformId),
    User(&'s UserId),
    Organization(&'s OrganizationId),
}

fn subjects(resolved: &ResolvedCredential) -> impl Iterator<Item = Subject<'_>> {
    let session = resolved.caller.session_id().map(Subject::Session);
    let api_key = resolved.caller.api_key_id().map(Subject::ApiKey);
    let platform = resolved.caller.platform_id().map(Subject::Platform);
    let user = resolved.caller.user_id().map(Subject::User);
    let organization = resolved.caller.membership();
    let organization = organization.map(|m| Subject::Organization(&m.organization_id));
    let subjects = [session, api_key, platform, user, organization];
    subjects.into_iter().flatten()
}

/// The last invalidation of each subject. Time is counted in epochs; every invalidation increments the epoch. A result
/// is requested in the current epoch. It is stale if one of its subjects was invalidated in a later epoch.
#[derive(Debug, Default)]
pub(super) struct InvalidationLog {
    epoch: AtomicU64,
    entries: RwLock<Entries>,
    hasher: RandomState,
}

/// The epochs of the last invalidations, by the hash of the subject. A collision invalidates both subjects.
///
/// The map consists of two generations of bounded size. When the newer one is full, the older one is dropped and
/// `floor` takes its place. Results whose entries were dropped are therefore stale.
#[derive(Debug, Default)]
struct Entries {
    recent: HashMap<u64, u64>,
    older: HashMap<u64, u64>,
    /// The highest epoch in `older`.
    older_last: u64,
    /// Every result that was requested before this epoch is stale.
    floor: u64,
}

impl Entries {
    fn insert(&mut self, subject: u64, epoch: u64) {
        if self.recent.len() >= MAX_GENERATION_ENTRIES {
            self.floor = self.floor.max(self.older_last);
            self.older = std::mem::take(&mut self.recent);
            self.older_last = epoch - 1;
        }
        self.recent.insert(subject, epoch);
    }

    fn is_later(&self, subject: u64, requested: u64) -> bool {
        let later = |entries: &HashMap<u64, u64>| {
            let epoch = entries.get(&subject);
            epoch.is_some_and(|epoch| *epoch > requested)
        };
        later(&self.recent) || later(&self.older)
    }
}

impl InvalidationLog {
    /// Returns the current epoch, in which the next result is requested.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Returns whether a result that was requested in the given epoch must not be used any more. Takes no lock if
    /// nothing was invalidated since.
    pub(super) fn is_stale(&self, requested: u64, resolved: Option<&ResolvedCredential>) -> bool {
        if self.epoch() == requested {
            return false;
        }
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        requested < entries.floor
            || resolved
                .into_iter()
                .flat_map(subjects)
                .any(|subject| entries.is_later(self.hasher.hash_one(subject), requested))
    }

    fn record(&self, subject: Subject<'_>) {
        let subject = self.hasher.hash_one(subject);
        self.advance(|entries, epoch| entries.insert(subject, epoch));
    }

    fn record_all(&self) {
        self.advance(|entries, epoch| {
            *entries = Entries {
                floor: epoch,
                ..Entries::default()
            };
        });
    }

    /// Writes an entry, then the next epoch. In this order, a reader that sees the new epoch also finds the entry.
    fn advance(&self, write: impl FnOnce(&mut Entries, u64)) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.epoch() + 1;
        write(&mut entries, epoch);
        self.epoch.store(epoch, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::{Caller, Membership, OrganizationId, Role, UserId};
    use proptest::prelude::*;

    use super::*;

    fn of(session: &str, platform: &str, key: Option<&str>) -> ResolvedCredential {
        let membership = Membership {
            organization_id: OrganizationId::parse("o").unwrap(),
            platform_id: PlatformId::parse(platform),
            roles: Role::OWNER.into(),
            permissions: Role::OWNER.permissions(),
            is_operator: false,
        };
        let caller = match key.and_then(ApiKeyId::parse) {
            Some(key_id) => Caller::ApiKey {
                key_id,
                user_id: None,
                membership: Some(membership),
            },
            None => Caller::User {
                user_id: UserId::parse("u").unwrap(),
                session_id: SessionId::parse(session),
                service: None,
                membership: Some(membership),
            },
        };
        ResolvedCredential {
            caller: Arc::new(caller),
            suspended: false,
            expires_at: None,
            requests_per_minute: None,
        }
    }

    #[test]
    fn only_earlier_results_for_the_invalidated_subject_are_stale() {
        let invalidate = Invalidate::default();
        let log = invalidate.log();
        let (by_session, by_key) = (of("s-1", "p-1", None), of("", "p-1", Some("k-1")));
        let other = of("s-2", "p-2", None);
        let steps: [(&ResolvedCredential, &dyn Fn()); 4] = [
            (&by_session, &|| {
                invalidate.session(&SessionId::parse("s-1").unwrap())
            }),
            (&by_session, &|| {
                invalidate.platform(&PlatformId::parse("p-1").unwrap())
            }),
            (&by_key, &|| {
                invalidate.platform(&PlatformId::parse("p-1").unwrap())
            }),
            (&by_key, &|| {
                invalidate.api_key(&ApiKeyId::parse("k-1").unwrap())
            }),
        ];
        for (mine, invalidate_mine) in steps {
            let before = log.epoch();
            invalidate_mine();
            assert!(log.is_stale(before, Some(mine)));
            assert!(!log.is_stale(before, Some(&other)));
            assert!(!log.is_stale(before, None));
            assert!(!log.is_stale(log.epoch(), Some(mine)));
        }
        let before = log.epoch();
        invalidate.all();
        assert!(log.is_stale(before, Some(&other)) && log.is_stale(before, None));
        assert!(!log.is_stale(log.epoch(), Some(&other)));
    }

    #[test]
    fn equal_ids_of_different_kinds_are_different_subjects() {
        let invalidate = Invalidate::default();
        let before = invalidate.log().epoch();
        invalidate.platform(&PlatformId::parse("x").unwrap());
        let resolved = of("x", "y", None);
        assert!(!invalidate.log().is_stale(before, Some(&resolved)));
    }

    #[test]
    fn the_log_is_bounded_and_results_of_dropped_entries_are_stale() {
        let invalidate = Invalidate::default();
        let log = invalidate.log();
        let before = log.epoch();
        invalidate.session(&SessionId::parse("first").unwrap());
        for n in 0..1_000_000 {
            invalidate.session(&SessionId::parse(&n.to_string()).unwrap());
        }
        let entries = log.entries.read().unwrap();
        assert!(entries.recent.len() + entries.older.len() <= 2 * MAX_GENERATION_ENTRIES);
        drop(entries);
        assert!(log.is_stale(before, Some(&of("first", "p", None))));
        let last = of("999999", "p", None);
        assert!(log.is_stale(log.epoch() - 1, Some(&last)));
        assert!(!log.is_stale(log.epoch(), Some(&last)));
    }

    proptest! {
        #[test]
        fn a_result_is_stale_if_and_only_if_its_subject_was_invalidated_later(
            steps in proptest::collection::vec((0_u8..4, 0_u8..5), 1..60), asked_at in 0_usize..60,
        ) {
            let invalidate = Invalidate::default();
            let answers = [of("0", "1", None), of("", "1", Some("2"))];
            let asked_at = asked_at.min(steps.len());
            let mut asked = 0;
            let mut expected = [false, false];
            for (at, (kind, id)) in steps.iter().enumerate() {
                if at == asked_at {
                    asked = invalidate.log().epoch();
                    expected = [false, false];
                }
                let text = id.to_string();
                match kind {
                    0 => invalidate.session(&SessionId::parse(&text).unwrap()),
                    1 => invalidate.platform(&PlatformId::parse(&text).unwrap()),
                    2 => invalidate.api_key(&ApiKeyId::parse(&text).unwrap()),
                    _ => invalidate.all(),
                }
                let subject = kind == id && *kind < 3;
                expected[0] |= *kind == 3 || (subject && *kind != 2);
                expected[1] |= *kind == 3 || (subject && *kind != 0);
            }
            if asked_at == steps.len() {
                asked = invalidate.log().epoch();
                expected = [false, false];
            }
            let stale = answers.each_ref().map(|answer| invalidate.log().is_stale(asked, Some(answer)));
            prop_assert_eq!(stale, expected);
        }
    }
}
