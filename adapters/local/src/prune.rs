//! Deletion of outdated deployments.
//!
//! Deletion has three steps, and a crash can happen after each:
//!
//! 1. A mark records that the deployment was replaced, so that a late retry of its request does not deploy it again.
//! 2. If the preview ends, its address is deleted.
//! 3. The files are moved to the staging folder and deleted.
//!
//! After a crash, the next deployment of the project or the daily clean-up continues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::port::ResourceRef;
use core_domain::registry::{PRODUCTION, ResourceType};
use serde::{Deserialize, Serialize};

use crate::config::{FaultMoment, LocalConfig, Retention};
use crate::data_dir::{DataDir, PublishLock, StagingPath};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, read_json, to_json};
use crate::site::{BRANCHES, DEPLOYMENTS, Deployment, Pointer, deployment, pointer};
use crate::site_content;

const KIND: &str = ResourceType::Pages.as_str();
const REPLACED: &str = "replaced";

/// How long the mark of a replaced and deleted deployment is kept. This is longer than any job retries its requests.
const MARK_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The mark of a deployment that was live, was replaced by a later one, and was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplacementMark {
    /// The address label of its branch.
    pub(crate) label: String,
    removed_at: Timestamp,
}

impl ReplacementMark {
    pub(crate) fn read(data: &DataDir, project: &str, id: &str) -> Result<Option<Self>> {
        read_json(data, &[KIND, project, REPLACED, id])
    }
}

/// Deletes the outdated deployments of a project. Never deletes a live deployment, except when its preview ends.
pub(crate) fn prune(
    data: &DataDir,
    project: &ResourceRef,
    now: Timestamp,
    config: &LocalConfig,
) -> Result<()> {
    let pruning = Pruning {
        data,
        project,
        now,
        config,
    };
    // Records never change, and later deployments are not in this list. Only the pointers need the lock.
    let branches = pruning.branches()?;
    let lock = data.lock_publish()?;
    let mut all = Vec::new();
    for (label, deployments) in branches {
        let shown = pointer(data, &project.name, &label)?;
        let outdated = find_outdated(&label, shown.as_ref(), deployments, config.retention, now);
        all.push((label, outdated));
    }
    end_oldest_previews(&mut all, config.retention.previews);
    let mut removed = Vec::new();
    for (label, outdated) in all {
        pruning.remove(&label, outdated, &lock, &mut removed)?;
    }
    pruning.remove_expired_marks()?;
    // Releases the lock before the files are deleted, because a deletion can take long.
    drop(lock);
    if !removed.is_empty() {
        drop(removed);
        site_content::sweep(data, &project.name)?;
    }
    pruning.free_space()
}

/// Ends the previews that were deployed longest ago until at most `most` are left. A preview with a deployment in
/// progress counts but is never ended.
fn end_oldest_previews(branches: &mut [(String, OutdatedParts)], most: usize) {
    let previews = branches.iter_mut().filter_map(|(label, outdated)| {
        let preview = outdated.preview.clone()?;
        Some((preview, label.as_str(), outdated))
    });
    let mut previews: Vec<_> = previews.collect();
    previews.sort_by(|(a, a_label, _), (b, b_label, _)| {
        let newest_first = b.created_at.cmp(&a.created_at);
        newest_first.then_with(|| a_label.cmp(b_label))
    });
    for (preview, _, outdated) in previews.into_iter().skip(most) {
        if !preview.is_pinned {
            outdated.ends_address = true;
            outdated.replaced.push(preview.deployment);
        }
    }
}

/// A stored deployment.
#[derive(Clone, Debug)]
struct StoredDeployment {
    id: String,
    record: Deployment,
    /// Whether the deployment has a replacement mark. If it still exists, the deletion was interrupted.
    is_marked: bool,
}

/// The parts of a branch that pruning deletes.
#[derive(Debug, Default, PartialEq, Eq)]
struct OutdatedParts {
    /// Whether the address of the branch is deleted.
    ends_address: bool,
    /// The ids of deployments that were replaced by a later one.
    replaced: Vec<String>,
    /// The ids of old deployments that were interrupted and never finished.
    abandoned: Vec<String>,
    /// The preview that the branch keeps; `None` for `production` and for a preview that ends.
    preview: Option<Preview>,
}

/// A preview that has not reached its maximum age.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Preview {
    /// The id of the live deployment.
    deployment: String,
    created_at: Timestamp,
    /// Whether a later deployment is about to go live.
    is_pinned: bool,
}

/// Applies the retention rules to one branch.
fn find_outdated(
    label: &str,
    shown: Option<&Pointer>,
    mut deployments: Vec<StoredDeployment>,
    keep: Retention,
    now: Timestamp,
) -> OutdatedParts {
    deployments.sort_by_key(|known| std::cmp::Reverse(known.record.sequence));
    let is_preview = label != PRODUCTION;
    let kept_previous = if is_preview { 0 } else { keep.previous };
    let mut outdated = OutdatedParts::default();
    let mut previous = 0;
    let mut unfinished = false;
    for StoredDeployment {
        id,
        record,
        is_marked: marked,
    } in deployments
    {
        let too_old = now.since(record.created_at) > keep.preview_age;
        let expired = too_old && is_preview;
        match shown {
            Some(shown) if shown.deployment == id => {
                // A deployment in progress keeps the address.
                outdated.ends_address = expired && !unfinished;
                if outdated.ends_address {
                    outdated.replaced.push(id);
                } else if is_preview {
                    outdated.preview = Some(Preview {
                        deployment: id,
                        created_at: record.created_at,
                        is_pinned: unfinished,
                    });
                }
            }
            _ if marked => outdated.replaced.push(id),
            Some(shown) if record.sequence <= shown.sequence => {
                previous += 1;
                if previous > kept_previous {
                    outdated.replaced.push(id);
                }
            }
            _ if too_old => outdated.abandoned.push(id),
            _ => unfinished = true,
        }
    }
    outdated
}

struct Pruning<'a> {
    data: &'a DataDir,
    project: &'a ResourceRef,
    now: Timestamp,
    config: &'a LocalConfig,
}

impl Pruning<'_> {
    /// Returns the deployments of every branch, by address label.
    fn branches(&self) -> Result<BTreeMap<String, Vec<StoredDeployment>>> {
        let name = self.project.name.as_str();
        let marked = self.data.list(&[KIND, name, REPLACED])?;
        let marked: BTreeSet<String> = marked.into_iter().collect();
        let mut branches: BTreeMap<String, Vec<StoredDeployment>> = BTreeMap::new();
        for id in self.data.list(&[KIND, name, DEPLOYMENTS])? {
            let Some(record) = self.record(&id)? else {
                continue;
            };
            let known = StoredDeployment {
                is_marked: marked.contains(&id),
                id,
                record,
            };
            let label = known.record.label.clone();
            branches.entry(label).or_default().push(known);
        }
        Ok(branches)
    }

    /// Reads the record of a deployment. Returns `None` if it was deleted concurrently. A damaged record is logged and
    /// kept, so that it does not block the others.
    fn record(&self, id: &str) -> Result<Option<Deployment>> {
        match deployment(self.data, &self.project.name, id) {
            Err(LocalError::Damaged(cause)) => {
                tracing::warn!(%cause, "a damaged deployment is not deleted");
                Ok(None)
            }
            found => found,
        }
    }

    fn remove(
        &self,
        label: &str,
        outdated: OutdatedParts,
        lock: &PublishLock,
        removed: &mut Vec<StagingPath>,
    ) -> Result<()> {
        let name = self.project.name.as_str();
        for id in &outdated.replaced {
            self.mark_replaced(label, id)?;
        }
        if outdated.ends_address {
            self.data.remove_file(&[KIND, name, BRANCHES, label])?;
        }
        for id in outdated.replaced.iter().chain(&outdated.abandoned) {
            let faults = &self.config.faults;
            faults.at("deploy", self.project, FaultMoment::Pruning)?;
            let parts = [KIND, name, DEPLOYMENTS, id];
            if self.data.path(&parts)?.try_exists()? {
                removed.push(self.data.detach(&parts, lock)?);
            }
        }
        Ok(())
    }

    /// Deletes replaced deployments of `production`, oldest first, until the sites of the owner fit into their disk
    /// space or no replaced deployment is left.
    fn free_space(&self) -> Result<()> {
        let Some(manifest) = Manifest::read(self.data, self.project)? else {
            return Ok(());
        };
        let name = self.project.name.as_str();
        if self.config.site_bytes_per_owner == u64::MAX || self.has_room(&manifest)? {
            return Ok(());
        }
        for id in self.replaced_of_production()? {
            if self.has_room(&manifest)? {
                break;
            }
            let lock = self.data.lock_publish()?;
            let outdated = OutdatedParts {
                replaced: vec![id],
                ..OutdatedParts::default()
            };
            let mut removed = Vec::new();
            self.remove(PRODUCTION, outdated, &lock, &mut removed)?;
            drop(lock);
            drop(removed);
            site_content::sweep(self.data, name)?;
        }
        Ok(())
    }

    fn has_room(&self, manifest: &Manifest) -> Result<bool> {
        let bytes = site_content::bytes_on_disk(self.data, &manifest.owner)?;
        Ok(bytes <= self.config.site_bytes_per_owner)
    }

    /// Returns the ids of the replaced deployments of `production`, oldest first.
    fn replaced_of_production(&self) -> Result<Vec<String>> {
        let name = self.project.name.as_str();
        let Some(shown) = pointer(self.data, name, PRODUCTION)? else {
            return Ok(Vec::new());
        };
        let mut known = self.branches()?.remove(PRODUCTION).unwrap_or_default();
        known.retain(|known| known.record.sequence < shown.sequence);
        known.sort_by_key(|known| known.record.sequence);
        Ok(known.into_iter().map(|known| known.id).collect())
    }

    fn mark_replaced(&self, label: &str, id: &str) -> Result<()> {
        let name = self.project.name.as_str();
        self.data.ensure_dir(&[KIND, name, REPLACED])?;
        let replaced = ReplacementMark {
            label: label.to_owned(),
            removed_at: self.now,
        };
        let parts = [KIND, name, REPLACED, id];
        self.data.replace_file(&parts, &[&to_json(&replaced)?])
    }

    /// Deletes the marks of deployments that were deleted long ago.
    fn remove_expired_marks(&self) -> Result<()> {
        let name = self.project.name.as_str();
        for id in self.data.list(&[KIND, name, REPLACED])? {
            let found = ReplacementMark::read(self.data, name, &id)?;
            let old = found.is_some_and(|found| self.now.since(found.removed_at) > MARK_TTL);
            let parts = [KIND, name, DEPLOYMENTS, &id];
            if old && !self.data.path(&parts)?.try_exists()? {
                self.data.remove_file(&[KIND, name, REPLACED, &id])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const KEEP: Retention = Retention {
        previous: 2,
        previews: 2,
        preview_age: Duration::from_secs(30 * 24 * 60 * 60),
    };

    /// Returns deployments with ascending sequence, each created the given number of days ago.
    fn stored_deployments(days_ago: &[u32]) -> Vec<StoredDeployment> {
        let now = now();
        let one = |(n, days): (usize, &u32)| StoredDeployment {
            id: (n + 1).to_string(),
            record: Deployment {
                deployment_key: n.to_string(),
                label: String::new(),
                sequence: n as u64 + 1,
                index: String::new(),
                created_at: Timestamp::from_millis(
                    now.millis() - i64::try_from((DAY * *days).as_millis()).unwrap(),
                ),
            },
            is_marked: false,
        };
        days_ago.iter().enumerate().map(one).collect()
    }

    fn now() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn pointer_to(sequence: u64) -> Pointer {
        Pointer {
            deployment: sequence.to_string(),
            sequence,
            index: String::new(),
        }
    }

    #[test]
    fn production_keeps_previous_deployments_of_any_age() {
        let all = stored_deployments(&[90, 80, 70, 60, 50]);
        let found = find_outdated(PRODUCTION, Some(&pointer_to(5)), all, KEEP, now());
        assert_eq!(found.replaced, ["2", "1"]);
        assert!(!found.ends_address && found.abandoned.is_empty());
    }

    #[test]
    fn live_deployment_is_always_kept() {
        let keep = Retention {
            previous: 0,
            previews: 0,
            preview_age: Duration::ZERO,
        };
        let found = find_outdated(
            PRODUCTION,
            Some(&pointer_to(2)),
            stored_deployments(&[9, 8]),
            keep,
            now(),
        );
        assert_eq!(found.replaced, ["1"]);
    }

    #[test]
    fn deployment_in_progress_is_kept() {
        for label in [PRODUCTION, "preview"] {
            let found = find_outdated(
                label,
                Some(&pointer_to(1)),
                stored_deployments(&[40, 1]),
                KEEP,
                now(),
            );
            assert_eq!(
                (found.ends_address, found.replaced.len()),
                (false, 0),
                "{label}"
            );
            assert!(found.preview.is_none_or(|preview| preview.is_pinned));
            let found = find_outdated(label, None, stored_deployments(&[1]), KEEP, now());
            assert_eq!(found, OutdatedParts::default(), "{label}");
        }
    }

    #[test]
    fn old_unfinished_deployment_is_deleted() {
        let found = find_outdated(
            PRODUCTION,
            Some(&pointer_to(1)),
            stored_deployments(&[50, 40]),
            KEEP,
            now(),
        );
        assert_eq!(found.abandoned, ["2"]);
        assert!(found.replaced.is_empty());
    }

    #[test]
    fn old_preview_is_deleted_with_its_address() {
        let found = find_outdated(
            "preview",
            Some(&pointer_to(2)),
            stored_deployments(&[60, 31]),
            KEEP,
            now(),
        );
        assert!(found.ends_address);
        assert_eq!(found.replaced, ["2", "1"]);
        let young = find_outdated(
            "preview",
            Some(&pointer_to(2)),
            stored_deployments(&[3, 2]),
            KEEP,
            now(),
        );
        assert_eq!(
            (young.ends_address, &*young.replaced),
            (false, &["1".to_owned()][..])
        );
    }

    /// Returns a branch whose preview was deployed the given number of days ago.
    fn preview(label: &str, days_ago: u32, is_pinned: bool) -> (String, OutdatedParts) {
        let StoredDeployment { id, record, .. } = stored_deployments(&[days_ago]).remove(0);
        let preview = Some(Preview {
            deployment: id,
            created_at: record.created_at,
            is_pinned,
        });
        let outdated = OutdatedParts {
            preview,
            ..OutdatedParts::default()
        };
        (label.to_owned(), outdated)
    }

    fn labels_of_ended_previews(
        mut branches: Vec<(String, OutdatedParts)>,
        most: usize,
    ) -> Vec<String> {
        end_oldest_previews(&mut branches, most);
        let ended = branches.into_iter().filter(|(_, found)| found.ends_address);
        ended.map(|(label, _)| label).collect()
    }

    #[test]
    fn oldest_previews_end_if_there_are_too_many() {
        let four = || {
            vec![
                preview("a", 2, false),
                preview("b", 9, false),
                preview("c", 1, false),
                preview("d", 5, false),
            ]
        };
        assert_eq!(labels_of_ended_previews(four(), 4), [""; 0]);
        assert_eq!(labels_of_ended_previews(four(), 3), ["b"]);
        assert_eq!(labels_of_ended_previews(four(), 2), ["b", "d"]);
        let live = (PRODUCTION.to_owned(), OutdatedParts::default());
        assert_eq!(
            labels_of_ended_previews(vec![live, preview("a", 1, false)], 1),
            [""; 0]
        );
    }

    #[test]
    fn preview_with_a_deployment_in_progress_is_kept() {
        let branches = vec![
            preview("a", 9, true),
            preview("b", 1, false),
            preview("c", 2, false),
        ];
        assert_eq!(labels_of_ended_previews(branches, 1), ["c"]);
    }

    #[test]
    fn marked_deployments_are_deleted_except_the_live_one() {
        let mut all = stored_deployments(&[3, 2, 1]);
        all[1].is_marked = true;
        all[2].is_marked = true;
        let found = find_outdated(PRODUCTION, Some(&pointer_to(3)), all, KEEP, now());
        assert_eq!(found.replaced, ["2"]);
    }
}
