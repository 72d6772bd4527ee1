//! Tests of TLS connections to Postgres.

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::{Filter, testing};
use rcgen::{CertifiedKey, generate_simple_self_signed};

/// Creates a self-signed certificate for the name, and its key.
fn certificate(name: &str) -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

async fn count(config: PostgresConfig) -> Result<u64, StoreError> {
    let store = postgres::rows(config, TABLES).await?;
    let mut tx = store.begin(Mode::Read).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

#[tokio::test]
async fn only_a_server_with_a_trusted_certificate_is_accepted() {
    let (trusted, key) = certificate("127.0.0.1");
    let (other, _) = certificate("127.0.0.1");
    let url = testing::postgres_with_tls(trusted.clone(), key).await;
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, certificate: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, certificate).unwrap();
        let mut config = PostgresConfig::new(format!("{url}?sslmode=verify-full"), [7; 32]);
        config.root_certificates = Some(path);
        config
    };
    assert_eq!(count(with("trusted.pem", &trusted)).await.unwrap(), 0);
    let refused = count(with("other.pem", &other)).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let mut named_by_nobody = with("unused.pem", &other);
    named_by_nobody.root_certificates = None;
    let refused = count(named_by_nobody).await;
    assert!(
        refused.is_err(),
        "the operating system does not trust the certificate"
    );
}

#[tokio::test]
async fn the_sslmode_in_the_url_selects_the_certificate_checks() {
    let (of_another_name, key) = certificate("database.example");
    let (of_nobody, _) = certificate("database.example");
    let url = testing::postgres_with_tls(of_another_name.clone(), key).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, certificate: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, certificate).unwrap();
        format!("&sslrootcert={}", path.display())
    };
    let (trusted, other) = (
        file("trusted.pem", &of_another_name),
        file("other.pem", &of_nobody),
    );
    for (mode, roots, is_reached) in [
        ("disable", "", true),
        ("prefer", "", true),
        ("require", "", true),
        ("require", &*trusted, true),
        ("require", &*other, false),
        ("verify-ca", &*trusted, true),
        ("verify-ca", &*other, false),
        ("verify-full", &*trusted, false),
        ("verify-nothing", "", false),
    ] {
        let config = PostgresConfig::new(format!("{url}?sslmode={mode}{roots}"), [7; 32]);
        let counted = count(config).await;
        assert_eq!(counted.is_ok(), is_reached, "{mode} {roots}: {counted:?}");
    }
}
