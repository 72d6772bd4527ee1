//! The URL of a bucket, and the options.

use std::time::Duration;

use core_domain::kernel::Secret;
use core_s3::testing::credentials;
use core_s3::{OptionError, S3Config, S3Credentials, S3Options};

fn check(url: &str) -> Result<(), OptionError> {
    S3Config::new(url, credentials()).check()
}

#[test]
fn valid_urls_are_accepted() {
    for url in [
        "s3://uploads?region=eu-central-1",
        "s3://uploads/?region=eu-central-1",
        "s3://up.loads/core/nodes-1/?region=eu-central-1",
        "s3://uploads?endpoint=https://s3.example.org",
        "s3://uploads?endpoint=https%3A%2F%2Fs3.example.org%3A9000%2F&style=virtual",
        "s3://uploads?endpoint=http://127.0.0.1:9000&region=auto&style=path",
    ] {
        check(url).unwrap();
    }
    let mut config = S3Config::new("s3://uploads", credentials());
    assert!(config.check().is_err());
    config.options.region = Some("eu-central-1".to_owned());
    config.check().unwrap();
    assert!(!config.is_plain());
    config.url = "s3://uploads?endpoint=http://minio:9000".to_owned();
    assert!(config.is_plain());
}

#[test]
fn invalid_urls_are_refused_with_what_to_do() {
    for (url, problem) in [
        ("https://uploads.example.org", "form s3://bucket"),
        ("s3://", "form s3://bucket"),
        ("s3://uploads#x?region=eu", "form s3://bucket"),
        (
            "s3://key:sesame@uploads?region=eu",
            "must not contain credentials",
        ),
        ("s3://Up?region=eu", "names no bucket"),
        ("s3://uploads:9000?region=eu", "names no bucket"),
        ("s3://-uploads?region=eu", "names no bucket"),
        ("s3://uploads/../x?region=eu", "invalid prefix"),
        ("s3://uploads/a//b?region=eu", "invalid prefix"),
        ("s3://uploads/a%20b?region=eu", "invalid prefix"),
        ("s3://uploads", "needs a region"),
        ("s3://uploads?region=", "invalid region"),
        ("s3://uploads?region=eu/x", "invalid region"),
        ("s3://uploads?region=eu&regoin=x", "unknown parameter"),
        ("s3://uploads?region=eu&style=other", "unknown parameter"),
        ("s3://uploads?endpoint=s3.example.org", "invalid endpoint"),
        ("s3://uploads?endpoint=https://h/path", "invalid endpoint"),
        ("s3://uploads?endpoint=https://a:b@h", "invalid endpoint"),
    ] {
        let error = check(url).unwrap_err();
        assert_eq!(error.setting, "s3.url");
        assert!(error.problem.contains(problem), "{url}: {error}");
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}

#[test]
fn keys_and_options_are_checked_and_secrets_are_not_shown() {
    let url = "s3://uploads?region=eu-central-1";
    let key = |id: &str, secret: &str| S3Credentials::Key {
        id: id.to_owned(),
        secret: Secret::new(secret),
        session_token: Some(Secret::new("sesame")),
    };
    let setting = |config: S3Config| config.check().unwrap_err().setting;
    assert_eq!(
        setting(S3Config::new(url, key("", "sesame"))),
        "s3.access_key_id"
    );
    assert_eq!(
        setting(S3Config::new(url, key("id", "a\nb"))),
        "s3.secret_access_key"
    );
    let shown = format!("{:?}", S3Config::new(url, key("id", "sesame")));
    assert!(!shown.contains("sesame"), "{shown}");
    let with = |change: fn(&mut S3Options)| {
        let mut config = S3Config::new(url, credentials());
        change(&mut config.options);
        setting(config)
    };
    assert_eq!(
        with(|options| options.idle_timeout = Duration::ZERO),
        "s3.idle_timeout"
    );
    assert_eq!(
        with(|options| options.request_timeout = Duration::from_secs(61)),
        "s3.request_timeout"
    );
    let missing = |options: &mut S3Options| options.root_certificates = Some("/nowhere".into());
    assert_eq!(with(missing), "s3.root_certificates");
}
