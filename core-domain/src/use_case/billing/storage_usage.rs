//! The metric `storage_bytes`: once a UTC day, the bytes that the stores of each stack hold and those of live sites count
//! (contract: "Usage").

use std::collections::BTreeMap;

use super::{Billing, feed_position};
use crate::access::{SystemScope, authorize_operator};
use crate::billing::usage::{IngestUsage, MAX_EVENTS, NewUsageEvent, UsageKey, start_of_day};
use crate::billing::{Day, FeedCursor, Metric};
use crate::kernel::{Context, Error, PageQuery, PlatformId, Result, StackId, Timestamp};
use crate::port::{Infrastructure, Mode, ProviderError, ResourceRef, Store, UnitOfWork};
use crate::registry::{Branch, Resource, ResourceStatus, ResourceType};
use crate::use_case::registry::{deployment, resource};
use crate::use_case::shared::usage::ingest;

/// The number of resources that are read at once.
const PAGE: u32 = 100;

/// The program that reports storage.
const SOURCE: &str = "core.storage";

/// The length of a day in seconds.
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The bytes of each stack of each platform. What belongs to no stack is counted for the platform.
type Sizes = BTreeMap<(PlatformId, Option<StackId>), u64>;

/// Measures what all platforms store and reports it as usage of the day, once a day. Returns the number of reported
/// quantities: 0 if the day was measured. Call it every few minutes; a measurement that was interrupted begins again. Objects
/// whose size the provider cannot tell do not count; see [`Infrastructure::stored_bytes`].
///
/// # Errors
/// `INTERNAL_ERROR` if the provider cannot be reached.
pub async fn measure_storage(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    infrastructure: &dyn Infrastructure,
) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let now = billing.now(uow.as_mut()).await;
    uow.rollback().await;
    let day = start_of_day(now?);
    let position = day.seconds() / DAY_SECONDS;
    let last = feed_position::position(store, FeedCursor::STORAGE).await?;
    if last.is_some_and(|last| last >= position) {
        return Ok(0);
    }
    let sizes = measure(store, infrastructure).await?;
    let events: Vec<_> = sizes
        .iter()
        .filter_map(|((platform, stack), bytes)| event(platform, stack.as_ref(), *bytes, day))
        .collect();
    let scope = authorize_operator(cx)?;
    for batch in events.chunks(MAX_EVENTS) {
        let events = batch.to_vec();
        ingest(
            cx,
            &scope,
            store,
            billing.metering(),
            IngestUsage { events },
        )
        .await?;
    }
    feed_position::advance(store, FeedCursor::STORAGE, position).await?;
    Ok(events.len())
}

/// Returns the usage of a stack on a day. The stack and the day make its id, so the day counts once.
fn event(
    platform: &PlatformId,
    stack: Option<&StackId>,
    bytes: u64,
    day: Timestamp,
) -> Option<NewUsageEvent> {
    let owner = stack.map_or(platform.as_str(), StackId::as_str);
    Some(NewUsageEvent {
        id: UsageKey::parse(&format!("{owner}:{}", Day::of(day))).ok()?,
        source: UsageKey::parse(SOURCE).ok()?,
        platform_id: platform.clone(),
        stack_id: stack.cloned(),
        tenant_id: None,
        metric: Metric::StorageBytes.as_str().to_owned(),
        quantity: i64::try_from(bytes).ok()?,
        time: day,
        corrects_id: None,
    })
}

async fn measure(store: &dyn Store, infrastructure: &dyn Infrastructure) -> Result<Sizes> {
    let scope = SystemScope::new();
    let mut query = PageQuery::first(PAGE).without_count();
    let mut sizes = Sizes::new();
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let page = resource::page_of_all(&scope, uow.as_mut(), &query).await;
        uow.rollback().await;
        let page = page?;
        for resource in &page.items {
            if let Some(bytes) = size_of(store, infrastructure, resource).await? {
                let stack = (resource.platform_id.clone(), resource.stack_id.clone());
                let sum = sizes.entry(stack).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(sizes),
        }
    }
}

/// Returns the bytes of a resource. Returns `None` if they are not known.
async fn size_of(
    store: &dyn Store,
    infrastructure: &dyn Infrastructure,
    resource: &Resource,
) -> Result<Option<u64>> {
    if resource.status != ResourceStatus::Active {
        return Ok(None);
    }
    if resource.resource_type == ResourceType::Pages {
        let mut uow = store.begin(Mode::Read).await?;
        let bytes = live_bytes(uow.as_mut(), resource).await;
        uow.rollback().await;
        return bytes;
    }
    if !resource.resource_type.is_store() {
        return Ok(None);
    }
    let object = ResourceRef {
        resource_type: resource.resource_type,
        name: resource.cf_name.to_string(),
    };
    match infrastructure.stored_bytes(&object).await {
        Ok(bytes) => Ok(bytes),
        Err(ProviderError::Transient(_) | ProviderError::Throttled { .. }) => Err(Error::Internal(
            "the infrastructure provider cannot be reached".to_owned(),
        )),
        // A damaged object does not stop the measurement of the others.
        Err(_) => Ok(None),
    }
}

/// Returns the bytes of the live deployment of a site.
async fn live_bytes(uow: &mut dyn UnitOfWork, resource: &Resource) -> Result<Option<u64>> {
    let platform = SystemScope::new().platform(uow, &resource.platform_id);
    let Some(platform) = platform.await? else {
        return Ok(None);
    };
    let live = deployment::live(&platform, uow, &Branch::production()).await?;
    let of_site = live.filter(|live| live.project_name == resource.cf_name.as_str());
    let bytes = of_site.and_then(|live| live.total_bytes);
    Ok(bytes.and_then(|bytes| u64::try_from(bytes).ok()))
}
