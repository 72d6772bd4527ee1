//! Paths at the gateway.
//!
//! An accepted path has no `.`, `..` or empty segment in any encoding. The gateway forwards a rest of the same bytes,
//! never an internal route, and another spelling of the rest changes none of this.

use core_domain::gateway::{Destination, check_path, find_route, is_at_or_below};

/// Paths of every destination, and paths that are refused.
pub(crate) const SEEDS: &[&str] = &[
    "/health",
    "/docs/registry",
    "/api/v1/platforms",
    "/api/v1/platforms/019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01/entities/",
    "/api/v1/iam/internal/platform-status",
    "/api/v1/iam/%69nternal/platform-status",
    "/api/v1/provisioning/api/v1/provision/jobs",
    "/api/v1/cli/whoami",
    "/api/v1/stacks/..%2fiam",
    "/api/v1/billing/%2e%2e/x",
    "/api/v1/onboarding/%252e%252e/x;y",
];

/// Checks the claims for one path.
pub(crate) fn run(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else {
        return;
    };
    let is_accepted = check_path(path).is_ok();
    let destination = find_route(path);
    assert!(
        is_accepted || destination.is_err(),
        "a refused path has a route"
    );
    if !is_accepted {
        return;
    }
    assert!(path.starts_with('/') && path.is_ascii());
    for segment in path.trim_start_matches('/').split('/') {
        let decoded = decode(segment);
        let is_relative = decoded == b"." || decoded == b"..";
        assert!(!is_relative && !decoded.iter().any(u8::is_ascii_control));
        assert!(!decoded.contains(&b'/') && !decoded.contains(&b'\\'));
    }
    if let Ok(Destination::Service(route)) = destination {
        let rest = route.forwarded_path.as_str();
        assert!(check_path(rest).is_ok());
        assert!(path == format!("{}{rest}", route.prefix) || (rest == "/" && path == route.prefix));
        for spelling in [rest.to_owned(), encode_letters(rest)] {
            assert!(
                !is_at_or_below(&spelling, "/internal"),
                "an internal route is forwarded"
            );
            assert!(
                check_path(&spelling).is_ok(),
                "another spelling is refused: {spelling}"
            );
        }
    }
}

/// Decodes percent escapes once.
fn decode(segment: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(segment).collect()
}

/// Encodes every letter outside of escapes.
fn encode_letters(path: &str) -> String {
    let mut encoded = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = if first == '%' { 3 } else { first.len_utf8() };
        let (one, others) = rest.split_at(length.min(rest.len()));
        if first.is_ascii_alphabetic() {
            encoded.push_str(&format!("%{:02x}", u32::from(first)));
        } else {
            encoded.push_str(one);
        }
        rest = others;
    }
    encoded
}
