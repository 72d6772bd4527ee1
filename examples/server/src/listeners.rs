//! The listening sockets. They are bound before anything else is built, so that every address is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

use core_suite::SuiteService;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::service::{SITES_PORT_OFFSET, port_offset};
use crate::service_manager::inherited_listeners;

/// A listener for each service that runs, and one for the local sites.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) services: BTreeMap<SuiteService, TcpListener>,
    pub(crate) sites: TcpListener,
}

impl Listeners {
    /// Binds all listeners. Sockets that the service manager has opened are used for their ports.
    pub(crate) async fn bind(config: &Config) -> std::io::Result<Self> {
        let mut inherited = inherited_listeners()?;
        let mut services = BTreeMap::new();
        // A service that is named twice has one listener.
        for service in BTreeSet::from_iter(&config.options.services) {
            services.insert(
                *service,
                bind(config, port_offset(*service), &mut inherited).await?,
            );
        }
        Ok(Self {
            services,
            sites: bind(config, SITES_PORT_OFFSET, &mut inherited).await?,
        })
    }

    /// The port of the local sites.
    pub(crate) fn site_port(&self) -> std::io::Result<u16> {
        Ok(self.sites.local_addr()?.port())
    }

    /// Returns the base URLs of the services and of the sites, by name.
    pub(crate) fn addresses(&self) -> std::io::Result<BTreeMap<&'static str, String>> {
        let mut addresses = BTreeMap::new();
        for (service, listener) in &self.services {
            addresses.insert(
                service.as_str(),
                format!("http://{}", listener.local_addr()?),
            );
        }
        addresses.insert("sites", format!("http://{}", self.sites.local_addr()?));
        Ok(addresses)
    }
}

async fn bind(
    config: &Config,
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
    let address = SocketAddr::new(config.options.bind, port);
    TcpListener::bind(address)
        .await
        .map_err(|e| std::io::Error::new(e.kind(), format!("{address}: {e}")))
}
