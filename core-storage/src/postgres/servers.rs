//! The servers of the database, in the order in which they are tried.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::lookup_host;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

const DEFAULT_PORT: u16 = 5432;

/// One server of the database's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// The host name, which the server's certificate must contain, or the folder of a Unix socket.
    host: Option<Host>,
    /// The IP address of the server, if the URL contains one in addition to the name.
    address: Option<IpAddr>,
    port: u16,
}

/// The servers of the database's URL. The server that was reached last is tried first.
#[derive(Clone)]
pub(super) struct Servers {
    all: Arc<[Server]>,
    /// The index of the server that was reached last.
    last: Arc<AtomicUsize>,
    in_random_order: bool,
}

impl Servers {
    /// Returns the servers that the configuration names; `None` if the numbers of hosts, addresses and ports do not
    /// match.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let ports = config.get_ports();
        let count = hosts.len().max(addresses.len());
        let fits = |length: usize| length == 0 || length == count;
        let fits =
            fits(hosts.len()) && fits(addresses.len()) && (fits(ports.len()) || ports.len() == 1);
        if !fits || count == 0 {
            return None;
        }
        let server = |at: usize| Server {
            host: hosts.get(at).cloned(),
            address: addresses.get(at).copied(),
            port: ports
                .get(at)
                .or(ports.first())
                .copied()
                .unwrap_or(DEFAULT_PORT),
        };
        Some(Self {
            all: (0..count).map(server).collect(),
            last: Arc::default(),
            in_random_order: config.get_load_balance_hosts() == LoadBalanceHosts::Random,
        })
    }

    /// Returns the number of servers, at least 1.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the servers with their indexes, in the order in which they are tried.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, &Server)> {
        let order = self.order().into_iter();
        order.filter_map(move |at| Some((at, self.all.get(at)?)))
    }

    /// Records that the server with this index was reached.
    pub(super) fn note_reached(&self, at: usize) {
        self.last.store(at, Ordering::Relaxed);
    }

    /// Returns the indexes of the servers in the order in which they are tried.
    fn order(&self) -> Vec<usize> {
        let count = self.all.len();
        let first = self.last.load(Ordering::Relaxed);
        let mut order: Vec<usize> = (first..count).chain(0..first.min(count)).collect();
        if self.in_random_order {
            let random = RandomState::new();
            order.sort_by_cached_key(|at| random.hash_one(at));
        }
        order
    }
}

impl Server {
    /// Returns one configuration for each address of the server.
    pub(super) async fn configs(&self, config: &Config) -> std::io::Result<Vec<Config>> {
        let with_address = |address| {
            let mut config = without_servers(config);
            if let Some(Host::Tcp(host)) = &self.host {
                config.host(host);
            }
            config.hostaddr(address).port(self.port);
            config
        };
        match (&self.host, self.address) {
            (_, Some(address)) => Ok(vec![with_address(address)]),
            (Some(Host::Tcp(host)), None) => {
                let found = lookup_host((host.as_str(), self.port)).await?;
                Ok(found.map(|address| with_address(address.ip())).collect())
            }
            #[cfg(unix)]
            (Some(Host::Unix(path)), None) => {
                let mut config = without_servers(config);
                config.host_path(path).port(self.port);
                Ok(vec![config])
            }
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// Returns a copy of the configuration that names no server.
fn without_servers(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(name) = config.get_dbname() {
        copy.dbname(name);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        copy.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(count) = config.get_keepalives_retries() {
        copy.keepalives_retries(count);
    }
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs());
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(url: &str) -> Option<Servers> {
        Servers::of(&url.parse().unwrap())
    }

    fn tcp(host: &str, port: u16) -> Server {
        Server {
            host: Some(Host::Tcp(host.to_owned())),
            address: None,
            port,
        }
    }

    #[test]
    fn each_host_has_its_port_and_a_single_port_is_for_all_hosts() {
        let named = servers("postgres://one:1,two:2/x").unwrap();
        assert_eq!(*named.all, [tcp("one", 1), tcp("two", 2)]);
        let one_port = servers("host=one,two port=3").unwrap();
        assert_eq!(*one_port.all, [tcp("one", 3), tcp("two", 3)]);
        let no_port = servers("host=one").unwrap();
        assert_eq!(*no_port.all, [tcp("one", DEFAULT_PORT)]);
        assert!(servers("host=one,two,three port=1,2").is_none());
        assert!(servers("user=me").is_none());
    }

    #[test]
    fn the_server_that_was_reached_last_is_tried_first() {
        let servers = servers("host=one,two,three").unwrap();
        assert_eq!(servers.order(), [0, 1, 2]);
        servers.note_reached(1);
        assert_eq!(servers.order(), [1, 2, 0]);
    }

    #[tokio::test]
    async fn the_configuration_of_a_server_keeps_all_other_settings() {
        let url = "host=localhost hostaddr=127.0.0.1 port=7 user=me password=secret dbname=x \
             options='-c geqo=off' application_name=y sslmode=require connect_timeout=3 tcp_user_timeout=4 \
             keepalives=0 keepalives_idle=5 keepalives_interval=6 keepalives_retries=8 \
             target_session_attrs=read-write channel_binding=disable";
        let config: Config = url.parse().unwrap();
        let servers = Servers::of(&config).unwrap();
        let copies = servers.all[0].configs(&config).await.unwrap();
        assert_eq!(copies, [config]);
    }
}
