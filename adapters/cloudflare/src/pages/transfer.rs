//! Upload of the files of a site that the provider does not have. Files are read in the order of their archive and
//! uploaded in buckets.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use core_domain::port::{Cause, ProviderError, Site};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::asset::Asset;
use super::bucket::UploadBatch;
use super::plan::{UploadPlan, lost_contents};
use super::token::UploadTokens;
use crate::call::Call;

/// Maximum number of buckets of one site that are uploaded at the same time.
const MAX_CONCURRENT_UPLOADS: usize = 3;

/// A bucket with its memory permit.
struct FilledBatch(UploadBatch, OwnedSemaphorePermit);

fn call(operation: &'static str, path: &str) -> Call {
    Call::new(Method::POST, operation, &["pages", "assets", path])
}

/// Uploads the files that the provider does not have. Every bucket in memory holds one permit.
///
/// # Errors
/// [`ProviderError::Permanent`] if the provider no longer has a content that is not uploaded.
pub(super) async fn transfer(
    tokens: &UploadTokens<'_>,
    site: Arc<dyn Site>,
    plan: Arc<UploadPlan>,
    permits: Arc<Semaphore>,
) -> Result<(), ProviderError> {
    let hashes = hashes(&plan);
    let missing = find_missing(tokens, &hashes).await?;
    let uploaded: BTreeSet<&str> = plan.uploaded.iter().flatten().map(hash).collect();
    let is_uploaded = |hash: &&String| uploaded.contains(hash.as_str());
    let lost = missing.iter().filter(|hash| !is_uploaded(hash)).count();
    if lost > 0 {
        return Err(ProviderError::Permanent(lost_contents(lost)));
    }
    if !missing.is_empty() {
        upload(tokens, site, Arc::clone(&plan), missing, permits).await?;
    }
    register(tokens, &hashes).await;
    Ok(())
}

/// Makes the provider keep the contents of a deployment that is made without an upload.
///
/// # Errors
/// [`ProviderError::Permanent`] if the provider no longer has one of the contents.
pub(super) async fn ensure_stored(
    tokens: &UploadTokens<'_>,
    plan: &UploadPlan,
) -> Result<(), ProviderError> {
    let hashes = hashes(plan);
    let lost = find_missing(tokens, &hashes).await?.len();
    if lost > 0 {
        let what = format!(
            "{lost} contents of the earlier deployment are no longer stored; deploy the site again"
        );
        return Err(ProviderError::Permanent(what));
    }
    register(tokens, &hashes).await;
    Ok(())
}

/// Returns those hashes whose contents the provider does not have.
pub(super) async fn find_missing(
    tokens: &UploadTokens<'_>,
    hashes: &BTreeSet<&str>,
) -> Result<BTreeSet<String>, ProviderError> {
    if hashes.is_empty() {
        return Ok(BTreeSet::new());
    }
    let body = json!({ "hashes": hashes });
    let call = call("pages.check_missing", "check-missing").json(&body);
    tokens.send(&call).await
}

/// Makes the provider remember the files. If it fails, the next deployment uploads them again.
async fn register(tokens: &UploadTokens<'_>, hashes: &BTreeSet<&str>) {
    let body = json!({ "hashes": hashes });
    let upsert = call("pages.upsert_hashes", "upsert-hashes").json(&body);
    if let Err(error) = tokens.send::<Value>(&upsert).await {
        tracing::warn!(%error, "failed to register the uploaded files of a site");
    }
}

fn hashes(plan: &UploadPlan) -> BTreeSet<&str> {
    plan.assets().map(hash).collect()
}

fn hash(asset: &Asset) -> &str {
    &asset.hash
}

async fn upload(
    tokens: &UploadTokens<'_>,
    site: Arc<dyn Site>,
    plan: Arc<UploadPlan>,
    missing: BTreeSet<String>,
    permits: Arc<Semaphore>,
) -> Result<(), ProviderError> {
    let (full, filled) = mpsc::channel(1);
    // The reader stops when the uploads stop, because then its channel is closed.
    let reader = tokio::task::spawn_blocking(move || {
        let mut reader = Reader {
            missing,
            permits,
            full,
            current: None,
        };
        let mut assets = plan.uploaded.iter();
        site.read(&mut |_, content| match assets.next() {
            Some(Some(asset)) => reader.add(asset, content),
            _ => Ok(()),
        })?;
        reader.flush()
    });
    let filled = stream::unfold(filled, |mut filled| async {
        filled.recv().await.map(|bucket| (bucket, filled))
    });
    let uploads = filled.map(|FilledBatch(bucket, permit)| async move {
        let body = bucket.finish();
        let upload = call("pages.upload", "upload")
            .body("application/json", body)
            .upload();
        let outcome = tokens.send::<Value>(&upload).await.map(drop);
        drop(permit);
        outcome
    });
    uploads
        .buffer_unordered(MAX_CONCURRENT_UPLOADS)
        .try_collect::<()>()
        .await?;
    let read = reader
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)));
    read.map_err(|error| ProviderError::Transient(Cause::new(error)))
}

/// Fills buckets and sends them to the uploads.
struct Reader {
    /// The hashes of the files that are not uploaded yet.
    missing: BTreeSet<String>,
    permits: Arc<Semaphore>,
    full: mpsc::Sender<FilledBatch>,
    current: Option<FilledBatch>,
}

impl Reader {
    fn add(&mut self, asset: &Asset, content: &mut dyn io::Read) -> io::Result<()> {
        // Equal files are uploaded once.
        if !self.missing.remove(&asset.hash) {
            return Ok(());
        }
        let has_room = |filled: &FilledBatch| filled.0.has_room(asset.size);
        if self
            .current
            .as_ref()
            .is_some_and(|filled| !has_room(filled))
        {
            self.flush()?;
        }
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(FilledBatch(UploadBatch::default(), permit(&self.permits)?)),
        };
        current.0.add(asset, content)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.current.take() {
            Some(filled) => self
                .full
                .blocking_send(filled)
                .map_err(|_| upload_cancelled()),
            None => Ok(()),
        }
    }
}

/// Waits for a memory permit. Must be called on a blocking thread.
fn permit(permits: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    let permit = Arc::clone(permits).acquire_owned();
    Handle::current().block_on(permit).map_err(io::Error::other)
}

fn upload_cancelled() -> io::Error {
    io::Error::other("the upload was cancelled")
}
