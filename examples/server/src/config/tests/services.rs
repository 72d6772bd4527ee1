//! The options of services that run in other processes.

use super::*;

/// Loads the options of a gateway and of the services that it reaches at these options.
fn load_gateway(services: &str, urls: &[&str], further: &[&str]) -> Result<Config, ConfigError> {
    let mut arguments = vec![
        "--auth-api-key",
        "open-sesame-open-sesame",
        "--services",
        services,
    ];
    for option in urls {
        arguments.extend([option, "http://127.0.0.1:9001"]);
    }
    arguments.extend(further);
    load(&arguments)
}

const URLS: [&str; 6] = [
    "--iam-url",
    "--registry-url",
    "--provisioning-url",
    "--cli-url",
    "--billing-url",
    "--stack-registry-url",
];

#[test]
fn line_56_a_gateway_in_front_of_other_processes_needs_the_url_of_each_service() {
    load_gateway("gateway", &URLS, &[]).unwrap();
    for (missing, url) in URLS.into_iter().enumerate() {
        let mut urls = URLS.to_vec();
        urls.remove(missing);
        let error = load_gateway("gateway", &urls, &[]).unwrap_err().to_string();
        let option = url.trim_start_matches("--").replace('-', "_");
        assert!(
            error.starts_with(&format!("{option}: is required")),
            "{error}"
        );
    }
}

#[test]
fn a_service_without_a_url_may_run_in_the_process_of_the_gateway() {
    // All of them.
    load_gateway("gateway", &[], &[]).unwrap();
    // Some of them, as services of this process.
    load_gateway("gateway,iam,registry,provisioning,cli", &URLS[4..], &[]).unwrap();
    // On the records that all processes share.
    let database = ["--database-url", "postgres://core@db.example.org/core"];
    load_gateway("gateway", &URLS[..3], &database).unwrap();
}
