//! The collector of traces of the configuration.

use core_suite::{OtlpConfig, Secret};

use super::error::{ConfigError, option_error};
use super::options::Options;

/// The default name of the service in traces.
const SERVICE_NAME: &str = "core-server";

/// Returns the collector that receives traces; `None` means that no traces are exported. Moves the ratio and the
/// certificates to the settings.
///
/// # Errors
/// [`ConfigError`] names the option that is invalid, or that another option requires.
pub(super) fn collector(options: &mut Options) -> Result<Option<OtlpConfig>, ConfigError> {
    if let Some(ratio) = options.trace_ratio {
        options.settings.traces.ratio = ratio;
        let checked = options.settings.traces.check();
        checked.map_err(|error| option_error("trace_ratio", error.problem))?;
    }
    if let Some(file) = options.otlp_certificate.clone() {
        options.settings.otlp.root_certificates = Some(file);
    }
    // An empty variable counts as not set, as OpenTelemetry says.
    let given = |url: &Option<String>| url.clone().filter(|url| !url.is_empty());
    let traces = given(&options.otlp_traces_endpoint);
    let (option, mut config) = match (traces, given(&options.otlp_endpoint)) {
        (Some(url), _) => ("otlp_traces_endpoint", OtlpConfig::new(url)),
        (None, Some(base)) => ("otlp_endpoint", OtlpConfig::of_collector(&base)),
        (None, None) => return Ok(None),
    };
    let name = given(&options.otel_service_name);
    config.service_name = name.unwrap_or_else(|| SERVICE_NAME.to_owned());
    config.headers = options.otlp_headers.clone().map(Secret::new);
    config.options.clone_from(&options.settings.otlp);
    match config.check() {
        Ok(()) => Ok(Some(config)),
        Err(error) => {
            let option = match error.setting {
                "otlp.endpoint" => option,
                "otlp.headers" => "otlp_headers",
                "otlp.root_certificates" if options.otlp_certificate.is_some() => {
                    "otlp_certificate"
                }
                setting => setting,
            };
            Err(option_error(option, error.problem))
        }
    }
}
