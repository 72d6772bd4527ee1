//! Files that only their owner may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::failure::{Failure, Result};

/// Creates a folder and those above it, for their owner only.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    restrict_folder(path)
}

/// Removes the access of others to a folder that may have existed before.
#[cfg(unix)]
fn restrict_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Replaces a file by one with this content, for its owner only. A reader sees the old or the new content, never a part.
pub(crate) fn write_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // The mode of a temporary file is 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(folder)
}

/// Makes the new name of a file durable.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a file for an advisory lock, and creates it if necessary.
pub(crate) fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the content of a file; `None` if it does not exist.
pub(crate) fn read_optional(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maximum size of an input file in bytes: more than 100 secrets of the maximum size.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// Returns the content of a file that the person named.
pub(crate) fn read_input(path: &Path) -> Result<String> {
    let text = File::open(path).and_then(read_limited);
    text.map_err(|error| Failure::unreadable(path, &error))
}

/// Returns the text of a reader, which must not be longer than an input may be.
pub(crate) fn read_limited(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let length = reader.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_INPUT_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Deletes a file. Returns whether it existed.
pub(crate) fn delete_optional(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
