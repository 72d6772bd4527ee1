//! Tests of look-ups through a name server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::net::IpAddr;
use std::time::Duration;

use core_dns::testing::LoopbackDns;
use core_dns::{HickoryDns, NameServerError};
use core_domain::port::{DnsError, DnsResolver};

async fn server() -> (LoopbackDns, HickoryDns) {
    let server = LoopbackDns::start().await.unwrap();
    let dns = resolver_of(&server, Duration::from_secs(5));
    (server, dns)
}

fn resolver_of(server: &LoopbackDns, timeout: Duration) -> HickoryDns {
    HickoryDns::new(&[server.address().to_string()], timeout).unwrap()
}

#[tokio::test]
async fn addresses_are_found_through_a_chain_of_cname_records() {
    let (server, dns) = server().await;
    let [v4, v6] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse::<IpAddr>().unwrap());
    server.add_cname("shop.example.com", "Platform.Example.NET.");
    server.add_cname("platform.example.net", "edge.example.net.");
    server.add_address("edge.example.net", v4);
    server.add_address("edge.example.net", v6);
    let cname = dns.cname("shop.example.com").await.unwrap();
    assert_eq!(cname.as_deref(), Some("platform.example.net"));
    let addresses = dns.addresses("shop.example.com").await.unwrap();
    assert_eq!(addresses, [v4, v6].into());
    assert_eq!(dns.cname("edge.example.net").await, Ok(None));
    server.add_cname("*.shop.example.com", "platform.example.net.");
    let wildcard = dns.cname("*.shop.example.com").await.unwrap();
    assert_eq!(wildcard.as_deref(), Some("platform.example.net"));
}

#[tokio::test]
async fn every_txt_record_is_returned_with_its_parts_joined() {
    let (server, dns) = server().await;
    let name = "_core-verification.shop.example.com";
    server.add_txt(name, &["core-verification=", "abc"]);
    server.add_txt(name, &["v=spf1 -all"]);
    let mut texts = dns.txt(name).await.unwrap();
    texts.sort_unstable();
    assert_eq!(texts, ["core-verification=abc", "v=spf1 -all"]);
}

#[tokio::test]
async fn missing_records_are_not_an_error_and_are_not_cached() {
    let (server, dns) = server().await;
    server.add_txt("text.example.com", &["text"]);
    for name in ["text.example.com", "nothing.example.com"] {
        assert_eq!(dns.cname(name).await, Ok(None), "{name}");
        assert_eq!(dns.addresses(name).await, Ok([].into()), "{name}");
    }
    assert_eq!(dns.txt("nothing.example.com").await, Ok(Vec::new()));
    server.add_txt("nothing.example.com", &["there"]);
    let texts = dns.txt("nothing.example.com").await.unwrap();
    assert_eq!(texts, ["there"]);
    server.remove("nothing.example.com");
    assert_eq!(dns.txt("nothing.example.com").await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_server_that_fails_or_does_not_respond_is_an_error() {
    let (server, dns) = server().await;
    server.fail("broken.example.com");
    server.ignore("silent.example.com");
    let impatient = resolver_of(&server, Duration::from_millis(200));
    for (dns, name) in [
        (&dns, "broken.example.com"),
        (&impatient, "silent.example.com"),
    ] {
        let refused = |outcome: Result<(), DnsError>| {
            assert!(matches!(outcome, Err(DnsError::Unavailable(_))), "{name}");
        };
        refused(dns.cname(name).await.map(drop));
        refused(dns.txt(name).await.map(drop));
        refused(dns.addresses(name).await.map(drop));
    }
    let address = server.address();
    drop(server);
    let nobody = HickoryDns::new(&[address.to_string()], Duration::from_millis(200)).unwrap();
    assert!(nobody.txt("text.example.com").await.is_err());
}

#[test]
fn a_name_server_is_an_address_with_or_without_a_port() {
    let of = |text: &str| HickoryDns::new(&[text.to_owned()], Duration::from_secs(1)).map(drop);
    for good in [
        "192.0.2.53",
        "192.0.2.53:5353",
        "2001:db8::53",
        "[2001:db8::53]:5353",
    ] {
        assert_eq!(of(good), Ok(()), "{good}");
    }
    for bad in ["", "ns.example.org", "192.0.2.53:", "192.0.2.53:99999"] {
        let refused: Result<(), NameServerError> = of(bad);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains(&format!("{bad:?}"))
        );
    }
}

#[tokio::test]
async fn only_a_recursive_name_server_finds_the_root_zone() {
    let (server, dns) = server().await;
    assert_eq!(dns.finds_root().await, Ok(false));
    server.add_txt("", &["text"]);
    assert_eq!(dns.finds_root().await, Ok(false));
    server.add_root_server("a.root-servers.test");
    assert_eq!(dns.finds_root().await, Ok(true));
    server.fail("");
    assert!(matches!(
        dns.finds_root().await,
        Err(DnsError::Unavailable(_))
    ));
}
