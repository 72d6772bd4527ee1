//! The typed stores in the data folder, opened by name.

use std::path::PathBuf;
use std::sync::Arc;

use core_domain::kernel::Clock;
use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;

use crate::bucket::{self, Bucket};
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::execution::Execution;
use crate::kv::{self, KvNamespace};
use crate::limits::BindingLimits;
use crate::manifest::Manifest;
use crate::names::display_name;
use crate::queue::{self, Queue};

/// The file name of a D1 database.
pub(crate) const DATABASE: &str = "database.sqlite";

/// The data folder, the clock for expiry, and the threads and limits of the stores. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    pub(crate) data: Arc<DataDir>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) execution: Execution,
}

impl Stores {
    pub(crate) fn new(data: DataDir, clock: Arc<dyn Clock>, limits: BindingLimits) -> Self {
        Self {
            data: Arc::new(data),
            clock,
            execution: Execution::with_shared_threads(limits),
        }
    }

    /// Returns the same stores with dedicated threads.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the threads cannot be prepared.
    pub(crate) fn on_separate_threads(&self) -> Result<Self> {
        Ok(Self {
            execution: Execution::with_dedicated_threads(self.execution.limits)?,
            ..self.clone()
        })
    }

    /// Returns the path of the file of a D1 database.
    pub(crate) async fn database(&self, name: &str) -> Result<PathBuf> {
        self.file_of(ResourceType::D1, name, DATABASE).await
    }

    /// Opens a key-value namespace.
    pub(crate) async fn kv(&self, name: &str) -> Result<KvNamespace> {
        let path = self.file_of(ResourceType::Kv, name, kv::FILE).await?;
        KvNamespace::open(&path, &self.execution, Arc::clone(&self.clock)).await
    }

    /// Opens a queue.
    pub(crate) async fn queue(&self, name: &str) -> Result<Queue> {
        let path = self.file_of(ResourceType::Queue, name, queue::FILE).await?;
        Queue::open(&path, &self.execution, Arc::clone(&self.clock)).await
    }

    /// Opens a bucket.
    pub(crate) async fn bucket(&self, name: &str) -> Result<Bucket> {
        self.file_of(ResourceType::R2, name, bucket::FOLDER).await?;
        let (data, clock) = (Arc::clone(&self.data), Arc::clone(&self.clock));
        let execution = self.execution.clone();
        Ok(Bucket::new(data, clock, execution, name.to_owned()))
    }

    /// Runs blocking work on the data folder, off the async threads.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&DataDir) -> Result<T> + Send + 'static,
    {
        let data = Arc::clone(&self.data);
        self.execution.run(move || work(&data)).await
    }

    async fn file_of(
        &self,
        resource_type: ResourceType,
        name: &str,
        file: &'static str,
    ) -> Result<PathBuf> {
        let resource = ResourceRef {
            resource_type,
            name: name.to_owned(),
        };
        self.run(move |data| match Manifest::read(data, &resource)? {
            Some(_) => data.path(&[resource_type.as_str(), &resource.name, file]),
            None => Err(LocalError::Missing(display_name(&resource))),
        })
        .await
    }
}
