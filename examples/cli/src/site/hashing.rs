//! The SHA-256 digests of a site's files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::digest::FileDigest;
use super::digest_cache::DigestCache;
use super::walk::LocalFile;
use crate::failure::{Failure, Result};

/// Number of threads that read files.
const THREADS: usize = 2;

/// Size in bytes of the pieces in which a file is read.
const PIECE_BYTES: usize = 128 * 1024;

/// A file with the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HashedFile {
    pub(crate) file: LocalFile,
    pub(crate) digest: FileDigest,
}

/// Hashes files. `on_progress` is called with the size of each file that is done.
pub(crate) fn hash_files(
    files: Vec<LocalFile>,
    cache: &DigestCache,
    now: SystemTime,
    on_progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<HashedFile>> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let work = || {
        let mut digests = Vec::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else {
                return digests;
            };
            match cache
                .find(file, now)
                .map_or_else(|| hash_file(file, &mut piece), Ok)
            {
                Ok(digest) => digests.push((at, digest)),
                Err(error) => {
                    let error = Failure::io(&format!("read {}", file.source.display()), &error);
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    // The other thread finds no further file either.
                    next.store(files.len(), Ordering::Relaxed);
                    return digests;
                }
            }
            on_progress(file.size);
        }
    };
    let mut digests = thread::scope(|scope| {
        let others: Vec<_> = (1..THREADS).map(|_| scope.spawn(work)).collect();
        let mut digests = work();
        for other in others {
            digests.extend(other.join().unwrap_or_default());
        }
        digests
    });
    if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    digests.sort_unstable_by_key(|(at, _)| *at);
    cache.write(
        digests.iter().map(|(at, digest)| (&files[*at], *digest)),
        now,
    );
    let hashed = files.into_iter().zip(digests);
    Ok(hashed
        .map(|(file, (_, digest))| HashedFile { file, digest })
        .collect())
}

fn hash_file(file: &LocalFile, piece: &mut [u8]) -> io::Result<FileDigest> {
    let (digest, size) = hash_path(&file.source, piece)?;
    if size != file.size {
        return Err(io::Error::other("the file was changed while it was read"));
    }
    Ok(digest)
}

fn hash_path(path: &Path, piece: &mut [u8]) -> io::Result<(FileDigest, u64)> {
    let mut content = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut size = 0;
    loop {
        match content.read(piece) {
            Ok(0) => return Ok((hasher.finalize().into(), size)),
            Ok(length) => {
                hasher.update(&piece[..length]);
                size += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::site::digest::to_hex;
    use crate::site::walk::find_files;

    #[test]
    fn every_file_gets_the_digest_of_its_content() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.html"), "abc").unwrap();
        for number in 0..50 {
            std::fs::write(
                folder.path().join(format!("{number}.txt")),
                number.to_string(),
            )
            .unwrap();
        }
        let cache = DigestCache::read(folder.path(), folder.path());
        let bytes = AtomicU64::new(0);
        let count = |size| {
            bytes.fetch_add(size, Ordering::Relaxed);
        };
        let files = find_files(folder.path()).unwrap();
        let total: u64 = files.iter().map(|file| file.size).sum();
        let hashed = hash_files(files, &cache, SystemTime::UNIX_EPOCH, &count).unwrap();
        assert_eq!(hashed.len(), 51);
        assert_eq!(bytes.into_inner(), total);
        let front = hashed
            .iter()
            .find(|hashed| hashed.file.path == "index.html")
            .unwrap();
        assert_eq!(
            to_hex(&front.digest),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_file_that_disappears_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("index.html"), "abc").unwrap();
        let files = find_files(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join("index.html")).unwrap();
        let cache = DigestCache::read(folder.path(), folder.path());
        let failure = hash_files(files, &cache, SystemTime::UNIX_EPOCH, &|_| {}).unwrap_err();
        assert!(failure.to_string().contains("index.html"), "{failure}");
    }
}
