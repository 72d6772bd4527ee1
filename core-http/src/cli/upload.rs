//! The body of a deploy request: read within bounds, taken out of its form, hashed.

use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::{Code, Error, Result, hex};
use sha2::{Digest, Sha256};

use super::media::Media;
use super::multipart;
use crate::kernel::{Body, read_lively_body};

/// How long a client may pause in the middle of its upload.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long an upload may take, so that a slow one does not keep its turn for ever: 100 MiB at one megabit a second.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// An archive as it was sent.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) bytes: Vec<u8>,
    /// SHA-256 in hex.
    pub(super) hash: String,
}

impl Upload {
    /// Reads the body.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE`; `BAD_REQUEST` when the client broke off, took too long, or sent no form as it said; `VALIDATION_ERROR` when
    /// there is nothing in it, or something else than what it is said to be.
    pub(super) async fn read(body: Body, media: Media, most_bytes: u64) -> Result<Self> {
        let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        let body = tokio::time::timeout(LONGEST, read_lively_body(body, most, LONGEST_PAUSE)).await;
        let body =
            body.map_err(|_| Error::refused(Code::BadRequest, "The upload took too long."))??;
        // A hundred megabytes are too many to look through on a thread that others wait for.
        let work = tokio::task::spawn_blocking(move || Self::taken_out(body, &media));
        work.await
            .map_err(|_| Error::Internal("reading an upload panicked".to_owned()))?
    }

    fn taken_out(body: Bytes, media: &Media) -> Result<Self> {
        let bytes = match media {
            Media::Form(boundary) => multipart::file(&body, boundary)?.to_vec(),
            _ => body.into(),
        };
        if bytes.is_empty() {
            return Err(Error::refused(Code::BadRequest, "The upload is empty."));
        }
        if !media.fits(&bytes) {
            return Err(Error::invalid(
                "content-type",
                "format_mismatch",
                "the upload is no such archive",
            ));
        }
        let hash = hex(&Sha256::digest(&bytes));
        Ok(Self { bytes, hash })
    }
}
