//! The metrics of the store for blobs, as a decorator.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{BlobError, BlobReader, Blobs, StagedBlob};
use core_http::kernel::metrics::{Buckets, Counter, Definition, Histogram, Metrics};
use tokio::time::Instant;

const OPERATIONS: Definition<2> = Definition {
    name: "core_blob_operations_total",
    help: "Operations of the store for uploads, by outcome. `commit` stores an upload, `open` copies it from a bucket.",
    labels: ["operation", "outcome"],
};

const DURATION: Definition<1> = Definition {
    name: "core_blob_operation_duration_seconds",
    help: "Duration of an operation of the store for uploads.",
    labels: ["operation"],
};

/// The series of an operation. All of them exist from the start.
#[derive(Debug)]
struct Operation {
    ok: Counter,
    missing: Counter,
    failed: Counter,
    duration: Histogram,
}

impl Operation {
    async fn count<T>(
        &self,
        work: impl Future<Output = Result<T, BlobError>> + Send,
    ) -> Result<T, BlobError> {
        let began = Instant::now();
        let result = work.await;
        self.duration.record(began.elapsed());
        let outcome = match &result {
            Ok(_) => &self.ok,
            Err(BlobError::Missing) => &self.missing,
            Err(_) => &self.failed,
        };
        outcome.increment();
        result
    }
}

/// The series of all operations.
#[derive(Debug)]
struct BlobMetrics {
    stage: Operation,
    commit: Operation,
    open: Operation,
    remove: Operation,
    list: Operation,
}

impl BlobMetrics {
    fn new(metrics: &Metrics) -> Self {
        let operations = metrics.counters(&OPERATIONS);
        let durations = metrics.histograms(&DURATION, Buckets::BACKGROUND);
        let operation = |name| Operation {
            ok: operations.with([name, "ok"]),
            missing: operations.with([name, "missing"]),
            failed: operations.with([name, "failed"]),
            duration: durations.with([name]),
        };
        Self {
            stage: operation("stage"),
            commit: operation("commit"),
            open: operation("open"),
            remove: operation("remove"),
            list: operation("list"),
        }
    }
}

/// A store for blobs whose operations are counted.
#[derive(Debug)]
pub(crate) struct MeteredBlobs {
    blobs: Arc<dyn Blobs>,
    metrics: Arc<BlobMetrics>,
}

impl MeteredBlobs {
    /// Creates a store that counts the operations of `blobs`.
    pub(crate) fn new(blobs: Arc<dyn Blobs>, metrics: &Metrics) -> Self {
        Self {
            blobs,
            metrics: Arc::new(BlobMetrics::new(metrics)),
        }
    }
}

#[async_trait]
impl Blobs for MeteredBlobs {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        let staged = self.metrics.stage.count(self.blobs.stage()).await?;
        Ok(Box::new(MeteredStagedBlob {
            staged,
            metrics: Arc::clone(&self.metrics),
        }))
    }

    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        self.metrics.open.count(self.blobs.open(key)).await
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        self.metrics.remove.count(self.blobs.remove(key)).await
    }

    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        self.metrics.list.count(self.blobs.older_than(age)).await
    }

    async fn keys(&self) -> Result<Vec<String>, BlobError> {
        self.metrics.list.count(self.blobs.keys()).await
    }
}

/// A staged blob whose commit is counted. Appending bytes is a write to a local file.
#[derive(Debug)]
struct MeteredStagedBlob {
    staged: Box<dyn StagedBlob>,
    metrics: Arc<BlobMetrics>,
}

#[async_trait]
impl StagedBlob for MeteredStagedBlob {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.staged.append(bytes).await
    }

    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError> {
        self.staged.open().await
    }

    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError> {
        let Self { staged, metrics } = *self;
        metrics.commit.count(staged.commit(key)).await
    }
}

#[cfg(test)]
mod tests {
    use core_domain::testing::MemoryBlobs;

    use super::*;

    #[tokio::test]
    async fn operations_are_counted_by_outcome() {
        let metrics = Metrics::new();
        let blobs = MeteredBlobs::new(Arc::new(MemoryBlobs::default()), &metrics);
        blobs.put("upload-1", b"one".to_vec()).await.unwrap();
        drop(blobs.open("upload-1").await.unwrap());
        assert!(blobs.open("upload-2").await.is_err());
        assert!(blobs.remove("not a key").await.is_err());
        blobs.older_than(Duration::ZERO).await.unwrap();
        let text = metrics.render();
        for (operation, outcome) in [
            ("stage", "ok"),
            ("commit", "ok"),
            ("open", "ok"),
            ("open", "missing"),
            ("remove", "failed"),
            ("list", "ok"),
        ] {
            let line = format!(
                "core_blob_operations_total{{operation=\"{operation}\",outcome=\"{outcome}\"}} 1"
            );
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let opened = "core_blob_operation_duration_seconds_count{operation=\"open\"} 2";
        assert!(text.contains(opened), "{text}");
    }
}
