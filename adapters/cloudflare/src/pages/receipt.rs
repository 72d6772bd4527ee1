//! Receipts: what each deployment consists of. Cloudflare does not return the files of a deployment, and knows contents
//! only by its own hash. With the receipts, contents are found by their SHA-256 digest, and earlier deployments can be
//! deployed again on another branch.
//!
//! A receipt is a blob. Another blob lists the receipts of a project, newest first. Deployments of a project are made one
//! after the other, so the list has one writer. A receipt that is lost or damaged costs only an upload.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use core_domain::kernel::{hex, parse_hex};
use core_domain::port::{BlobError, Blobs, Cause};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::asset::{Asset, Role, SettingsFile};
use super::known_contents::KnownContents;
use super::plan::UploadPlan;

/// Maximum number of receipts of a project. Older ones are removed.
const MAX_RECEIPTS: usize = 20;

/// Maximum number of receipts that are searched for contents.
const MAX_SEARCHED: usize = 5;

/// The content of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    files: Vec<ReceiptFile>,
    settings: Vec<ReceiptSettings>,
}

/// A page or another file that visitors can request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReceiptFile {
    path: String,
    size: u64,
    /// The SHA-256 digest of the content in hexadecimal.
    digest: String,
    /// The hash of the content at Cloudflare.
    hash: String,
}

/// A file that configures how the site is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReceiptSettings {
    name: String,
    /// The SHA-256 digest of the content in hexadecimal.
    digest: String,
    /// The content in base64.
    content: String,
}

impl Receipt {
    pub(super) fn of(plan: &UploadPlan) -> Self {
        let files = plan.assets().map(|asset| ReceiptFile {
            path: asset.path.clone(),
            size: asset.size,
            digest: hex(&asset.digest),
            hash: asset.hash.clone(),
        });
        let settings = plan.settings.iter().map(|file| ReceiptSettings {
            name: file.name.to_owned(),
            digest: hex(&file.digest),
            content: STANDARD.encode(&file.content),
        });
        Self {
            files: files.collect(),
            settings: settings.collect(),
        }
    }

    /// Returns the plan of a deployment with the same content, all of which Cloudflare should have. Returns `None` if the
    /// receipt is damaged.
    pub(super) fn to_plan(&self) -> Option<UploadPlan> {
        let kept = self.files.iter().map(ReceiptFile::to_asset);
        let settings = self.settings.iter().map(ReceiptSettings::to_file);
        Some(UploadPlan {
            kept: kept.collect::<Option<_>>()?,
            settings: settings.collect::<Option<_>>()?,
            ..UploadPlan::default()
        })
    }
}

impl ReceiptFile {
    fn to_asset(&self) -> Option<Asset> {
        let digest = parse_hex(&self.digest)?;
        Some(Asset::new(&self.path, self.hash.clone(), self.size, digest))
    }
}

impl ReceiptSettings {
    fn to_file(&self) -> Option<SettingsFile> {
        let Role::Settings(name) = Role::of(&self.name) else {
            return None;
        };
        Some(SettingsFile {
            name,
            digest: parse_hex(&self.digest)?,
            content: STANDARD.decode(&self.content).ok()?,
        })
    }
}

/// The store of the receipts. Without one, contents are not found, and previews cannot be deployed again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receipts(Option<Arc<dyn Blobs>>);

impl Receipts {
    pub(crate) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self(Some(blobs))
    }

    /// Stores the receipt of a deployment as the newest one. A failure is logged, because the deployment does not need it.
    pub(super) async fn store(&self, project: &str, key: &str, receipt: &Receipt) {
        let Some(blobs) = &self.0 else {
            return;
        };
        if let Err(error) = store(blobs.as_ref(), project, key, receipt).await {
            tracing::warn!(%error, project, "failed to store the receipt of a deployment");
        }
    }

    /// Returns the receipt of a deployment. Returns `None` if there is none, or it is damaged.
    pub(super) async fn get(&self, project: &str, key: &str) -> Result<Option<Receipt>, BlobError> {
        match &self.0 {
            Some(blobs) => read(blobs.as_ref(), &receipt_key(project, &key_digest(key))).await,
            None => Ok(None),
        }
    }

    /// Returns the contents of the newest deployments of a project.
    pub(super) async fn known_contents(&self, project: &str) -> Result<KnownContents, BlobError> {
        let mut known = KnownContents::default();
        let Some(blobs) = &self.0 else {
            return Ok(known);
        };
        let listed = list(blobs.as_ref(), project).await?;
        for digest in listed.iter().take(MAX_SEARCHED) {
            let receipt = read(blobs.as_ref(), &receipt_key(project, digest)).await?;
            if let Some(plan) = receipt.and_then(|receipt: Receipt| receipt.to_plan()) {
                known.add(plan.kept, plan.settings);
            }
        }
        Ok(known)
    }

    /// Removes the receipts of a project. A failure is logged, because the project itself no longer exists.
    pub(crate) async fn remove_all(&self, project: &str) {
        let Some(blobs) = &self.0 else {
            return;
        };
        if let Err(error) = remove_all(blobs.as_ref(), project).await {
            tracing::warn!(%error, project, "failed to remove the receipts of a project");
        }
    }
}

async fn store(
    blobs: &dyn Blobs,
    project: &str,
    key: &str,
    receipt: &Receipt,
) -> Result<(), BlobError> {
    let digest = key_digest(key);
    blobs
        .put(&receipt_key(project, &digest), to_json(receipt)?)
        .await?;
    let mut listed = list(blobs, project).await?;
    listed.retain(|other| *other != digest);
    listed.insert(0, digest);
    let outdated = listed.split_off(listed.len().min(MAX_RECEIPTS));
    blobs.put(&list_key(project), to_json(&listed)?).await?;
    for digest in outdated {
        blobs.remove(&receipt_key(project, &digest)).await?;
    }
    Ok(())
}

async fn remove_all(blobs: &dyn Blobs, project: &str) -> Result<(), BlobError> {
    for digest in list(blobs, project).await? {
        blobs.remove(&receipt_key(project, &digest)).await?;
    }
    blobs.remove(&list_key(project)).await
}

/// Returns the digests of the deployment keys of a project's receipts, newest first.
async fn list(blobs: &dyn Blobs, project: &str) -> Result<Vec<String>, BlobError> {
    let listed = read(blobs, &list_key(project)).await?;
    Ok(listed.unwrap_or_default())
}

/// Reads a blob on a blocking thread. Returns `None` if it does not exist, or is not the expected JSON.
async fn read<T: DeserializeOwned + Send + 'static>(
    blobs: &dyn Blobs,
    key: &str,
) -> Result<Option<T>, BlobError> {
    let mut reader = match blobs.open(key).await {
        Ok(reader) => reader,
        Err(BlobError::Missing) => return Ok(None),
        Err(error) => return Err(error),
    };
    let parse = move || {
        let mut json = Vec::new();
        reader.read_to_end(&mut json).map_err(blob_error)?;
        Ok(serde_json::from_slice(&json).ok())
    };
    let parsed = tokio::task::spawn_blocking(parse).await;
    parsed.unwrap_or_else(|error| Err(blob_error(error)))
}

fn blob_error(error: impl std::error::Error + Send + Sync + 'static) -> BlobError {
    BlobError::Failed(Cause::new(error))
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, BlobError> {
    serde_json::to_vec(value).map_err(blob_error)
}

/// Returns the key of the blob that lists the receipts of a project.
fn list_key(project: &str) -> String {
    format!("pages-{}", key_digest(project))
}

/// Returns the key of the blob with a receipt.
fn receipt_key(project: &str, digest: &str) -> String {
    format!("{}-{digest}", list_key(project))
}

/// Returns a text of any length in the characters of a blob key.
fn key_digest(text: &str) -> String {
    hex(&Sha256::digest(text)[..16])
}
