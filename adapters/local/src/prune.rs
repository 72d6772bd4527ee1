//! Removing deployments that nothing needs any more.
//!
//! Three steps, each of which may be the last before a crash: a mark says that the deployment was replaced, so that a late
//! repetition of its request does not bring it back; an address that ends is taken away; the files are moved out of their
//! place and removed. The next deployment of the project, or the daily clean-up, goes on where it stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_domain::kernel::Timestamp;
use core_domain::port::ResourceRef;
use core_domain::registry::{PRODUCTION, ResourceType};
use serde::{Deserialize, Serialize};

use crate::config::{LocalConfig, Moment, Retention};
use crate::data_dir::{DataDir, Exclusive, Staged};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, read_json, to_json};
use crate::site::{BRANCHES, DEPLOYMENTS, Deployment, Pointer, deployment, pointer};
use crate::site_content;

const KIND: &str = ResourceType::Pages.as_str();
const REPLACED: &str = "replaced";

/// How long it is remembered that a deployment was replaced and removed: longer than any job repeats its requests.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// That a deployment was served, replaced by a later one and removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replaced {
    /// The label of its branch in addresses.
    pub(crate) label: String,
    removed_at: Timestamp,
}

impl Replaced {
    pub(crate) fn read(data: &DataDir, project: &str, id: &str) -> Result<Option<Self>> {
        read_json(data, &[KIND, project, REPLACED, id])
    }
}

/// Removes the deployments of a project that are not to be kept; never one that an address shows.
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
    // Records never change, and those made from here on are not in the list: only the pointers need the lock.
    let branches = pruning.branches()?;
    let lock = data.exclusive()?;
    let mut all = Vec::new();
    for (label, deployments) in branches {
        let shown = pointer(data, &project.name, &label)?;
        let outdated = outdated(&label, shown.as_ref(), deployments, config.retention, now);
        all.push((label, outdated));
    }
    end_oldest_previews(&mut all, config.retention.previews);
    let mut removed = Vec::new();
    for (label, outdated) in all {
        pruning.remove(&label, outdated, &lock, &mut removed)?;
    }
    pruning.forget()?;
    // Others need not wait until the files are gone too.
    drop(lock);
    if !removed.is_empty() {
        drop(removed);
        site_content::sweep(data, &project.name)?;
    }
    pruning.make_room()
}

/// Ends the previews that were deployed longest ago, until there are no more than `most`. One with a deployment that is about
/// to go live counts and stays.
fn end_oldest_previews(branches: &mut [(String, Outdated)], most: usize) {
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
            outdated.address = true;
            outdated.replaced.push(preview.deployment);
        }
    }
}

/// A deployment as it lies in its folder.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    record: Deployment,
    /// A process died after it had marked it as replaced.
    marked: bool,
}

/// What is to go of a branch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outdated {
    /// Its address too.
    address: bool,
    /// Ids of deployments that were replaced by a later one.
    replaced: Vec<String>,
    /// Ids of deployments that were interrupted and never finished.
    abandoned: Vec<String>,
    /// The preview that the branch still shows, if it is one.
    preview: Option<Preview>,
}

/// A preview that has not ended by its age.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Preview {
    /// The id of the deployment that is shown.
    deployment: String,
    created_at: Timestamp,
    /// A later deployment is about to go live.
    is_pinned: bool,
}

/// Applies the rules to one branch.
fn outdated(
    label: &str,
    shown: Option<&Pointer>,
    mut deployments: Vec<Known>,
    keep: Retention,
    now: Timestamp,
) -> Outdated {
    deployments.sort_by_key(|known| std::cmp::Reverse(known.record.sequence));
    let is_preview = label != PRODUCTION;
    let kept_previous = if is_preview { 0 } else { keep.previous };
    let mut outdated = Outdated::default();
    let mut previous = 0;
    let mut unfinished = false;
    for Known { id, record, marked } in deployments {
        let too_old = now.since(record.created_at) > keep.preview_age;
        let expired = too_old && is_preview;
        match shown {
            Some(shown) if shown.deployment == id => {
                // One that is about to go live keeps the address.
                outdated.address = expired && !unfinished;
                if outdated.address {
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
    /// The deployments of every branch, by label.
    fn branches(&self) -> Result<BTreeMap<String, Vec<Known>>> {
        let name = self.project.name.as_str();
        let marked = self.data.list(&[KIND, name, REPLACED])?;
        let marked: BTreeSet<String> = marked.into_iter().collect();
        let mut branches: BTreeMap<String, Vec<Known>> = BTreeMap::new();
        for id in self.data.list(&[KIND, name, DEPLOYMENTS])? {
            let Some(record) = self.record(&id)? else {
                continue;
            };
            let known = Known {
                marked: marked.contains(&id),
                id,
                record,
            };
            let label = known.record.label.clone();
            branches.entry(label).or_default().push(known);
        }
        Ok(branches)
    }

    /// `None` when it was removed meanwhile; a damaged one stays, and does not keep the others.
    fn record(&self, id: &str) -> Result<Option<Deployment>> {
        match deployment(self.data, &self.project.name, id) {
            Err(LocalError::Damaged(cause)) => {
                tracing::warn!(%cause, "a deployment is not removed");
                Ok(None)
            }
            found => found,
        }
    }

    fn remove(
        &self,
        label: &str,
        outdated: Outdated,
        lock: &Exclusive,
        removed: &mut Vec<Staged>,
    ) -> Result<()> {
        let name = self.project.name.as_str();
        for id in &outdated.replaced {
            self.remember(label, id)?;
        }
        if outdated.address {
            self.data.remove_file(&[KIND, name, BRANCHES, label])?;
        }
        for id in outdated.replaced.iter().chain(&outdated.abandoned) {
            let faults = &self.config.faults;
            faults.at("deploy", self.project, Moment::Pruning)?;
            let parts = [KIND, name, DEPLOYMENTS, id];
            if self.data.path(&parts)?.try_exists()? {
                removed.push(self.data.detach(&parts, lock)?);
            }
        }
        Ok(())
    }

    /// Removes replaced deployments of `production`, oldest first, until the sites of the owner take no more bytes than they
    /// may, or none is left.
    fn make_room(&self) -> Result<()> {
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
            let lock = self.data.exclusive()?;
            let outdated = Outdated {
                replaced: vec![id],
                ..Outdated::default()
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

    /// The ids of the deployments of `production` that a later one has replaced, oldest first.
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

    fn remember(&self, label: &str, id: &str) -> Result<()> {
        let name = self.project.name.as_str();
        self.data.ensure_dir(&[KIND, name, REPLACED])?;
        let replaced = Replaced {
            label: label.to_owned(),
            removed_at: self.now,
        };
        let parts = [KIND, name, REPLACED, id];
        self.data.replace_file(&parts, &[&to_json(&replaced)?])
    }

    /// Forgets what was removed long ago.
    fn forget(&self) -> Result<()> {
        let name = self.project.name.as_str();
        for id in self.data.list(&[KIND, name, REPLACED])? {
            let found = Replaced::read(self.data, name, &id)?;
            let old = found.is_some_and(|found| self.now.since(found.removed_at) > REMEMBERED);
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

    /// Deployments by sequence, made so many days ago.
    fn known(days_ago: &[u32]) -> Vec<Known> {
        let now = now();
        let one = |(n, days): (usize, &u32)| Known {
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
            marked: false,
        };
        days_ago.iter().enumerate().map(one).collect()
    }

    fn now() -> Timestamp {
        Timestamp::from_seconds(1_800_000_000)
    }

    fn shown(sequence: u64) -> Pointer {
        Pointer {
            deployment: sequence.to_string(),
            sequence,
            index: String::new(),
        }
    }

    #[test]
    fn production_keeps_the_live_one_and_those_before_it_whatever_their_age() {
        let all = known(&[90, 80, 70, 60, 50]);
        let found = outdated(PRODUCTION, Some(&shown(5)), all, KEEP, now());
        assert_eq!(found.replaced, ["2", "1"]);
        assert!(!found.address && found.abandoned.is_empty());
    }

    #[test]
    fn the_live_one_is_kept_when_nothing_else_is() {
        let keep = Retention {
            previous: 0,
            previews: 0,
            preview_age: Duration::ZERO,
        };
        let found = outdated(PRODUCTION, Some(&shown(2)), known(&[9, 8]), keep, now());
        assert_eq!(found.replaced, ["1"]);
    }

    #[test]
    fn a_deployment_that_is_about_to_go_live_is_kept() {
        for label in [PRODUCTION, "preview"] {
            let found = outdated(label, Some(&shown(1)), known(&[40, 1]), KEEP, now());
            assert_eq!((found.address, found.replaced.len()), (false, 0), "{label}");
            assert!(found.preview.is_none_or(|preview| preview.is_pinned));
            let found = outdated(label, None, known(&[1]), KEEP, now());
            assert_eq!(found, Outdated::default(), "{label}");
        }
    }

    #[test]
    fn a_deployment_that_was_never_finished_is_removed_when_it_is_old() {
        let found = outdated(PRODUCTION, Some(&shown(1)), known(&[50, 40]), KEEP, now());
        assert_eq!(found.abandoned, ["2"]);
        assert!(found.replaced.is_empty());
    }

    #[test]
    fn a_preview_ends_with_its_address_when_it_is_old() {
        let found = outdated("preview", Some(&shown(2)), known(&[60, 31]), KEEP, now());
        assert!(found.address);
        assert_eq!(found.replaced, ["2", "1"]);
        let young = outdated("preview", Some(&shown(2)), known(&[3, 2]), KEEP, now());
        assert_eq!(
            (young.address, &*young.replaced),
            (false, &["1".to_owned()][..])
        );
    }

    /// A branch whose preview was deployed so many days ago.
    fn preview(label: &str, days_ago: u32, is_pinned: bool) -> (String, Outdated) {
        let Known { id, record, .. } = known(&[days_ago]).remove(0);
        let preview = Some(Preview {
            deployment: id,
            created_at: record.created_at,
            is_pinned,
        });
        let outdated = Outdated {
            preview,
            ..Outdated::default()
        };
        (label.to_owned(), outdated)
    }

    fn ended(mut branches: Vec<(String, Outdated)>, most: usize) -> Vec<String> {
        end_oldest_previews(&mut branches, most);
        let ended = branches.into_iter().filter(|(_, found)| found.address);
        ended.map(|(label, _)| label).collect()
    }

    #[test]
    fn of_too_many_previews_those_deployed_longest_ago_end() {
        let four = || {
            vec![
                preview("a", 2, false),
                preview("b", 9, false),
                preview("c", 1, false),
                preview("d", 5, false),
            ]
        };
        assert_eq!(ended(four(), 4), [""; 0]);
        assert_eq!(ended(four(), 3), ["b"]);
        assert_eq!(ended(four(), 2), ["b", "d"]);
        let live = (PRODUCTION.to_owned(), Outdated::default());
        assert_eq!(ended(vec![live, preview("a", 1, false)], 1), [""; 0]);
    }

    #[test]
    fn a_preview_that_is_being_deployed_again_stays() {
        let branches = vec![
            preview("a", 9, true),
            preview("b", 1, false),
            preview("c", 2, false),
        ];
        assert_eq!(ended(branches, 1), ["c"]);
    }

    #[test]
    fn what_a_dead_process_had_marked_is_removed() {
        let mut all = known(&[3, 2, 1]);
        all[1].marked = true;
        all[2].marked = true;
        let found = outdated(PRODUCTION, Some(&shown(3)), all, KEEP, now());
        assert_eq!(found.replaced, ["2"]);
    }
}
