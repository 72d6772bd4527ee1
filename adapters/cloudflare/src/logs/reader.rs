//! Readers of the log of an owner's objects.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::{LogContent, LogLevel};
use core_domain::port::{
    Cause, Infrastructure, LogBatch, LogError, LogQuery, LogReader, ProviderError, ResourceLogs,
    ResourceRef,
};
use core_domain::registry::ResourceType;
use futures_util::{StreamExt, stream};
use tokio::sync::watch;

use super::lines::Lines;
use super::tail::Tail;
use crate::client::Client;
use crate::infrastructure::CloudflareInfrastructure;
use crate::ownership::belongs_to;

/// The types of the objects that have logs.
const LOGGED_TYPES: [ResourceType; 2] = [ResourceType::Worker, ResourceType::Pages];
/// Maximum number of tails that are opened at the same time.
const CONCURRENCY: usize = 8;
/// Maximum number of tails of one reader.
const MAX_TAILS: usize = 32;

#[async_trait]
impl ResourceLogs for CloudflareInfrastructure {
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, LogError> {
        let objects = match &query.resource {
            Some(name) => self
                .logged_object(&query.owner, name)
                .await
                .map_err(log_error)?,
            None => self.logged_objects(&query.owner).await.map_err(log_error)?,
        };
        if query.resource.is_some() && objects.is_empty() {
            return Ok(None);
        }
        let lines = Arc::new(Lines::new(query.listener));
        let (keep_open, stop) = watch::channel(());
        // There are no lines of the past.
        let count = if query.follow { MAX_TAILS } else { 0 };
        let tails = objects.iter().take(count);
        let tails = tails.cloned().map(|object| {
            let client = self.client.clone();
            async move { Tail::open(&client, &object).await }
        });
        let tails: Vec<_> = stream::iter(tails).buffered(CONCURRENCY).collect().await;
        let mut failure = None;
        for tail in tails {
            match tail {
                Ok(Some(tail)) => {
                    tokio::spawn(tail.follow(Arc::clone(&lines), stop.clone()));
                }
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            // The other tails end with `keep_open`.
            return Err(log_error(error.into()));
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

fn log_error(error: ProviderError) -> LogError {
    LogError(Cause::new(error))
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
    async fn next(&mut self) -> Result<LogBatch, LogError> {
        Ok(self.lines.take(self.client.clock().now()))
    }
}
