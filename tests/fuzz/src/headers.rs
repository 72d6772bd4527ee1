//! Headers that the gateway reads before it knows the caller.
//!
//! What a header is read as is the same after it was written again. The client is the peer or an address of the
//! header, and a client that is no trusted proxy cannot choose its address.

use std::net::{IpAddr, Ipv4Addr};

use core_domain::gateway::{
    BrowserRequest, Credential, Origin, TraceContext, TrustedProxies, client_address,
    client_network, is_request_id, read_credential,
};
use core_domain::testing::SeededEntropy;

/// A header of each kind.
pub(crate) const SEEDS: &[&str] = &[
    "Bearer 0123456789abcdef",
    "bEARER  cat_0123456789",
    "core_0123456789abcdef",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "203.0.113.9, 10.0.0.2:80, [2001:db8::1]:443, ::ffff:10.0.0.3",
    "https://app.example.org:8443",
    "10.0.0.0/8, 2001:db8::/32, ::ffff:192.0.2.1",
    "req-1.2:3_4",
];

/// The peer, which is a trusted proxy.
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// A peer that is no trusted proxy.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Checks the claims for one header, read as each of the headers.
pub(crate) fn run(data: &[u8]) {
    check_credentials(data);
    let is_id = is_request_id(data);
    assert!(!is_id || (data.is_ascii() && data.len() <= 128 && !data.contains(&b' ')));
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_trace(text);
    check_addresses(text);
    check_origin(text);
}

fn check_credentials(data: &[u8]) {
    match read_credential([data], []) {
        Ok(Some(Credential::Bearer(token))) => {
            let again = format!("Bearer {}", token.expose());
            let read = read_credential([again.as_bytes()], [b"core_other".as_slice()]);
            let same = matches!(read, Ok(Some(Credential::Bearer(same))) if same.expose() == token.expose());
            assert!(
                same,
                "the token is read differently when it is written again"
            );
        }
        Ok(other) => assert!(
            other.is_none(),
            "Authorization is no bearer token: {other:?}"
        ),
        Err(_) => {}
    }
    if let Ok(Some(Credential::ApiKey(key))) = read_credential([], [data]) {
        assert_eq!(key.expose().as_bytes(), data);
    }
}

fn check_trace(text: &str) {
    let entropy = SeededEntropy::new(1);
    let trace = TraceContext::begin(Some(text), &entropy);
    assert_eq!(trace.traceparent().len(), 55);
    assert!(!trace.is_continued || text.contains(trace.trace_id()));
    let next = TraceContext::begin(Some(trace.traceparent()), &entropy);
    assert!(next.is_continued && next.trace_id() == trace.trace_id());
}

fn check_addresses(text: &str) {
    let trusted = TrustedProxies::parse(["10.0.0.0/8"]).unwrap_or_default();
    let lines = || text.split('\n');
    assert_eq!(client_address(STRANGER, lines(), &trusted), STRANGER);
    let client = client_address(PROXY, lines(), &trusted);
    assert_eq!(client, client.to_canonical());
    assert_eq!(
        client_network(client),
        client_network(client_network(client))
    );
    // The proxy appends the address of its peer, so that the client cannot choose another one.
    let appended = format!("{text}, {STRANGER}");
    assert_eq!(
        client_address(PROXY, [appended.as_str()].into_iter(), &trusted),
        STRANGER
    );
    if let Ok(proxies) = TrustedProxies::parse(text.split(',')) {
        let _ = proxies.contains(client);
    }
}

fn check_origin(text: &str) {
    let own = BrowserRequest {
        origin: Some(text.as_bytes()),
        host: Some("app.example.org"),
        ..BrowserRequest::default()
    };
    assert!(
        own.is_cross_origin(|_| false),
        "the name of a host is not trusted"
    );
    if let Ok(origin) = Origin::parse(text) {
        let again = Origin::parse(origin.as_str());
        assert_eq!(
            again.map(|again| again.as_str().to_owned()).ok().as_deref(),
            Some(origin.as_str())
        );
    }
}
