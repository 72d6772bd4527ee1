//! The `workerd` configuration of a worker process, as Cap'n Proto text.

use std::fmt::Write;

use core_domain::registry::ResourceType;
use http::uri::Authority;
use serde_json::Value;

use super::launch::Launch;
use crate::worker::WorkerBinding;

/// The service name of the worker. `workerd` prefixes the error of a start that failed with it.
pub(super) const SERVICE: &str = "worker";
/// The name of the socket that receives requests.
pub(super) const SOCKET: &str = "http";
/// The header that names the binding of a request to the provider. The process sets it and overrides any value of the
/// script.
pub(super) const BINDING_HEADER: &str = "x-core-binding";

/// The compatibility date of all scripts.
const COMPATIBILITY_DATE: &str = "2026-01-01";

const HTTP_PORT: u16 = 80;

/// The service of the network, and the service that routes requests before it.
const INTERNET: &str = "internet";
const OUTBOUND: &str = "outbound";

/// The network access of scripts in addition to public addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    /// `true` if this machine and private networks are accessible.
    pub(super) private: bool,
    /// Services that are accessible by plain HTTP at any address.
    pub(super) reachable: &'a [Authority],
}

/// Returns the configuration of a process that runs this worker. Bindings are requested at the socket
/// `bindings_address`.
pub(super) fn worker_config(
    launch: &Launch,
    bindings_address: &str,
    network: Network<'_>,
) -> String {
    let allow = if network.private {
        r#"["public", "private"]"#
    } else {
        r#"["public"]"#
    };
    let script = &launch.script;
    let services: String = script
        .bindings
        .iter()
        .map(|binding| {
            format!(
                "    (name = {}, external = (address = {}, http = (injectRequestHeaders = [(name = {}, value = {})]))),\n",
                quote(&service_of(binding)),
                quote(bindings_address),
                quote(BINDING_HEADER),
                quote(&binding.name),
            )
        })
        .collect();
    format!(
        "using Workerd = import \"/workerd/workerd.capnp\";\n\
         const config :Workerd.Config = (\n  services = [\n    \
         (name = {internet}, network = (allow = {allow}, tlsOptions = (trustBrowserCas = true))),\n\
         {services}{reachable}    (name = {worker}, worker = (\n      compatibilityDate = {date},\n      \
         modules = [\n{modules}      ],\n      bindings = [\n{bindings}      ],\n      globalOutbound = {outbound},\n    )),\n  ],\n  \
         sockets = [(name = {socket}, http = (), service = {worker})],\n  \
         logging = (structuredLogging = true),\n);\n",
        internet = quote(INTERNET),
        reachable = outbound(network.reachable),
        outbound = quote(if network.reachable.is_empty() {
            INTERNET
        } else {
            OUTBOUND
        }),
        worker = quote(SERVICE),
        date = quote(COMPATIBILITY_DATE),
        socket = quote(SOCKET),
        modules = modules(launch),
        bindings = bindings(launch),
    )
}

/// Returns the services that route requests before the network; empty if there is no additional service.
fn outbound(reachable: &[Authority]) -> String {
    let (mut services, mut bindings) = (String::new(), String::new());
    for authority in reachable {
        let name = format!("reachable:{authority}");
        let port = authority.port_u16().unwrap_or(HTTP_PORT);
        let (name, address) = (quote(&name), quote(&format!("{}:{port}", authority.host())));
        // The host as scripts see it: the default port is omitted.
        let host = if port == HTTP_PORT {
            authority.host()
        } else {
            authority.as_str()
        };
        let host = quote(&host.to_ascii_lowercase());
        // Writing to a `String` never fails.
        let _ = writeln!(
            services,
            "    (name = {name}, external = (address = {address}, http = ())),"
        );
        let _ = write!(bindings, "(name = {host}, service = {name}), ");
    }
    if reachable.is_empty() {
        return services;
    }
    let (outbound, internet, date) = (quote(OUTBOUND), quote(INTERNET), quote(COMPATIBILITY_DATE));
    let script = quote(include_str!("outbound.js"));
    format!(
        "{services}    (name = {outbound}, worker = (\n      compatibilityDate = {date},\n      \
         modules = [(name = \"outbound.js\", esModule = {script})],\n      \
         bindings = [{bindings}(name = {internet}, service = {internet})],\n    )),\n"
    )
}

/// Returns the modules of the script, the main module first.
fn modules(launch: &Launch) -> String {
    let script = &launch.script;
    let main = script.modules.get_key_value(&script.main_module);
    let others = script
        .modules
        .iter()
        .filter(|(path, _)| **path != script.main_module);
    let mut text = String::new();
    for (path, content) in main.into_iter().chain(others) {
        let kind = if *path == script.main_module {
            "esModule"
        } else {
            module_kind(path)
        };
        let (path, content) = (quote(path), quote(content));
        // Writing to a `String` never fails.
        let _ = writeln!(text, "        (name = {path}, {kind} = {content}),");
    }
    text
}

/// Returns the kind of a module by its file extension.
fn module_kind(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        None | Some("js" | "mjs") => "esModule",
        Some("cjs") => "commonJsModule",
        Some("json") => "json",
        Some(_) => "text",
    }
}

/// Returns the bindings, secrets and variables of the script. A binding wins over a secret of the same name, and a
/// secret over a variable.
fn bindings(launch: &Launch) -> String {
    let script = &launch.script;
    let is_bound = |name: &str| script.bindings.iter().any(|binding| binding.name == name);
    let mut text = String::new();
    for binding in &script.bindings {
        let _ = writeln!(text, "        {},", binding_entry(binding));
    }
    for (name, secret) in &launch.secrets {
        if !is_bound(name) {
            let (name, value) = (quote(name), quote(secret.expose()));
            let _ = writeln!(text, "        (name = {name}, text = {value}),");
        }
    }
    for (name, value) in &script.vars {
        if is_bound(name) || launch.secrets.contains_key(name) {
            continue;
        }
        let (kind, value) = match value {
            Value::String(text) => ("text", quote(text)),
            value => ("json", quote(&value.to_string())),
        };
        let name = quote(name);
        let _ = writeln!(text, "        (name = {name}, {kind} = {value}),");
    }
    text
}

fn binding_entry(binding: &WorkerBinding) -> String {
    let (name, service) = (quote(&binding.name), quote(&service_of(binding)));
    match binding.resource_type {
        ResourceType::Kv => format!("(name = {name}, kvNamespace = {service})"),
        ResourceType::R2 => format!("(name = {name}, r2Bucket = {service})"),
        ResourceType::Queue => format!("(name = {name}, queue = {service})"),
        ResourceType::Worker | ResourceType::Pages => {
            format!("(name = {name}, service = {service})")
        }
        ResourceType::D1 => format!(
            "(name = {name}, wrapped = (moduleName = \"cloudflare-internal:d1-api\", \
             innerBindings = [(name = \"fetcher\", service = {service})]))"
        ),
    }
}

fn service_of(binding: &WorkerBinding) -> String {
    format!("binding:{}", binding.name)
}

/// Returns a quoted and escaped text.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_escaped() {
        assert_eq!(quote("a\"b\\\n\0ü"), "\"a\\\"b\\\\\\n\\x00ü\"");
    }

    #[test]
    fn module_kind_depends_on_the_extension() {
        for (path, kind) in [
            ("a.js", "esModule"),
            ("lib.d/a", "esModule"),
            ("a.cjs", "commonJsModule"),
            ("a.json", "json"),
            ("page.html", "text"),
        ] {
            assert_eq!(module_kind(path), kind, "{path}");
        }
    }
}
