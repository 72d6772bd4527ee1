//! Every setting reaches its part, and invalid settings are refused before anything is opened.

use core_suite::{RateKind, Suite, SuiteBuilder, SuiteError};
use serde_json::{Value, json};

use crate::world::{SERVICE_KEY, World, json_body, request, send};

type Change = fn(SuiteBuilder, Vec<String>) -> SuiteBuilder;

#[tokio::test]
async fn an_invalid_setting_is_reported_before_anything_is_opened() {
    let text = |text: &str| vec![text.to_owned()];
    let table: [(&str, Change, &str); 5] = [
        ("service_key", |b, _| b.service_key("short"), ""),
        (
            "trusted_proxies",
            |b, text| b.trusted_proxies(text),
            "somewhere",
        ),
        ("allowed_origins", |b, text| b.allowed_origins(text), "*"),
        ("public_routes", |b, text| b.public_routes(text), "/health"),
        (
            "worker.slots",
            |b, _| b.settings(|s| s.worker.slots = 0),
            "",
        ),
    ];
    for (name, change, value) in table {
        let folder = tempfile::tempdir().unwrap();
        let builder = Suite::builder().data_folder(folder.path().join("data"));
        let builder = change(builder, text(value));
        for refused in [
            builder.check().unwrap_err(),
            builder.build().await.unwrap_err(),
        ] {
            let SuiteError::Setting(error) = refused else {
                panic!("{name}: {refused:?}");
            };
            assert_eq!(error.setting, name);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[cfg(not(feature = "sqlite"))]
#[tokio::test]
async fn a_store_without_its_feature_is_refused_with_the_feature() {
    let builder = Suite::builder().sqlite("core.sqlite");
    let refused = builder.build().await.unwrap_err();
    assert!(matches!(refused, SuiteError::FeatureMissing("sqlite")));
}

#[tokio::test]
async fn services_that_are_reached_directly_apply_the_rate_limits_of_the_gateway() {
    let world = World::with(|builder| {
        builder.settings(|settings| {
            let minute = std::time::Duration::from_secs(60);
            let rates = &mut settings.gateway.rates;
            rates.set(RateKind::Client, 2, minute).unwrap();
        })
    });
    let suite = world.await.suite;
    let mut refused = Vec::new();
    for service in [suite.registry(), suite.iam(), suite.stacks()] {
        let request = json_body(request("GET", "/api/v1/unknown", "forged"), &Value::Null);
        refused.push(send(service, request).await.status == 429);
    }
    assert_eq!(refused, [false, false, true]);
}

#[tokio::test]
async fn the_limits_of_bodies_and_uploads_are_taken_from_the_settings() {
    let world = World::with(|builder| {
        builder.settings(|settings| {
            settings.services.max_body_bytes = 100;
            settings.cli.sites.upload_bytes = 1_000;
        })
    });
    let world = world.await;
    let platform = world.platform("shop").await;
    let body = json!({ "name": "n".repeat(100), "slug": "large" });
    let large = json_body(request("POST", "/api/v1/platforms", SERVICE_KEY), &body);
    let _ = send(world.suite.registry(), large).await.expect(413);
    let upload = world
        .deploy(&platform, "main", "application/gzip", &[0; 1_001])
        .await;
    upload.expect_error(413, "PAYLOAD_TOO_LARGE");
}
