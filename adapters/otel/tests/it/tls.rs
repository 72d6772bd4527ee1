//! The export over TLS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use core_domain::port::SpanSink;
use core_otel::OtlpSink;
use core_otel::testing::TestCollector;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;

use crate::world::{config, counts_after, span};

/// The certificate of an authority, and a server with a certificate that it has issued.
struct Authority {
    folder: TempDir,
    server: ServerConfig,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.path().join("root.pem"), root.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let issued = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let issued = issued.signed_by(&key, &root).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![issued.der().clone()], key)
            .unwrap();
        Self { folder, server }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }
}

#[tokio::test]
async fn an_https_endpoint_is_used_with_tls_and_its_certificate_is_verified() {
    let [ours, theirs] = [Authority::new(), Authority::new()];
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let collector = TestCollector::start_at(any, Some(ours.server.clone()));
    let collector = collector.await.unwrap();
    let mut config = config(&collector.url());
    config.options.root_certificates = Some(theirs.root());
    let problem = OtlpSink::check_collector(&config).await.unwrap_err();
    assert!(problem.to_string().contains("certificate"), "{problem}");
    config.options.root_certificates = Some(ours.root());
    let sink = OtlpSink::start(&config).unwrap();
    sink.record(span("GET", 1));
    assert_eq!(counts_after(&sink, 1).await.exported, 1);
    assert_eq!(collector.spans().len(), 1);
}
