//! The checks of the configuration.

use core_domain::kernel::Secret;
use core_otel::testing::TestCollector;
use core_otel::{OtlpConfig, OtlpSink};
use http::StatusCode;

use crate::world::config;

#[test]
fn the_base_url_of_a_collector_gets_the_path_of_traces() {
    for (base, endpoint) in [
        ("http://a:4318", "http://a:4318/v1/traces"),
        ("https://a/otlp/", "https://a/otlp/v1/traces"),
    ] {
        let config = OtlpConfig::of_collector(base);
        assert_eq!(config.endpoint, endpoint);
        assert_eq!(config.check(), Ok(()));
    }
}

#[test]
fn an_invalid_configuration_is_refused_without_its_secrets() {
    let headers = |text: &str| OtlpConfig {
        headers: Some(Secret::new(text)),
        ..OtlpConfig::new("http://a:4318")
    };
    let mut empty = OtlpConfig::new("http://a:4318");
    empty.options.queue = 0;
    let mut file = OtlpConfig::new("http://a:4318");
    file.options.root_certificates = Some("/does/not/exist.pem".into());
    for (config, setting) in [
        (OtlpConfig::new("a-secret"), "otlp.endpoint"),
        (OtlpConfig::new("grpc://a:4317"), "otlp.endpoint"),
        (OtlpConfig::new("http://ada:a-secret@a"), "otlp.endpoint"),
        (headers("a-secret"), "otlp.headers"),
        (headers("a b=a-secret"), "otlp.headers"),
        (headers("a=a-secret%0A"), "otlp.headers"),
        (headers("a=a-secret%FF"), "otlp.headers"),
        (empty, "otlp.queue"),
        (file, "otlp.root_certificates"),
    ] {
        let error = config.check().unwrap_err();
        assert_eq!(error.setting, setting);
        assert!(!error.to_string().contains("a-secret"), "{error}");
        assert!(!format!("{config:?}").contains("a-secret") || setting == "otlp.endpoint");
    }
}

#[tokio::test]
async fn the_check_of_a_collector_sends_a_request_without_spans() {
    let collector = TestCollector::start().await.unwrap();
    let config = config(&collector.url());
    OtlpSink::check_collector(&config).await.unwrap();
    assert_eq!((collector.batches().len(), collector.spans().len()), (1, 0));
    for (status, expected) in [
        (StatusCode::UNAUTHORIZED, "401"),
        (StatusCode::SERVICE_UNAVAILABLE, "503"),
    ] {
        collector.set_status(status);
        let problem = OtlpSink::check_collector(&config).await.unwrap_err();
        assert!(problem.to_string().contains(expected), "{problem}");
    }
}
