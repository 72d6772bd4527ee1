//! What the words of a custom hostname mean.

use core_domain::port::HostnameState;
use core_domain::registry::SslStatus;

/// The hostname is served.
const ACTIVE: [&str; 2] = ["active", "active_redeploying"];

/// The hostname will not be served.
const FAILED: [&str; 6] = [
    "blocked",
    "pending_blocked",
    "moved",
    "deleted",
    "test_failed",
    "test_blocked",
];

/// There will be no certificate, unless it is asked for again.
const NO_CERTIFICATE: [&str; 3] = ["expired", "deleted", "inactive"];

/// What the ends of the words are with which Cloudflare gives up a certificate.
const TIMED_OUT: &str = "_timed_out";

/// How far a hostname is by its two words; `detail` is what the provider says of what it waits for. Words nobody knows are
/// waited for.
pub(super) fn state_of(hostname: &str, ssl: &str, detail: Option<&str>) -> HostnameState {
    let with_detail = |text: String| match detail {
        Some(detail) => format!("{text}: {detail}"),
        None => text,
    };
    if FAILED.contains(&hostname) {
        return HostnameState::Failed(with_detail(format!("the hostname is {hostname}")));
    }
    if is_given_up(ssl) {
        return HostnameState::Failed(with_detail(format!("the certificate is {ssl}")));
    }
    if ACTIVE.contains(&hostname) && ssl == "active" {
        return HostnameState::Active;
    }
    let waits = format!("the hostname is {hostname}, its certificate {ssl}");
    HostnameState::Pending(with_detail(waits))
}

fn is_given_up(ssl: &str) -> bool {
    NO_CERTIFICATE.contains(&ssl) || ssl.ends_with(TIMED_OUT)
}

/// Where a certificate stands.
pub(super) fn certificate_of(ssl: &str) -> SslStatus {
    match ssl {
        "active" | "backup_issued" | "pending_expiration" => SslStatus::Active,
        "expired" => SslStatus::Expired,
        _ if is_given_up(ssl) => SslStatus::Failed,
        "pending_issuance" => SslStatus::PendingIssuance,
        "pending_deployment" | "holding_deployment" | "staging_deployment" | "staging_active" => {
            SslStatus::PendingDeployment
        }
        _ => SslStatus::PendingValidation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pending(hostname: &str, ssl: &str) -> bool {
        matches!(state_of(hostname, ssl, None), HostnameState::Pending(_))
    }

    fn is_failed(hostname: &str, ssl: &str) -> bool {
        matches!(state_of(hostname, ssl, None), HostnameState::Failed(_))
    }

    #[test]
    fn a_hostname_is_active_when_it_and_its_certificate_are() {
        for hostname in ACTIVE {
            assert_eq!(state_of(hostname, "active", None), HostnameState::Active);
            assert!(is_pending(hostname, "pending_validation"), "{hostname}");
        }
        assert!(is_pending("pending", "active"));
    }

    #[test]
    fn what_was_given_up_is_failed_and_words_nobody_knows_are_waited_for() {
        for hostname in FAILED {
            assert!(is_failed(hostname, "active"), "{hostname}");
        }
        for ssl in [
            "validation_timed_out",
            "deletion_timed_out",
            "expired",
            "deleted",
            "inactive",
        ] {
            assert!(is_failed("active", ssl), "{ssl}");
        }
        for word in ["pending_migration", "pending_cleanup", "dreaming", ""] {
            assert!(is_pending(word, "active"), "{word}");
            assert!(is_pending("active", word), "{word}");
        }
        let detail = state_of("pending", "pending_validation", Some("no CNAME"));
        assert!(matches!(detail, HostnameState::Pending(text) if text.ends_with(": no CNAME")));
    }

    #[test]
    fn a_certificate_stands_where_its_word_says() {
        for (ssl, expected) in [
            ("initializing", SslStatus::PendingValidation),
            ("pending_issuance", SslStatus::PendingIssuance),
            ("pending_deployment", SslStatus::PendingDeployment),
            ("active", SslStatus::Active),
            ("expired", SslStatus::Expired),
            ("issuance_timed_out", SslStatus::Failed),
            ("dreaming", SslStatus::PendingValidation),
        ] {
            assert_eq!(certificate_of(ssl), expected, "{ssl}");
        }
    }
}
