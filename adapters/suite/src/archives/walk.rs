//! Walks through an archive of any supported format.

use std::io::{BufReader, Read, Seek, SeekFrom};

use core_domain::cli::{SiteError, SiteLimits};
use flate2::bufread::MultiGzDecoder;

use super::entry::{BUFFER, TAR_BLOCK, Visit, WalkError, damaged_archive};
use super::{tar_files, zip_files};

/// Detects the format of an archive and passes every entry to `visit`.
pub(super) fn walk(
    upload: &mut (impl Read + Seek),
    limits: SiteLimits,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let bytes = upload
        .seek(SeekFrom::End(0))
        .map_err(|_| damaged_archive())?;
    if bytes > limits.upload_bytes {
        let max = limits.upload_bytes;
        let what = format!("the upload has more than {max} bytes");
        return Err(SiteError::TooLarge(what).into());
    }
    upload.rewind().map_err(|_| damaged_archive())?;
    let mut mark = Vec::with_capacity(2);
    let begin = upload.by_ref().take(2).read_to_end(&mut mark);
    begin.map_err(|_| damaged_archive())?;
    upload.rewind().map_err(|_| damaged_archive())?;
    match &mark[..] {
        b"\x1f\x8b" => {
            let upload = BufReader::with_capacity(BUFFER, upload);
            tar_files::walk(MultiGzDecoder::new(upload), limits, visit)
        }
        b"PK" => zip_files::walk(upload, bytes, limits, visit),
        _ if bytes < TAR_BLOCK as u64 => Err(SiteError::UnknownFormat.into()),
        _ => {
            let upload = BufReader::with_capacity(BUFFER, upload);
            tar_files::walk(upload, limits, visit)
        }
    }
}
