//! The DNS records that this provider creates. Their comment identifies them.

use core_domain::port::{ProviderError, ResourceRef};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;

/// The error code if the record does not exist.
const MISSING: u32 = 81_044;

/// The error codes if a conflicting record exists: the same record, or one of a type that excludes others.
const DUPLICATE: [u32; 3] = [81_057, 81_058, 81_053];

/// The record types that give the address of a name. A name can also have other records.
const ADDRESS_TYPES: [&str; 3] = ["A", "AAAA", "CNAME"];

/// The prefix of the comment of the provider's records.
const COMMENT: &str = "core-route:";

/// The required fields of a DNS record.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DnsRecord {
    pub(super) id: String,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    pub(super) content: String,
    comment: Option<String>,
}

/// A new record that points a name to an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewRecord<'a> {
    pub(super) hostname: &'a str,
    pub(super) kind: &'static str,
    pub(super) content: &'a str,
    pub(super) target: &'a ResourceRef,
}

fn comment(target: &ResourceRef) -> String {
    format!("{COMMENT}{}:{}", target.resource_type, target.name)
}

impl DnsRecord {
    /// Returns whether the record was created for this object.
    pub(super) fn is_of(&self, target: &ResourceRef) -> bool {
        self.comment.as_deref() == Some(&comment(target))
    }

    /// Returns whether this provider created the record.
    pub(super) fn is_ours(&self) -> bool {
        let comment = self.comment.as_deref();
        comment.is_some_and(|comment| comment.starts_with(COMMENT))
    }

    /// Returns the project for which the record was created; `None` if it was created for something else.
    pub(super) fn project(&self) -> Option<&str> {
        let target = self.comment.as_deref()?.strip_prefix(COMMENT)?;
        target.strip_prefix("pages:")
    }
}

/// Returns the address records of a name.
pub(super) async fn address_records(
    client: &Client,
    zone: &str,
    hostname: &str,
) -> Result<Vec<DnsRecord>, CallError> {
    let list = Call::new(Method::GET, "dns.find", &["zones", zone, "dns_records"]);
    let list = list.query("name.exact", hostname).query("per_page", 100);
    let mut records = client.fetch::<Vec<DnsRecord>>(list).await?.result;
    records
        .retain(|record| record.name == hostname && ADDRESS_TYPES.contains(&record.kind.as_str()));
    Ok(records)
}

/// Creates the record, or updates the existing record of the same object.
pub(super) async fn ensure(
    client: &Client,
    zone: &str,
    record: NewRecord<'_>,
) -> Result<(), ProviderError> {
    let body = json!({
        "type": record.kind,
        "name": record.hostname,
        "content": record.content,
        "ttl": 1,
        "proxied": true,
        "comment": comment(record.target),
    });
    let call = Call::new(Method::POST, "dns.create", &["zones", zone, "dns_records"]);
    let Err(error) = client.run(call.json(&body)).await else {
        return Ok(());
    };
    let is_duplicate = DUPLICATE.iter().any(|code| error.has(*code));
    if !is_duplicate && !error.is_ambiguous() {
        return Err(error.into());
    }
    let there = address_records(client, zone, record.hostname).await?;
    match there.first() {
        Some(known) if known.is_of(record.target) => {
            update_content(client, zone, known, record, &body).await
        }
        Some(_) => Err(ProviderError::NameTaken(record.hostname.to_owned())),
        None => Err(error.into()),
    }
}

/// Updates an existing record if its content differs, because the address of the object can change.
async fn update_content(
    client: &Client,
    zone: &str,
    known: &DnsRecord,
    wanted: NewRecord<'_>,
    body: &Value,
) -> Result<(), ProviderError> {
    if known.kind == wanted.kind && known.content == wanted.content {
        return Ok(());
    }
    let path = ["zones", zone, "dns_records", known.id.as_str()];
    let call = Call::new(Method::PATCH, "dns.correct", &path);
    Ok(client.run(call.json(body)).await?)
}

pub(super) async fn remove(client: &Client, zone: &str, id: &str) -> Result<(), CallError> {
    let call = Call::new(
        Method::DELETE,
        "dns.remove",
        &["zones", zone, "dns_records", id],
    );
    client.remove(call, MISSING).await
}

/// Deletes the address records that were created for an object.
pub(super) async fn remove_of(
    client: &Client,
    zone: &str,
    hostname: &str,
    target: &ResourceRef,
) -> Result<(), CallError> {
    for record in address_records(client, zone, hostname).await? {
        if record.is_of(target) {
            remove(client, zone, &record.id).await?;
        }
    }
    Ok(())
}
