//! Readers of the log of an owner's objects.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::{LogContent, LogLevel};
use core_domain::port::{
    Infrastructure, LogBatch, LogQuery, LogReader, ProviderError, ResourceLogs, ResourceRef,
};
use core_domain::registry::ResourceType;
use tokio::sync::watch;

use super::lines::Lines;
use super::tail::Tail;
use crate::client::Client;
use crate::infrastructure::CloudflareInfrastructure;
use crate::ownership::belongs_to;

/// The types of the objects that have logs.
const LOGGED_TYPES: [ResourceType; 2] = [ResourceType::Worker, ResourceType::Pages];
/// Maximum number of tails of one reader.
const MAX_TAILS: usize = 32;

#[async_trait]
impl ResourceLogs for CloudflareInfrastructure {
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, ProviderError> {
        let objects = match &query.resource {
            Some(name) => self.logged_object(&query.owner, name).await?,
            None => self.logged_objects(&query.owner).await?,
        };
        if query.resource.is_some() && objects.is_empty() {
            return Ok(None);
        }
        let lines = Arc::new(Lines::new(query.listener));
        let (keep_open, stop) = watch::channel(());
        // There are no lines of the past.
        let count = if query.follow { MAX_TAILS } else { 0 };
        for object in objects.iter().take(count) {
            // If a tail cannot be opened, those before it end with `keep_open`.
            if let Some(tail) = Tail::open(&self.client, object).await? {
                tokio::spawn(tail.follow(Arc::clone(&lines), stop.clone()));
            }
        }
        if query.follow && objects.len() > MAX_TAILS {
            let text = format!(
                "only the first {MAX_TAILS} of {} workers and sites are shown; name one to see its lines",
                objects.len()
            );
            let now = self.client.clock().now();
            let line = (now, LogContent::console(LogLevel::Warn, &text));
            lines.push(&objects[0].name, vec![line], now);
        }
        Ok(Some(Box::new(TailReader {
            client: self.client.clone(),
            lines,
            _keep_open: keep_open,
        })))
    }
}

impl CloudflareInfrastructure {
    /// Returns the owner's worker or site with this name, if it exists.
    async fn logged_object(
        &self,
        owner: &str,
        name: &str,
    ) -> Result<Vec<ResourceRef>, ProviderError> {
        let mut objects = Vec::new();
        for resource_type in LOGGED_TYPES {
            let object = ResourceRef {
                resource_type,
                name: name.to_owned(),
            };
            let found = self.observe(&object).await?;
            if found.is_some_and(|found| belongs_to(&found, name, owner)) {
                objects.push(object);
            }
        }
        Ok(objects)
    }

    /// Returns the owner's workers and sites.
    async fn logged_objects(&self, owner: &str) -> Result<Vec<ResourceRef>, ProviderError> {
        let mut objects = Vec::new();
        for resource_type in LOGGED_TYPES {
            let mut cursor = None;
            loop {
                let page = self.list_owned(owner, resource_type, cursor).await?;
                objects.extend(page.objects.into_iter().map(|object| ResourceRef {
                    resource_type,
                    name: object.name,
                }));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(objects)
    }
}

/// Reads the lines of the tails, which end when it is dropped.
#[derive(Debug)]
struct TailReader {
    client: Client,
    lines: Arc<Lines>,
    _keep_open: watch::Sender<()>,
}

#[async_trait]
impl LogReader for TailReader {
    async fn next(&mut self) -> Result<LogBatch, ProviderError> {
        Ok(self.lines.take(self.client.clock().now()))
    }
}
