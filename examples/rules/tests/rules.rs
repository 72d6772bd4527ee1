//! Property tests: the rules hold for every record and every command, not only for hand-picked examples.

use std::collections::VecDeque;
use std::fmt::Debug;

use core_domain::kernel::{Machine, Name, Patch, PlatformId, Reason, Slug, Timestamp};
use core_domain::provisioning::{JobLane, LaneKey};
use core_domain::registry::{
    CreatePlatform, EntityEvent, EntityStatus, Platform, PlatformEvent, PlatformOwner,
    PlatformRefusal, PlatformStatus, UpdatePlatform,
};
use core_domain::stacks::{VersionEvent, VersionStatus};
use core_domain::testing::strategies::from_schema;
use core_rules::{MIN_ARCHIVE_AGE, may_be_archived};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

/// Returns whether no event leads out of a status.
fn is_terminal<E: Machine + Debug>(status: E::Status) -> bool {
    E::TRANSITIONS
        .iter()
        .all(|row| row.event.next(status).is_err())
}

#[test]
fn deleted_entities_and_deprecated_versions_never_change_their_status() {
    assert!(is_terminal::<EntityEvent>(EntityStatus::Deleted));
    assert!(is_terminal::<VersionEvent>(VersionStatus::Deprecated));
    assert!(!is_terminal::<EntityEvent>(EntityStatus::Suspended));
}

proptest! {
    #[test]
    fn a_platform_changes_status_only_by_the_table_and_not_while_it_is_purged(
        platform: Platform,
        event in select(PlatformEvent::ALL),
        reason: Option<Reason>,
        now: Timestamp,
    ) {
        let moved = platform.clone().after(event, reason.as_ref(), now);
        if platform.purging {
            prop_assert_eq!(moved, Err(PlatformRefusal::Purging));
        } else if let Ok(moved) = moved {
            prop_assert_eq!(event.next(platform.status), Ok(moved.status));
            prop_assert_eq!(moved.deleted_at.is_some(), moved.status == PlatformStatus::Deleted);
            prop_assert_eq!((moved.id, moved.slug), (platform.id, platform.slug));
        }
    }

    #[test]
    fn a_new_platform_is_active_and_has_the_requested_values(
        command in from_schema::<CreatePlatform>(),
        id: PlatformId,
        now: Timestamp,
    ) {
        let made = Platform::create(id, PlatformOwner::default(), command.clone(), now);
        prop_assert_eq!(made.status, PlatformStatus::Active);
        prop_assert!(!made.is_suspended() && !may_be_archived(&made, now));
        prop_assert_eq!((made.name, made.slug, made.tier), (command.name, command.slug, command.tier));
    }

    #[test]
    fn only_platforms_that_were_cancelled_long_ago_may_be_archived(platform: Platform, now: Timestamp) {
        if may_be_archived(&platform, now) {
            prop_assert_eq!(platform.status, PlatformStatus::Cancelled);
            prop_assert!(now >= platform.cancelled_at.unwrap().plus(MIN_ARCHIVE_AGE));
            let restored = platform.after(PlatformEvent::Restore, None, now);
            prop_assert!(restored.is_err() || !may_be_archived(&restored.unwrap(), now));
        }
    }

    #[test]
    fn a_text_is_a_slug_if_its_length_and_all_its_characters_are_allowed(text in "[a-zA-Z0-9_. -]{0,70}", slug: Slug) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_slug = (1..=63).contains(&text.len()) && text.chars().all(fits);
        prop_assert_eq!(Slug::parse(&text).is_ok(), is_slug);
        prop_assert_eq!(Slug::parse(slug.as_str()), Ok(slug));
    }

    #[test]
    fn a_lane_is_a_queue_with_two_ends(lane: LaneKey, at_the_front in prop::collection::vec(any::<bool>(), 0..40)) {
        let (mut lane, mut model) = (JobLane::new(lane), VecDeque::new());
        let mut positions = Vec::new();
        for (job, at_the_front) in at_the_front.into_iter().enumerate() {
            if at_the_front {
                positions.push((lane.front_position(), job));
                model.push_front(job);
            } else {
                positions.push((lane.tail_position(), job));
                model.push_back(job);
            }
        }
        positions.sort_unstable();
        prop_assert!(positions.into_iter().map(|(_, job)| job).eq(model));
    }

    #[test]
    fn a_patch_keeps_clears_or_sets_a_field(patch: Patch<Name>, before: Option<Name>) {
        let mut after = before.clone();
        patch.clone().apply(&mut after);
        let expected = match patch {
            Patch::Keep => before,
            Patch::Clear => None,
            Patch::Set(name) => Some(name),
        };
        prop_assert_eq!(after, expected);
    }
}

#[test]
fn a_patch_distinguishes_absent_null_and_a_value() {
    let read = |body| {
        serde_json::from_value::<UpdatePlatform>(body)
            .unwrap()
            .repo_name
    };
    assert_eq!(read(json!({})), Patch::Keep);
    assert_eq!(read(json!({ "repoName": null })), Patch::Clear);
    assert!(
        matches!(read(json!({ "repoName": "shop" })), Patch::Set(name) if name.as_str() == "shop")
    );
}
