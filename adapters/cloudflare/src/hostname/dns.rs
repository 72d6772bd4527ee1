//! DNS records of ours, told by their comment.

use core_domain::port::{ProviderError, ResourceRef};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;

/// There is no such record.
const MISSING: u32 = 81_044;

/// There is a record in the place already: of this content, or of a name that can have one kind alone.
const DUPLICATE: [u32; 3] = [81_057, 81_058, 81_053];

/// Records that say where a name leads. A name can have others besides.
const LEADING: [&str; 3] = ["A", "AAAA", "CNAME"];

/// What the comment of a record of ours begins with.
const COMMENT: &str = "core-route:";

/// A DNS record, as far as it matters.
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

/// A record that lets a name lead to an object of ours.
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
    /// Whether it was made for this object.
    pub(super) fn is_of(&self, target: &ResourceRef) -> bool {
        self.comment.as_deref() == Some(&comment(target))
    }

    /// Whether it was made for an object of ours.
    pub(super) fn is_ours(&self) -> bool {
        let comment = self.comment.as_deref();
        comment.is_some_and(|comment| comment.starts_with(COMMENT))
    }

    /// The project of ours it was made for.
    pub(super) fn project(&self) -> Option<&str> {
        let target = self.comment.as_deref()?.strip_prefix(COMMENT)?;
        target.strip_prefix("pages:")
    }
}

/// The records that say where a name leads.
pub(super) async fn leading(
    client: &Client,
    zone: &str,
    hostname: &str,
) -> Result<Vec<DnsRecord>, CallError> {
    let list = Call::new(Method::GET, "dns.find", &["zones", zone, "dns_records"]);
    let list = list.query("name.exact", hostname).query("per_page", 100);
    let mut records = client.fetch::<Vec<DnsRecord>>(list).await?.result;
    records.retain(|record| record.name == hostname && LEADING.contains(&record.kind.as_str()));
    Ok(records)
}

/// Makes the record, unless it is there.
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
    let there = leading(client, zone, record.hostname).await?;
    match there.first() {
        Some(known) if known.is_of(record.target) => {
            correct(client, zone, known, record, &body).await
        }
        Some(_) => Err(ProviderError::NameTaken(record.hostname.to_owned())),
        None => Err(error.into()),
    }
}

/// Lets a record of ours lead where it should now: the object may have got another address since.
async fn correct(
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

/// Removes the records that were made for an object.
pub(super) async fn remove_of(
    client: &Client,
    zone: &str,
    hostname: &str,
    target: &ResourceRef,
) -> Result<(), CallError> {
    for record in leading(client, zone, hostname).await? {
        if record.is_of(target) {
            remove(client, zone, &record.id).await?;
        }
    }
    Ok(())
}
