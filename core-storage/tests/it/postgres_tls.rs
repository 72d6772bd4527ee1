//! TLS to Postgres.

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::{Filter, testing};
use rcgen::{CertifiedKey, generate_simple_self_signed};

/// A certificate of the loopback address and its key.
fn certificate() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

async fn count(config: PostgresConfig) -> Result<u64, StoreError> {
    let store = postgres::rows(config, TABLES).await?;
    let mut tx = store.begin(Mode::Read).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

#[tokio::test]
async fn a_server_is_taken_for_the_right_one_by_the_certificates_that_are_trusted_alone() {
    let (trusted, key) = certificate();
    let (other, _) = certificate();
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
    assert!(refused.is_err(), "the system trusts no such certificate");
}
