//! The meaning of the states of a custom hostname.

use core_domain::port::HostnameState;
use core_domain::registry::SslStatus;

/// The states of a served hostname.
const ACTIVE: [&str; 2] = ["active", "active_redeploying"];

/// The states of a hostname that is not served.
const FAILED: [&str; 6] = [
    "blocked",
    "pending_blocked",
    "moved",
    "deleted",
    "test_failed",
    "test_blocked",
];

/// The states of a certificate that is not issued unless it is requested again.
const NO_CERTIFICATE: [&str; 3] = ["expired", "deleted", "inactive"];

/// The suffix of certificate states after a timeout.
const TIMED_OUT: &str = "_timed_out";

/// Returns the state of a hostname from the states of the hostname and of its certificate. `detail` is the provider's
/// explanation. Unknown states count as pending.
pub(super) fn state_of(hostname: &str, ssl: &str, detail: Option<&str>) -> HostnameState {
    let with_detail = |text: String| match detail {
        Some(detail) => format!("{text}: {detail}"),
        None => text,
    };
    if FAILED.contains(&hostname) {
        return HostnameState::Failed(with_detail(format!("the hostname is {hostname}")));
    }
    if is_certificate_failed(ssl) {
        return HostnameState::Failed(with_detail(format!("the certificate is {ssl}")));
    }
    if ACTIVE.contains(&hostname) && ssl == "active" {
        return HostnameState::Active;
    }
    let waits = format!("the hostname is {hostname}, its certificate {ssl}");
    HostnameState::Pending(with_detail(waits))
}

fn is_certificate_failed(ssl: &str) -> bool {
    NO_CERTIFICATE.contains(&ssl) || ssl.ends_with(TIMED_OUT)
}

/// Returns the state of a certificate.
pub(super) fn certificate_of(ssl: &str) -> SslStatus {
    match ssl {
        "active" | "backup_issued" | "pending_expiration" => SslStatus::Active,
        "expired" => SslStatus::Expired,
        _ if is_certificate_failed(ssl) => SslStatus::Failed,
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
    fn hostname_is_active_if_it_and_its_certificate_are_active() {
        for hostname in ACTIVE {
            assert_eq!(state_of(hostname, "active", None), HostnameState::Active);
            assert!(is_pending(hostname, "pending_validation"), "{hostname}");
        }
        assert!(is_pending("pending", "active"));
    }

    #[test]
    fn timed_out_states_are_failed_and_unknown_states_are_pending() {
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
    fn certificate_states_are_mapped() {
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
