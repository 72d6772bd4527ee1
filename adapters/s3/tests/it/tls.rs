//! Connections with TLS.

use std::path::PathBuf;

use core_domain::port::Blobs;
use core_s3::testing::S3Server;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use core_domain::testing::blobs_suite::content_of;

use crate::world::{World, failure};

/// The certificate of an authority, and a server certificate that it has issued.
struct Certificates(TempDir);

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let server = server.signed_by(&key, &root).unwrap();
        for (name, text) in [
            ("root.pem", root.pem()),
            ("server.pem", server.pem()),
            ("key.pem", key.serialize_pem()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

#[tokio::test]
async fn an_https_endpoint_is_used_with_tls_and_its_certificate_is_verified() {
    let [ours, theirs] = [Certificates::new(), Certificates::new()];
    let server = S3Server::start_with_tls(ours.file("server.pem"), ours.file("key.pem"));
    let server = server.await.unwrap();
    let world = World::with(server);
    let client = |certificates: &Certificates| {
        let mut config = world.server.config("uploads");
        config.options.root_certificates = Some(certificates.file("root.pem"));
        world.client(&config)
    };
    let blobs = client(&ours);
    blobs.put("upload-1", vec![7; 9_000_000]).await.unwrap();
    assert!(content_of(&blobs, "upload-1").await == vec![7; 9_000_000]);
    let text = failure(client(&theirs).open("upload-1").await);
    assert!(text.contains("certificate"), "{text}");
}
