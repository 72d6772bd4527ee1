//! The listening sockets. They are bound before anything else is built, so that every address is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use core_suite::SuiteService;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::service::{METRICS_PORT_OFFSET, SITES_PORT_OFFSET, port_offset};
use crate::service_manager::inherited_listeners;

/// A listener for each service that runs, one for the metrics, and one for the local sites.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) services: BTreeMap<SuiteService, TcpListener>,
    pub(crate) metrics: TcpListener,
    pub(crate) sites: TcpListener,
}

impl Listeners {
    /// Binds all listeners. Sockets that the service manager has opened are used for their ports.
    pub(crate) async fn bind(config: &Config) -> std::io::Result<Self> {
        let mut inherited = inherited_listeners()?;
        let mut services = BTreeMap::new();
        // A service that is named twice has one listener.
        for service in BTreeSet::from_iter(&config.options.services) {
            let offset = port_offset(*service);
            let listener = bind(config, config.options.bind, offset, &mut inherited);
            services.insert(*service, listener.await?);
        }
        let metrics = config.options.metrics_bind;
        let sites = config.options.bind;
        Ok(Self {
            services,
            metrics: bind(config, metrics, METRICS_PORT_OFFSET, &mut inherited).await?,
            sites: bind(config, sites, SITES_PORT_OFFSET, &mut inherited).await?,
        })
    }

    /// The port of the local sites.
    pub(crate) fn site_port(&self) -> std::io::Result<u16> {
        Ok(self.sites.local_addr()?.port())
    }

    /// Returns the base URLs of the services, of the metrics and of the sites, by name.
    pub(crate) fn addresses(&self) -> std::io::Result<BTreeMap<&'static str, String>> {
        let mut addresses = BTreeMap::new();
        for (service, listener) in &self.services {
            addresses.insert(
                service.as_str(),
                format!("http://{}", listener.local_addr()?),
            );
        }
        for (name, listener) in [("metrics", &self.metrics), ("sites", &self.sites)] {
            addresses.insert(name, format!("http://{}", listener.local_addr()?));
        }
        Ok(addresses)
    }
}

async fn bind(
    config: &Config,
    address: IpAddr,
    offset: u16,
    inherited: &mut HashMap<u16, std::net::TcpListener>,
) -> std::io::Result<TcpListener> {
    let port = if config.options.base_port == 0 {
        0
    } else {
        config.options.base_port + offset
    };
    if let Some(listener) = inherited.remove(&port) {
        return TcpListener::from_std(listener);
    }
    let address = SocketAddr::new(address, port);
    TcpListener::bind(address)
        .await
        .map_err(|e| std::io::Error::new(e.kind(), format!("{address}: {e}")))
}
