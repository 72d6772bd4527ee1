//! The body of a deploy request on its way to the disk: counted, taken out of its form, hashed. Only a piece of it is in
//! memory at a time.

use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{Code, Error, Result, hex};
use core_domain::port::{BlobError, Blobs, Cause, StagedBlob};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use super::media::Media;
use super::multipart::FormFile;
use crate::kernel::Body;

/// How many bytes are written at a time.
const PIECE: usize = 256 * 1024;

/// How many bytes tell an archive's format.
const MARK: usize = 2;

/// An archive as it was sent, in the staging area of the blob store; removed when dropped.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) blob: Box<dyn StagedBlob>,
    /// SHA-256 in hex.
    pub(super) hash: String,
}

/// What is read, and how much of it, how slowly.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) body: Body,
    pub(super) media: Media,
    /// The most bytes the body may have.
    pub(super) max_bytes: u64,
    /// How long the client may pause.
    pub(super) idle_timeout: Duration,
}

impl Source {
    /// Writes the archive to the disk while it comes in.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE`; `BAD_REQUEST` when the client broke off, paused too long, or sent no form as it said;
    /// `VALIDATION_ERROR` when it is something else than what it is said to be.
    pub(super) async fn spool(mut self, blobs: &dyn Blobs) -> Result<Spooled> {
        let mut form = match &self.media {
            Media::Form(boundary) => Some(FormFile::new(boundary)),
            _ => None,
        };
        let mut target = Target::new(blobs.stage().await.map_err(failed)?);
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
                let message = "The upload could not be read to its end.";
                Error::refused(Code::BadRequest, message)
            })?;
            match frame.map(http_body::Frame::into_data) {
                None => return Ok(None),
                Some(Ok(data)) => return Ok(Some(data)),
                // Trailers.
                Some(Err(_)) => {}
            }
        }
    }
}

/// Where it goes.
struct Target {
    blob: Box<dyn StagedBlob>,
    hash: Sha256,
    mark: Vec<u8>,
    piece: Vec<u8>,
}

impl Target {
    fn new(blob: Box<dyn StagedBlob>) -> Self {
        Self {
            blob,
            hash: Sha256::new(),
            mark: Vec::with_capacity(MARK),
            piece: Vec::with_capacity(PIECE),
        }
    }

    async fn write_pieces(&mut self) -> Result<()> {
        if self.piece.len() < PIECE {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.write(piece).await
    }

    async fn write(&mut self, piece: Vec<u8>) -> Result<()> {
        let missing = MARK - self.mark.len();
        self.mark.extend(piece.iter().take(missing));
        self.hash.update(&piece);
        self.blob.append(piece).await.map_err(failed)
    }

    async fn finish(mut self, media: &Media) -> Result<Spooled> {
        let piece = std::mem::take(&mut self.piece);
        self.write(piece).await?;
        if self.mark.is_empty() {
            return Err(Error::refused(Code::BadRequest, "The upload is empty."));
        }
        if !media.fits(&self.mark) {
            let message = "the upload is no such archive";
            return Err(Error::invalid("content-type", "format_mismatch", message));
        }
        Ok(Spooled {
            blob: self.blob,
            hash: hex(&self.hash.finalize()),
        })
    }
}

/// The blob store failed: for the log, with its cause.
pub(super) fn failed(error: BlobError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}
