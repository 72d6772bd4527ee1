//! The configuration that results from flags, environment and file.

use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _};
use core_suite::{RateKind, Settings, SuiteService};

use super::*;

mod services;
mod stores;

fn load(arguments: &[&str]) -> Result<Config, ConfigError> {
    load_with(arguments, [])
}

fn load_with<const N: usize>(
    arguments: &[&str],
    environment: [(&str, &str); N],
) -> Result<Config, ConfigError> {
    let arguments = std::iter::once("core-server").chain(arguments.iter().copied());
    let matches = Cli::command().try_get_matches_from(arguments).unwrap();
    let cli = Cli::from_arg_matches(&matches).unwrap();
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Config::load(&cli, &matches, environment)
}

#[test]
fn the_defaults_are_sqlite_on_loopback_with_every_service() {
    let config = load(&[]).unwrap();
    assert_eq!(
        config.database,
        Database::Sqlite(PathBuf::from("core-data/core.sqlite"))
    );
    assert!(config.options.bind.is_loopback());
    assert_eq!(config.options.services.len(), SuiteService::ALL.len());
}

#[test]
fn flags_win_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.toml");
    std::fs::write(&file, "base_port = 9000\ndatabase_url = \"memory:\"\n").unwrap();
    let config = load(&["--config", file.to_str().unwrap(), "--base-port", "9100"]).unwrap();
    assert_eq!(config.options.base_port, 9100);
    let config = load(&["--config", file.to_str().unwrap()]).unwrap();
    assert_eq!(config.options.base_port, 9000);
    assert_eq!(config.database, Database::Memory);
}

#[test]
fn line_56_an_unknown_key_of_the_file_is_reported_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.toml");
    std::fs::write(&file, "base_prot = 9000\n").unwrap();
    let error = load(&["--config", file.to_str().unwrap()]).unwrap_err();
    assert!(error.to_string().contains("base_prot"), "{error}");
}

#[test]
fn line_23_a_service_key_is_required_to_bind_other_than_loopback() {
    let bind = ["--bind", "0.0.0.0", "--iam-public-url", "http://core:8081"];
    let error = load(&bind).unwrap_err().to_string();
    assert!(error.starts_with("auth_api_key: "), "{error}");
    for forced in [
        ["--auth-api-key", "open-sesame-open-sesame"],
        ["--allow-unauthenticated", "true"],
    ] {
        assert!(load(&[&bind[..], &forced].concat()).is_ok(), "{forced:?}");
    }
}

#[test]
fn the_public_url_of_iam_is_required_to_bind_other_than_loopback() {
    let key = ["--auth-api-key", "open-sesame-open-sesame"];
    for bind in ["0.0.0.0", "::", "192.0.2.1"] {
        let bind = [&key[..], &["--bind", bind]].concat();
        let error = load(&bind).unwrap_err().to_string();
        assert!(error.starts_with("iam_public_url: "), "{error}");
        assert!(error.contains("--iam-public-url"), "{error}");
        let url = ["--iam-public-url", "https://iam.example.org"];
        assert!(load(&[&bind[..], &url].concat()).is_ok());
    }
    assert!(load(&["--bind", "::1"]).is_ok());
}

#[test]
fn public_urls_must_be_origins() {
    let url = |url| {
        let iam = load(&["--iam-public-url", url])?.options.iam_public_url;
        let gateway = load(&["--gateway-public-url", url])?.options;
        assert_eq!(iam, gateway.gateway_public_url);
        Ok::<_, super::ConfigError>(iam)
    };
    let good = Some("https://iam.example.org".to_owned());
    assert_eq!(url("https://iam.example.org/").unwrap(), good);
    for bad in [
        "iam.example.org",
        "ftp://a",
        "https://a/b",
        "https://a?b",
        "",
    ] {
        assert!(url(bad).is_err(), "{bad}");
        let error = load(&["--gateway-public-url", bad]).unwrap_err();
        assert!(error.to_string().starts_with("gateway_public_url: "));
    }
}

#[test]
fn line_23_an_empty_or_short_service_key_is_refused_and_not_shown() {
    for key in ["", "sesame", "fifteen-letters"] {
        let error = load(&["--auth-api-key", key]).unwrap_err().to_string();
        assert!(error.starts_with("auth_api_key: "), "{error}");
        assert!(key.is_empty() || !error.contains(key), "{error}");
    }
}

#[test]
fn a_secret_may_come_from_a_file_but_not_be_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "open-sesame-open-sesame\n").unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        load(&["--auth-api-key-file", path])
            .unwrap()
            .options
            .auth_api_key
            .as_deref(),
        Some("open-sesame-open-sesame")
    );
    let key = "another-open-sesame";
    assert!(load(&["--auth-api-key-file", path, "--auth-api-key", key]).is_err());
}

#[test]
fn the_installation_secret_has_64_hexadecimal_digits() {
    let secret = |text: &str| load(&["--secret", text]).map(|config| config.secret);
    let mut expected = [0; 32];
    expected[0] = 0x0f;
    expected[31] = 0xa1;
    let text = format!("0F{}a1", "00".repeat(30));
    assert_eq!(secret(&text).unwrap(), Some(expected));
    for wrong in ["", "abc", &"g".repeat(64), &"0".repeat(66), &"é".repeat(32)] {
        assert!(secret(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(load(&[]).unwrap().secret, None);
}

#[test]
fn the_master_key_must_be_32_bytes_in_hexadecimal_or_base64() {
    let key = |text: &str| load(&[&format!("--master-key={text}")]).map(|config| config.master_key);
    let expected = Some([0xfb; 32]);
    let url_safe = format!("{}-_s", "-_v7".repeat(10));
    for text in [
        "FB".repeat(32),
        url_safe.replace('-', "+").replace('_', "/") + "=",
        url_safe,
    ] {
        assert_eq!(key(&text).unwrap(), expected, "{text}");
    }
    for wrong in [
        "",
        "abc",
        &"0".repeat(62),
        &"A".repeat(42),
        &"A".repeat(44),
        "é",
    ] {
        let error = key(wrong).unwrap_err().to_string();
        assert!(error.starts_with("master_key: "), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "fb".repeat(32) + "\n").unwrap();
    let config = load(&["--master-key-file", file.to_str().unwrap()]).unwrap();
    assert_eq!(config.master_key, expected);
    let shown = load(&["--master-key", &"fb".repeat(32)]).unwrap().effective;
    assert!(
        shown.contains("master_key") && !shown.contains("fbfb"),
        "{shown}"
    );
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file_for_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.toml");
    let text = "[settings.gateway]\nsession_cache = \"2s\"\n[settings.worker]\nslots = 3\n[settings.listener]\nmax_connections = 7\n";
    std::fs::write(&file, text).unwrap();
    let environment = [
        ("CORE_SETTINGS__WORKER__SLOTS", "5"),
        ("CORE_SETTINGS__LISTENER__MAX_CONNECTIONS", "9"),
        ("CORE_DATA", "not read here"),
    ];
    let arguments = [
        "--config",
        file.to_str().unwrap(),
        "--set",
        "settings.listener.max_connections=11",
        "--set",
        "settings.gateway.rates.strict={requests=3, window=\"2m\"}",
    ];
    let settings = load_with(&arguments, environment).unwrap().options.settings;
    assert_eq!(settings.gateway.session_cache, Duration::from_secs(2));
    assert_eq!(settings.worker.slots, 5);
    assert_eq!(settings.listener.max_connections, 11);
    let strict = settings.gateway.rates.policy(RateKind::Strict);
    assert_eq!(
        (strict.quota(), strict.window()),
        (3, Duration::from_secs(120))
    );
    let default = Settings::default();
    assert_eq!(settings.pool.sqlite_readers, default.pool.sqlite_readers);
}

#[test]
fn a_setting_with_dashes_in_its_name_is_set_by_a_variable_with_underscores() {
    let variables = [
        (
            "CORE_SETTINGS__GATEWAY__RATES__FAILED_SIGN_INS",
            "{ requests = 3, window = \"2m\" }",
        ),
        (
            "CORE_SETTINGS__GATEWAY__RATES__WRONG_USER_CODES__REQUESTS",
            "7",
        ),
        ("CORE_SETTINGS__LISTENER__MAX_CONNECTIONS", "9"),
    ];
    let settings = load_with(&[], variables).unwrap().options.settings;
    let quota = |kind| settings.gateway.rates.policy(kind).quota();
    assert_eq!(quota(RateKind::FailedSignIns), 3);
    assert_eq!(quota(RateKind::WrongUserCodes), 7);
    assert_eq!(settings.listener.max_connections, 9);
    let unknown = ("CORE_SETTINGS__GATEWAY__RATES__FAILED", "{}");
    let error = load_with(&[], [unknown]).unwrap_err().to_string();
    assert!(error.contains("failed"), "{error}");
}

#[test]
fn a_date_needs_no_quotes_on_the_command_line_and_in_the_environment() {
    let set = "settings.cloudflare.compatibility_date=2026-10-02";
    let date = load(&["--set", set]).unwrap().options.settings.cloudflare;
    assert_eq!(date.compatibility_date, "2026-10-02");
    let variable = "CORE_SETTINGS__CLOUDFLARE__COMPATIBILITY_DATE";
    let config = load_with(&[], [(variable, "2026-10-03")]);
    let date = config.unwrap().options.settings.cloudflare;
    assert_eq!(date.compatibility_date, "2026-10-03");
}

#[test]
fn contradicting_settings_are_reported() {
    let contradictions = |arguments: &[&str]| crate::run::contradictions(&load(arguments).unwrap());
    assert!(contradictions(&[]).is_empty());
    for (arguments, named) in [
        (
            &["--set", "settings.listener.max_connections=100"][..],
            "settings.listener.max_connections_per_client: ",
        ),
        (
            &["--set", "settings.postgres.schema=core"],
            "settings.postgres: ",
        ),
        (
            &[
                "--services",
                "iam",
                "--trusted-proxies",
                "127.0.0.1",
                "--public-routes",
                "GET /api/v1/x",
            ],
            "public_routes: ",
        ),
        (&["--services", "iam"], "trusted_proxies: "),
        (
            &["--allow-unauthenticated", "true"],
            "allow_unauthenticated: ",
        ),
        (
            &[
                "--cloudflare-api-token",
                "open-sesame-0123",
                "--cloudflare-account-id",
                "023e105f4ecef8ad9ca31a8372d0c353",
                "--local-latency-ms",
                "5",
            ],
            "local_latency_ms: ",
        ),
    ] {
        let found = contradictions(arguments);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(named), "{found:?}");
    }
}

#[test]
fn line_56_an_unknown_mistyped_or_invalid_setting_is_refused_by_its_name() {
    for (set, named) in [
        ("settings.gateway.session_cach=1s", "session_cach"),
        ("settings.worker.slots=many", "slots"),
        (
            "settings.listener.header_timeout=0s",
            "listener.header_timeout",
        ),
        ("settings.listener.header_timeout=soon", "header_timeout"),
        ("settings", "KEY=VALUE"),
    ] {
        let error = load(&["--set", set]).unwrap_err().to_string();
        assert!(error.contains(named), "{set}: {error}");
    }
    assert!(load(&["--log-level", "core=loud=very"]).is_err());
}

#[test]
fn the_effective_configuration_is_shown_without_secrets() {
    let key = "open-sesame-open-sesame";
    let url = "postgres://ada:lovelace@localhost/core";
    let secret = "0".repeat(64);
    let config = load(&[
        "--auth-api-key",
        key,
        "--database-url",
        url,
        "--secret",
        &secret,
    ]);
    let shown = config.unwrap().effective;
    for hidden in [key, "lovelace", &secret] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    let table: toml::Table = shown.parse().unwrap();
    assert_eq!(table["auth_api_key"].as_str(), Some("(set, not shown)"));
    assert_eq!(table["base_port"].as_integer(), Some(8080));
    let listener = table["settings"]["listener"].as_table().unwrap();
    assert_eq!(listener["header_timeout"].as_str(), Some("10s"));
    assert!(!load(&[]).unwrap().effective.contains("not shown"));
}

#[test]
fn a_mail_server_needs_a_sender_and_errors_do_not_show_the_password() {
    let server = "smtp://core:open-sesame@mail.example.org";
    let from = "Core <no-reply@example.org>";
    let config = load(&["--smtp-url", server, "--mail-from", from]).unwrap();
    let expected = (Some(server.to_owned()), Some(from.to_owned()));
    assert!(!config.effective.contains("sesame"), "{}", config.effective);
    assert!(!format!("{config:?}").contains("sesame"));
    assert_eq!(
        (config.options.smtp_url, config.options.mail_from),
        expected
    );
    let by_setting = format!("settings.mail.sender={from}");
    assert!(load(&["--smtp-url", server, "--set", &by_setting]).is_ok());
    let unsaid = load(&[]).unwrap();
    assert_eq!(
        (unsaid.options.smtp_url, unsaid.options.mail_from),
        (None, None)
    );
    for (arguments, named) in [
        (&["--smtp-url", server][..], "mail_from: "),
        (&["--mail-from", "Core"], "mail_from: "),
        (
            &["--smtp-url", "http://open-sesame", "--mail-from", from],
            "smtp_url: ",
        ),
        (
            &[
                "--smtp-url",
                "smtp://core:open-sesame@mail.example.org?tls=none",
                "--mail-from",
                from,
            ],
            "smtp_url: ",
        ),
        (&["--smtp-url", "", "--mail-from", from], "smtp_url: "),
        (&["--set", "settings.mail.timeout=2m"], "settings: "),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_url_of_a_mail_server_may_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("smtp");
    std::fs::write(&file, "smtps://a:b@mail.example.org\n").unwrap();
    let path = file.to_str().unwrap();
    let config = load(&["--smtp-url-file", path, "--mail-from", "a@example.org"]).unwrap();
    let expected = "smtps://a:b@mail.example.org";
    assert_eq!(config.options.smtp_url.as_deref(), Some(expected));
}

#[test]
fn a_collector_of_traces_is_set_by_its_base_or_its_whole_url_and_its_headers_stay_secret() {
    let base = ["--otlp-endpoint", "http://a:4318/"];
    let headers = ["--otlp-headers", "authorization=Bearer%20sesame"];
    let config = load(&[&base[..], &headers, &["--trace-ratio", "0.25"]].concat()).unwrap();
    let collector = config.collector.as_ref().unwrap();
    assert_eq!(collector.endpoint, "http://a:4318/v1/traces");
    assert_eq!(collector.service_name, "core-server");
    assert_eq!(config.options.settings.traces.ratio, 0.25);
    assert!(!config.effective.contains("sesame"), "{}", config.effective);
    assert!(!format!("{config:?} {collector:?}").contains("sesame"));
    let whole = [
        "--otlp-traces-endpoint",
        "https://b/spans",
        "--otel-service-name",
        "edge",
    ];
    let config = load(&[&base[..], &whole].concat()).unwrap();
    let collector = config.collector.unwrap();
    assert_eq!(collector.endpoint, "https://b/spans");
    assert_eq!(collector.service_name, "edge");
    for none in [&[][..], &["--otlp-endpoint", ""], &["--trace-ratio", "0.5"]] {
        assert!(load(none).unwrap().collector.is_none(), "{none:?}");
    }
    let unused = load(&["--trace-ratio", "0.5"]).unwrap().contradictions;
    assert!(unused[0].starts_with("trace_ratio: "), "{unused:?}");
}

#[test]
fn the_headers_of_a_collector_may_come_from_a_file_and_mistakes_name_their_option() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "x-key=sesame\n").unwrap();
    let path = file.to_str().unwrap();
    let base = ["--otlp-endpoint", "http://a:4318"];
    let config = load(&[&base[..], &["--otlp-headers-file", path]].concat()).unwrap();
    assert_eq!(config.options.otlp_headers.as_deref(), Some("x-key=sesame"));
    for (arguments, named) in [
        (&["--otlp-endpoint", "sesame"][..], "otlp_endpoint: "),
        (
            &["--otlp-traces-endpoint", "sesame"],
            "otlp_traces_endpoint: ",
        ),
        (&["--trace-ratio", "1.5"], "trace_ratio: "),
        (&["--set", "settings.traces.ratio=-1"], "settings: "),
        (&["--set", "settings.otlp.queue=0"], "settings: "),
        (
            &["--otlp-endpoint", "http://a", "--otlp-headers", "sesame"],
            "otlp_headers: ",
        ),
        (
            &[
                "--otlp-endpoint",
                "http://a",
                "--otlp-certificate",
                "/does/not/exist",
            ],
            "otlp_certificate: ",
        ),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(named), "{named} {error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_program_that_runs_workers_is_set_or_found_and_reported() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let bin = folder
        .path()
        .canonicalize()
        .unwrap()
        .join("node_modules/.bin");
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let none = load(&arguments).unwrap();
    assert!(crate::welcome::workers(&none).contains("WORKERD_BIN"));

    let program = bin.join("workerd");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(&program, "program").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let said = format!("Workers run with {}.", program.display());
    let found = load(&arguments).unwrap();
    assert_eq!(crate::welcome::workers(&found), said);
    let named = load(&["--workerd", program.to_str().unwrap()]).unwrap();
    assert_eq!(crate::welcome::workers(&named), said);

    let error = load(&["--workerd", "/nowhere/workerd"]).unwrap_err();
    assert!(error.to_string().starts_with("workerd: "), "{error}");
}

#[test]
fn a_stripe_key_is_checked_and_never_shown() {
    let key = ["--stripe-secret-key", "sk_test_sesame"];
    let secrets = ["--stripe-webhook-secret", "whsec_sesame1, whsec_sesame2"];
    let config = load(&[key, secrets].concat()).unwrap();
    assert!(!config.effective.contains("sesame"), "{}", config.effective);
    let chosen = config.stripe.unwrap();
    assert!(!format!("{chosen:?}").contains("sesame"));
    assert!(!chosen.is_live());
    assert_eq!(chosen.webhook_secrets.len(), 2);
    assert_eq!(chosen.base_url, core_suite::STRIPE_API);
    assert!(load(&[]).unwrap().stripe.is_none());
    for (arguments, named) in [
        (&secrets[..], "stripe_secret_key: "),
        (&["--stripe-secret-key", "sesame"], "stripe_secret_key: "),
        (
            &[key, ["--stripe-webhook-secret", "sesame"]].concat(),
            "stripe_webhook_secret: ",
        ),
        (
            &[key, ["--stripe-publishable-key", "pk_live_1"]].concat(),
            "stripe_publishable_key: ",
        ),
        (
            &[key, ["--stripe-api-base-url", "http://example.org"]].concat(),
            "stripe_api_base_url: ",
        ),
        (
            &[key, ["--set", "settings.stripe.requests=0"]].concat(),
            "settings: ",
        ),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn a_cloudflare_token_requires_an_account_and_is_never_shown() {
    const TOKEN: &str = "open-sesame-0123";
    const ACCOUNT: &str = "023e105f4ecef8ad9ca31a8372d0c353";
    let (token, account) = (
        ["--cloudflare-api-token", TOKEN],
        ["--cloudflare-account-id", ACCOUNT],
    );
    let config = load(&[token, account].concat()).unwrap();
    assert!(!config.effective.contains("sesame"), "{}", config.effective);
    assert!(!format!("{config:?}{:?}", config.cloudflare).contains("sesame"));
    let chosen = config.cloudflare.unwrap();
    assert_eq!(
        (chosen.token.expose(), &*chosen.account_id),
        (TOKEN, ACCOUNT)
    );
    assert_eq!(chosen.base_url, core_suite::CLOUDFLARE_API);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let from_file = ["--cloudflare-api-token-file", file.to_str().unwrap()];
    let base_url = ["--cloudflare-api-base-url", "http://127.0.0.1:14010"];
    let config = load(&[from_file, account, base_url].concat()).unwrap();
    let chosen = config.cloudflare.unwrap();
    assert_eq!(
        (chosen.token.expose(), &*chosen.base_url),
        (TOKEN, base_url[1])
    );
    assert!(load(&[]).unwrap().cloudflare.is_none());
    for (arguments, named) in [
        (&token[..], "cloudflare_account_id: "),
        (&account, "cloudflare_api_token: "),
        (&base_url, "cloudflare_api_token: "),
        (
            &[token, ["--cloudflare-account-id", "me"]].concat(),
            "cloudflare_account_id: ",
        ),
        (
            &[
                token,
                account,
                ["--cloudflare-api-base-url", "http://example.org"],
            ]
            .concat(),
            "cloudflare_api_base_url: ",
        ),
        (
            &[token, account, ["--set", "settings.cloudflare.requests=1"]].concat(),
            "settings: ",
        ),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}
