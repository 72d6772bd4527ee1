//! Tests of TLS: a receiver without a trusted certificate for its name receives nothing.

use std::sync::Arc;

use core_domain::port::{WebhookSendError, WebhookSender};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::receiver::{ANYWHERE, exchange, listener, request, sender};

/// Starts a receiver with a certificate for `localhost`. Its task returns the request, or `None` if TLS failed.
async fn receiver() -> (JoinHandle<Option<String>>, u16, CertificateDer<'static>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = cert.der().clone();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let (listener, port) = listener().await;
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = TlsAcceptor::from(Arc::new(config))
            .accept(stream)
            .await
            .ok()?;
        let answer = "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
        Some(exchange(stream, answer).await)
    });
    (serving, port, certificate)
}

#[tokio::test]
async fn a_webhook_is_sent_over_tls_if_the_certificate_is_trusted_for_the_host() {
    let (serving, port, certificate) = receiver().await;
    let trusting = sender(ANYWHERE)
        .with_certificates(vec![certificate])
        .unwrap();
    let answer = trusting
        .send(&request(&format!("https://localhost:{port}/")))
        .await;
    assert_eq!(answer.unwrap().status, 204);
    assert!(
        serving
            .await
            .unwrap()
            .unwrap()
            .contains("webhook-id: msg-1")
    );
}

#[tokio::test]
async fn a_receiver_without_a_trusted_certificate_receives_nothing() {
    for (host, trusts_it) in [("localhost", false), ("127.0.0.1", true)] {
        let (serving, port, certificate) = receiver().await;
        let certificates = if trusts_it {
            vec![certificate]
        } else {
            Vec::new()
        };
        let careful = sender(ANYWHERE).with_certificates(certificates).unwrap();
        let refused = careful
            .send(&request(&format!("https://{host}:{port}/")))
            .await;
        assert!(
            matches!(refused, Err(WebhookSendError::Unreachable(_))),
            "{refused:?}"
        );
        assert_eq!(serving.await.unwrap(), None);
    }
}
