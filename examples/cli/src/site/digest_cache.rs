//! A cache of digests, so that an unchanged site is not read again.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::digest::{FileDigest, from_hex, to_hex};
use super::walk::LocalFile;
use crate::config::files::{create_private_folder, write_private_file};

/// Time after a change during which a file may change again with the same time stamp. The digest of such a file is
/// neither stored nor used.
const UNCERTAIN: Duration = Duration::from_secs(2);

/// The first line of a cache file. Files of another version are ignored.
const HEADER: &str = "core-cli digests 1";

/// The properties by which an unchanged file is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    size: u64,
    modified_nanos: u128,
    inode: u64,
}

/// The digests of a site's files at the last deployment.
#[derive(Debug)]
pub(crate) struct DigestCache {
    file: PathBuf,
    digests: HashMap<String, (Fingerprint, FileDigest)>,
}

impl DigestCache {
    /// Reads the cache of a site from the configuration folder. A missing or damaged cache is empty.
    pub(crate) fn read(config_folder: &Path, site: &Path) -> Self {
        let root = fs::canonicalize(site).unwrap_or_else(|_| site.to_owned());
        let name = to_hex(&Sha256::digest(root.as_os_str().as_encoded_bytes()).into());
        let file = config_folder.join("digests").join(&name[..32]);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let digests = parse(&text).unwrap_or_default();
        Self { file, digests }
    }

    /// Returns the digest of a file that has not changed since it was stored.
    pub(crate) fn find(&self, file: &LocalFile, now: SystemTime) -> Option<FileDigest> {
        let fingerprint = fingerprint(file, now)?;
        let (stored, digest) = self.digests.get(&file.path)?;
        (*stored == fingerprint).then_some(*digest)
    }

    /// Replaces the cache by the digests of these files. `now` is a time before they were read. A cache that cannot be
    /// written is no error: the next deployment reads the files again.
    pub(crate) fn write<'f>(
        &self,
        files: impl Iterator<Item = (&'f LocalFile, FileDigest)>,
        now: SystemTime,
    ) {
        let mut text = format!("{HEADER}\n");
        for (file, digest) in files {
            if let Some(fingerprint) = fingerprint(file, now) {
                let Fingerprint {
                    size,
                    modified_nanos,
                    inode,
                } = fingerprint;
                // Writing to a text cannot fail.
                let _ = writeln!(
                    text,
                    "{} {size} {modified_nanos} {inode} {}",
                    to_hex(&digest),
                    file.path
                );
            }
        }
        if let Some(folder) = self.file.parent()
            && create_private_folder(folder).is_ok()
        {
            let _ = write_private_file(&self.file, text.as_bytes());
        }
    }
}

/// Returns the fingerprint of a file; `None` if the file was changed so recently that it is not reliable.
fn fingerprint(file: &LocalFile, now: SystemTime) -> Option<Fingerprint> {
    let modified = file.modified?;
    // A time in the future is not reliable either.
    let age = now.duration_since(modified).ok()?;
    let since_epoch = modified.duration_since(UNIX_EPOCH).ok()?;
    (age > UNCERTAIN).then_some(Fingerprint {
        size: file.size,
        modified_nanos: since_epoch.as_nanos(),
        inode: file.inode,
    })
}

fn parse(text: &str) -> Option<HashMap<String, (Fingerprint, FileDigest)>> {
    let mut lines = text.lines();
    if lines.next()? != HEADER {
        return None;
    }
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(String, (Fingerprint, FileDigest))> {
    let mut words = line.splitn(5, ' ');
    let digest = from_hex(words.next()?)?;
    let fingerprint = Fingerprint {
        size: words.next()?.parse().ok()?,
        modified_nanos: words.next()?.parse().ok()?,
        inode: words.next()?.parse().ok()?,
    };
    Some((words.next()?.to_owned(), (fingerprint, digest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: FileDigest = [0xa7; 32];

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn file(path: &str, modified: u64) -> LocalFile {
        LocalFile {
            path: path.to_owned(),
            source: PathBuf::new(),
            size: 5,
            modified: Some(at(modified)),
            inode: 9,
        }
    }

    /// Stores the digest of a file at a time. Returns the cache as the next process reads it.
    fn store(folder: &Path, file: &LocalFile, now: u64) -> DigestCache {
        let cache = DigestCache::read(folder, Path::new("/site"));
        cache.write([(file, DIGEST)].into_iter(), at(now));
        DigestCache::read(folder, Path::new("/site"))
    }

    #[test]
    fn an_unchanged_file_keeps_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let cache = store(folder.path(), &file("a b.html", 100), 200);
        assert_eq!(cache.find(&file("a b.html", 100), at(300)), Some(DIGEST));
    }

    #[test]
    fn a_file_with_another_size_time_or_number_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = store(folder.path(), &file("a", 100), 200);
        let changes: [fn(&mut LocalFile); 4] = [
            |file| file.size = 6,
            |file| file.modified = Some(at(101)),
            |file| file.inode = 10,
            |file| file.path = "b".to_owned(),
        ];
        for change in changes {
            let mut file = file("a", 100);
            change(&mut file);
            assert_eq!(cache.find(&file, at(300)), None, "{file:?}");
        }
    }

    #[test]
    fn a_file_that_changed_in_the_last_two_seconds_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let cache = store(folder.path(), &file("a", 100), 102);
        assert_eq!(
            cache.find(&file("a", 100), at(300)),
            None,
            "stored too early"
        );
        let cache = store(folder.path(), &file("a", 100), 103);
        assert_eq!(cache.find(&file("a", 100), at(102)), None, "used too early");
        assert_eq!(cache.find(&file("a", 100), at(99)), None, "from the future");
    }

    #[test]
    fn a_damaged_cache_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let cache = store(folder.path(), &file("a", 100), 200);
        for text in [
            "",
            "core-cli digests 2\n",
            "core-cli digests 1\nxyz 5 1 9 a\n",
        ] {
            fs::write(&cache.file, text).unwrap();
            assert!(
                DigestCache::read(folder.path(), Path::new("/site"))
                    .digests
                    .is_empty()
            );
        }
    }
}
