//! Finds and opens the file of a target. Blocks on the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::target::SitePath;
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::site::{self, LiveSite, SiteIndex, SiteIndexEntry};

const INDEX_PAGE: &str = "index.html";
const MISSING_PAGE: &str = "404.html";

/// Maximum number of cached indexes.
const MAX_CACHED: usize = 64;

const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The result of the lookup of a target.
#[derive(Debug)]
pub(crate) enum LookupResult {
    /// The file to respond with.
    Page(Page),
    /// A redirect to this path, which ends in a slash.
    Elsewhere(String),
    /// The site does not exist, or it has neither this path nor a page for missing paths.
    Nothing,
}

/// A file, opened in the same deployment in which it was looked up.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entry: SiteIndexEntry,
    pub(crate) file: File,
    /// Whether the file is the site's page for missing paths.
    pub(crate) is_404_page: bool,
}

/// Cached indexes by their digest. A cached index is never outdated.
#[derive(Debug, Default)]
pub(crate) struct IndexCache(Mutex<HashMap<String, Arc<SiteIndex>>>);

impl IndexCache {
    fn get(&self, digest: &str) -> Option<Arc<SiteIndex>> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.get(digest).cloned()
    }

    fn put(&self, digest: &str, index: &Arc<SiteIndex>) {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= MAX_CACHED {
            map.clear();
        }
        map.insert(digest.to_owned(), Arc::clone(index));
    }
}

/// Finds the file of a target in the deployment that is live. If that deployment is replaced and deleted during the
/// lookup, the file is looked up in the next one.
pub(crate) fn find(data: &DataDir, cache: &IndexCache, target: &SitePath) -> Result<LookupResult> {
    let mut deleted: Option<LiveSite> = None;
    while let Some(live) = site::resolve(data, &target.label)? {
        if deleted.is_some_and(|deleted| deleted.pointer == live.pointer) {
            break;
        }
        if let Some(found) = find_in(data, cache, target, &live)? {
            return Ok(found);
        }
        deleted = Some(live);
    }
    Ok(LookupResult::Nothing)
}

/// Finds the file of a target in a deployment; `None` if the deployment was deleted concurrently.
fn find_in(
    data: &DataDir,
    cache: &IndexCache,
    target: &SitePath,
    live: &LiveSite,
) -> Result<Option<LookupResult>> {
    let Some(index) = index_of(data, cache, live)? else {
        return Ok(None);
    };
    let (entry, is_404_page) = match match_target(&index, target) {
        IndexMatch::Elsewhere(path) => return Ok(Some(LookupResult::Elsewhere(path))),
        IndexMatch::File(entry) => (entry, false),
        IndexMatch::Missing => match index.0.get(MISSING_PAGE) {
            Some(entry) => (entry, true),
            None => return Ok(Some(LookupResult::Nothing)),
        },
    };
    let file = open(data, live, entry)?;
    Ok(file.map(|file| {
        let entry = entry.clone();
        LookupResult::Page(Page {
            entry,
            file,
            is_404_page,
        })
    }))
}

fn index_of(data: &DataDir, cache: &IndexCache, live: &LiveSite) -> Result<Option<Arc<SiteIndex>>> {
    if let Some(index) = cache.get(&live.pointer.index) {
        return Ok(Some(index));
    }
    let Some(index) = live.index(data)?.map(Arc::new) else {
        return Ok(None);
    };
    cache.put(&live.pointer.index, &index);
    Ok(Some(index))
}

enum IndexMatch<'a> {
    File(&'a SiteIndexEntry),
    Elsewhere(String),
    Missing,
}

fn match_target<'a>(index: &'a SiteIndex, target: &SitePath) -> IndexMatch<'a> {
    let page_of_folder = if target.path.is_empty() {
        INDEX_PAGE.to_owned()
    } else {
        format!("{}/{INDEX_PAGE}", target.path)
    };
    if target.has_trailing_slash {
        return index
            .0
            .get(&page_of_folder)
            .map_or(IndexMatch::Missing, IndexMatch::File);
    }
    if let Some(entry) = index.0.get(&target.path) {
        return IndexMatch::File(entry);
    }
    if target.path.is_empty() || index.0.contains_key(&page_of_folder) {
        let slash = if target.path.is_empty() { "" } else { "/" };
        let path = utf8_percent_encode(&target.path, PATH);
        return IndexMatch::Elsewhere(format!("{}{path}{slash}", target.prefix));
    }
    IndexMatch::Missing
}

/// Opens the content of a file. Returns `None` if the project was deleted concurrently.
fn open(data: &DataDir, live: &LiveSite, entry: &SiteIndexEntry) -> Result<Option<File>> {
    let path = data.path(&live.content_parts(entry))?;
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if file.metadata()?.len() == entry.size {
        Ok(Some(file))
    } else {
        Err(LocalError::damaged_file(
            path,
            "its length differs from the index",
        ))
    }
}
