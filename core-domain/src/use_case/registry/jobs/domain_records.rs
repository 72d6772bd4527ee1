//! Which of the DNS records of a custom domain are there.

use crate::port::{DnsError, DnsResolver};
use crate::registry::{CustomDomain, MissingRecord};

/// The records that are missing.
///
/// # Errors
/// [`DnsError`] when that cannot be told now.
pub(super) async fn missing_records(
    dns: &dyn DnsResolver,
    domain: &CustomDomain,
) -> Result<Vec<MissingRecord>, DnsError> {
    let [route, proof] = domain.required_records();
    let mut missing = Vec::new();
    if !leads_to(dns, &route).await? {
        missing.push(route);
    }
    if !dns.txt(&proof.name).await?.contains(&proof.value) {
        missing.push(proof);
    }
    Ok(missing)
}

/// Whether a name leads to another one: as another name for it or, as the apex of a zone must, by its addresses.
async fn leads_to(dns: &dyn DnsResolver, route: &MissingRecord) -> Result<bool, DnsError> {
    if dns.cname(&route.name).await?.as_ref() == Some(&route.value) {
        return Ok(true);
    }
    let own = dns.addresses(&route.name).await?;
    Ok(!own.is_empty() && own == dns.addresses(&route.value).await?)
}
