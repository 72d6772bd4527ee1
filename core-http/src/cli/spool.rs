//! Writes the body of a deploy request to the disk: counts it, extracts it from its form, and hashes it, unless a plan
//! identifies its content. Only one piece of it is in memory at a time.

use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{Code, Error, Result, hex};
use core_domain::port::{BlobError, Blobs, Cause, StagedBlob};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use super::media::Media;
use super::multipart::FormFile;
use crate::kernel::Body;

/// The number of bytes that are written at a time.
const WRITE_BYTES: usize = 256 * 1024;

/// The number of bytes that identify the format of an archive.
const MAGIC_BYTES: usize = 2;

/// An archive as it was sent, in the staging area of the blob store. It is removed when dropped.
#[derive(Debug)]
pub(super) struct StagedUpload {
    pub(super) blob: Box<dyn StagedBlob>,
    /// The digest of the plan or, without one, the SHA-256 of the archive, in hex.
    pub(super) content_hash: String,
}

/// The body to read, with its limits.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) body: Body,
    pub(super) media: Media,
    /// Maximum size of the body, in bytes.
    pub(super) max_bytes: u64,
    /// Maximum pause of the client.
    pub(super) idle_timeout: Duration,
    /// The digest of the plan, if there is one. It identifies the content, so the body can be empty and is not hashed.
    pub(super) plan_digest: Option<String>,
}

impl Source {
    /// Writes the archive to the disk while it is being received.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` if the body exceeds its limit; `BAD_REQUEST` if the client disconnects, pauses too long, or
    /// sends an
    /// empty body or an invalid form; `VALIDATION_ERROR` if the format differs from the declared one;
    /// `UPSTREAM_ERROR` if the blob store fails.
    pub(super) async fn spool(mut self, blobs: &dyn Blobs) -> Result<StagedUpload> {
        let mut form = match &self.media {
            Media::Form(boundary) => Some(FormFile::new(boundary)),
            _ => None,
        };
        let blob = blobs.stage().await.map_err(blob_error)?;
        let mut target = Target::new(blob, self.plan_digest.take());
        let mut left = self.max_bytes;
        while let Some(data) = self.next().await? {
            left = left.checked_sub(data.len() as u64).ok_or_else(|| {
                let max = self.max_bytes;
                let message = format!("The upload is larger than {max} bytes.");
                Error::refused(Code::PayloadTooLarge, message)
            })?;
            match &mut form {
                Some(form) => form.feed(&data, &mut target.piece)?,
                None => target.piece.extend_from_slice(&data),
            }
            target.write_pieces().await?;
        }
        if let Some(form) = form {
            form.finish()?;
        }
        target.finish(&self.media).await
    }

    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = tokio::time::timeout(self.idle_timeout, self.body.frame()).await;
            let frame = frame
                .map_err(|_| Error::refused(Code::BadRequest, "The upload paused too long."))?;
            let frame = frame.transpose().map_err(|_| {
                let message = "The upload is incomplete.";
                Error::refused(Code::BadRequest, message)
            })?;
            match frame.map(http_body::Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers are ignored.
                Some(Err(_)) => {}
            }
        }
    }
}

/// The source of the hash that identifies a content.
enum ContentHash {
    /// The digest of the plan.
    Plan(String),
    /// The hash of the bytes that were written so far.
    Archive(Sha256),
}

/// The staged blob that the archive is written to, with its hash.
struct Target {
    blob: Box<dyn StagedBlob>,
    hash: ContentHash,
    mark: Vec<u8>,
    piece: Vec<u8>,
}

impl Target {
    fn new(blob: Box<dyn StagedBlob>, plan_digest: Option<String>) -> Self {
        let of_archive = || ContentHash::Archive(Sha256::new());
        Self {
            blob,
            hash: plan_digest.map_or_else(of_archive, ContentHash::Plan),
            mark: Vec::with_capacity(MAGIC_BYTES),
            piece: Vec::with_capacity(WRITE_BYTES),
        }
    }

    async fn write_pieces(&mut self) -> Result<()> {
        if self.piece.len() < WRITE_BYTES {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(WRITE_BYTES));
        self.write(piece).await
    }

    async fn write(&mut self, piece: Vec<u8>) -> Result<()> {
        let missing = MAGIC_BYTES - self.mark.len();
        self.mark.extend(piece.iter().take(missing));
        if let ContentHash::Archive(hash) = &mut self.hash {
            hash.update(&piece);
        }
        self.blob.append(piece).await.map_err(blob_error)
    }

    async fn finish(mut self, media: &Media) -> Result<StagedUpload> {
        let piece = std::mem::take(&mut self.piece);
        self.write(piece).await?;
        let is_planned = matches!(self.hash, ContentHash::Plan(_));
        if self.mark.is_empty() && !is_planned {
            return Err(Error::refused(Code::BadRequest, "The upload is empty."));
        }
        if !self.mark.is_empty() && !media.fits(&self.mark) {
            let message = "the upload is not an archive of this type";
            return Err(Error::invalid("content-type", "format_mismatch", message));
        }
        Ok(StagedUpload {
            blob: self.blob,
            content_hash: match self.hash {
                ContentHash::Plan(digest) => digest,
                ContentHash::Archive(hash) => hex(&hash.finalize()),
            },
        })
    }
}

/// Converts an error of the blob store. Its cause appears in the log only.
pub(super) fn blob_error(error: BlobError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}
