//! Implements the DNS port with `hickory-resolver`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{Cause, DnsError, DnsResolver};
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{ResolverBuilder, TokioResolver};

/// The default port of name servers.
const DNS_PORT: u16 = 53;

/// The error for a text that is not the address of a name server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the address of a name server, for example 192.0.2.53 or [2001:db8::53]:5353")]
pub struct NameServerError(String);

/// Looks up DNS records. Every look-up asks the name servers again, with the current configuration of the operating
/// system.
#[derive(Clone, Debug)]
pub struct HickoryDns {
    /// The addresses of the name servers; `None` for those of the operating system.
    name_servers: Option<Vec<SocketAddr>>,
    timeout: Duration,
}

impl HickoryDns {
    /// Creates a resolver for these name servers, or for those of the operating system if the list is empty. `timeout`
    /// is the maximum duration of a look-up.
    ///
    /// # Errors
    /// [`NameServerError`] for the first text that is not an IP address with an optional port.
    pub fn new(name_servers: &[String], timeout: Duration) -> Result<Self, NameServerError> {
        let name_servers = name_servers.iter().map(|text| address(text));
        let name_servers = name_servers.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            name_servers: (!name_servers.is_empty()).then_some(name_servers),
            timeout,
        })
    }

    /// Queries the name servers of the root zone, which every recursive name server can find. Returns whether the response
    /// contains any. A server that responds without them does not resolve the names of other zones.
    ///
    /// # Errors
    /// [`DnsError`] if no name server gives a valid response in time.
    pub async fn finds_root(&self) -> Result<bool, DnsError> {
        let found = self.look_up(".", RecordType::NS).await?;
        Ok(!found.is_empty())
    }

    fn resolver(&self) -> Result<TokioResolver, Cause> {
        let mut builder = match &self.name_servers {
            Some(servers) => builder_for(servers),
            None => TokioResolver::builder_tokio().map_err(Cause::new)?,
        };
        let options = builder.options_mut();
        // Leaves time for a second attempt.
        options.timeout = self.timeout / 2;
        options.attempts = 1;
        options.use_hosts_file = ResolveHosts::Never;
        options.cache_size = 0;
        builder.build().map_err(Cause::new)
    }

    /// Returns the data of all records with this name and type; an empty list if there are none.
    async fn look_up(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, DnsError> {
        let found = tokio::time::timeout(self.timeout, self.query(name, kind)).await;
        let found = found.unwrap_or_else(|elapsed| Err(Cause::new(elapsed)));
        found.map_err(|cause| {
            tracing::debug!(name, %kind, %cause, "a DNS look-up failed");
            DnsError::Unavailable(cause)
        })
    }

    async fn query(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, Cause> {
        let mut name = Name::from_ascii(name).map_err(Cause::new)?;
        // An absolute name, so that the resolver does not append the search domains of the operating system.
        name.set_fqdn(true);
        match self.resolver()?.lookup(name, kind).await {
            Ok(found) => {
                let records = found.answers().iter();
                let of_kind = records.filter(|record| record.record_type() == kind);
                Ok(of_kind.map(|record| record.data.clone()).collect())
            }
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(error) => Err(Cause::new(error)),
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, NameServerError> {
    let with_port = text.parse::<SocketAddr>();
    with_port
        .or_else(|_| Ok(SocketAddr::new(text.parse::<IpAddr>()?, DNS_PORT)))
        .map_err(|_: std::net::AddrParseError| NameServerError(text.to_owned()))
}

fn builder_for(servers: &[SocketAddr]) -> ResolverBuilder<TokioRuntimeProvider> {
    let servers = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.to_vec())
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

#[async_trait]
impl DnsResolver for HickoryDns {
    async fn cname(&self, name: &str) -> Result<Option<String>, DnsError> {
        let found = self.look_up(name, RecordType::CNAME).await?;
        Ok(found.into_iter().find_map(|data| match data {
            RData::CNAME(target) => {
                let target = target.0.to_ascii().to_ascii_lowercase();
                Some(target.trim_end_matches('.').to_owned())
            }
            _ => None,
        }))
    }

    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError> {
        let found = self.look_up(name, RecordType::TXT).await?;
        let texts = found.into_iter().filter_map(|data| match data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        });
        Ok(texts.collect())
    }

    async fn addresses(&self, name: &str) -> Result<BTreeSet<IpAddr>, DnsError> {
        let (v4, v6) = tokio::try_join!(
            self.look_up(name, RecordType::A),
            self.look_up(name, RecordType::AAAA),
        )?;
        let all = v4.into_iter().chain(v6);
        Ok(all.filter_map(|data| data.ip_addr()).collect())
    }
}
