//! The addresses of clients, as trusted proxies report them.

#[cfg(feature = "local")]
use core_domain::gateway;
use core_domain::gateway::TrustedProxies;
use core_http::gateway::ConfigError;
#[cfg(feature = "local")]
use core_http::kernel::PeerAddr;
#[cfg(feature = "local")]
use core_local::ClientAddress;

use crate::SuiteBuilder;

/// Returns the proxies whose forwarding headers are trusted.
pub(crate) fn trusted_proxies(builder: &SuiteBuilder) -> Result<TrustedProxies, ConfigError> {
    let proxies = TrustedProxies::parse(&builder.settings.gateway.trusted_proxies);
    proxies.map_err(|problem| ConfigError {
        setting: "trusted_proxies",
        problem: problem.to_string(),
    })
}

/// Returns the function that finds the client of a request to a site: the peer of the connection, or the client for which
/// a trusted proxy forwards.
#[cfg(feature = "local")]
pub(crate) fn client_address(builder: &SuiteBuilder) -> Result<ClientAddress, ConfigError> {
    let proxies = trusted_proxies(builder)?;
    Ok(ClientAddress::new(move |extensions, headers| {
        let PeerAddr(peer) = extensions.get()?;
        let lines = headers.get_all("x-forwarded-for").iter();
        // A line that is not text becomes an invalid address, which ends the search.
        let lines = lines.map(|line| line.to_str().unwrap_or(""));
        Some(gateway::client_address(peer.ip(), lines, &proxies).to_canonical())
    }))
}

#[cfg(all(test, feature = "local"))]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::Suite;

    #[test]
    fn forwarded_address_counts_only_from_a_trusted_proxy() {
        let builder = Suite::builder().trusted_proxies(vec!["10.0.0.1".to_owned()]);
        let address = client_address(&builder).unwrap();
        let client_of = |peer: &str| {
            let peer: SocketAddr = peer.parse().unwrap();
            let request = http::Request::builder()
                .header("x-forwarded-for", "192.0.2.7")
                .extension(PeerAddr(peer))
                .body(())
                .unwrap();
            let client = address.of(request.extensions(), request.headers());
            client.unwrap().to_string()
        };
        assert_eq!(client_of("10.0.0.1:80"), "192.0.2.7");
        assert_eq!(client_of("198.51.100.1:80"), "198.51.100.1");
    }
}
