//! The settings of a process, as text of Cap'n Proto.

use std::fmt::Write;

use core_domain::registry::ResourceType;
use http::uri::Authority;
use serde_json::Value;

use super::launch::Launch;
use crate::worker::WorkerBinding;

/// The service of the worker itself; `workerd` begins what it says of it with this.
pub(super) const SERVICE: &str = "worker";
/// The socket requests come in on.
pub(super) const SOCKET: &str = "http";
/// Names the binding a request to the provider is for. The process sets it, whatever the script has set.
pub(super) const BINDING_HEADER: &str = "x-core-binding";

/// What the language and its interfaces were like on this day is what scripts find.
const COMPATIBILITY_DATE: &str = "2026-01-01";

const HTTP_PORT: u16 = 80;

/// The service of the network, and of what stands before it.
const INTERNET: &str = "internet";
const OUTBOUND: &str = "outbound";

/// Where scripts may fetch from besides public addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    /// All of this machine and of private networks.
    pub(super) private: bool,
    /// Services there, by plain HTTP.
    pub(super) reachable: &'a [Authority],
}

/// The settings of a process that runs this worker and asks for its bindings at a socket.
pub(super) fn settings(launch: &Launch, bindings_address: &str, network: Network<'_>) -> String {
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
                quoted(&service_of(binding)),
                quoted(bindings_address),
                quoted(BINDING_HEADER),
                quoted(&binding.name),
            )
        })
        .collect();
    format!(
        "using Workerd = import \"/workerd/workerd.capnp\";\n\
         const config :Workerd.Config = (\n  services = [\n    \
         (name = {internet}, network = (allow = {allow}, tlsOptions = (trustBrowserCas = true))),\n\
         {services}{reachable}    (name = {worker}, worker = (\n      compatibilityDate = {date},\n      \
         modules = [\n{modules}      ],\n      bindings = [\n{bindings}      ],\n      globalOutbound = {outbound},\n    )),\n  ],\n  \
         sockets = [(name = {socket}, http = (), service = {worker})],\n);\n",
        internet = quoted(INTERNET),
        reachable = outbound(network.reachable),
        outbound = quoted(if network.reachable.is_empty() {
            INTERNET
        } else {
            OUTBOUND
        }),
        worker = quoted(SERVICE),
        date = quoted(COMPATIBILITY_DATE),
        socket = quoted(SOCKET),
        modules = modules(launch),
        bindings = bindings(launch),
    )
}

/// The services that stand before the network; none where everything goes through it.
fn outbound(reachable: &[Authority]) -> String {
    let (mut services, mut bindings) = (String::new(), String::new());
    for authority in reachable {
        let name = format!("reachable:{authority}");
        let port = authority.port_u16().unwrap_or(HTTP_PORT);
        let (name, address) = (
            quoted(&name),
            quoted(&format!("{}:{port}", authority.host())),
        );
        // As scripts see it: the usual port is left out.
        let host = if port == HTTP_PORT {
            authority.host()
        } else {
            authority.as_str()
        };
        let host = quoted(&host.to_ascii_lowercase());
        // A `String` takes everything.
        let _ = writeln!(
            services,
            "    (name = {name}, external = (address = {address}, http = ())),"
        );
        let _ = write!(bindings, "(name = {host}, service = {name}), ");
    }
    if reachable.is_empty() {
        return services;
    }
    let (outbound, internet, date) = (
        quoted(OUTBOUND),
        quoted(INTERNET),
        quoted(COMPATIBILITY_DATE),
    );
    let script = quoted(include_str!("outbound.js"));
    format!(
        "{services}    (name = {outbound}, worker = (\n      compatibilityDate = {date},\n      \
         modules = [(name = \"outbound.js\", esModule = {script})],\n      \
         bindings = [{bindings}(name = {internet}, service = {internet})],\n    )),\n"
    )
}

/// The main module comes first.
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
        let (path, content) = (quoted(path), quoted(content));
        // A `String` takes everything.
        let _ = writeln!(text, "        (name = {path}, {kind} = {content}),");
    }
    text
}

/// What a module is, by the end of its name.
fn module_kind(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        None | Some("js" | "mjs") => "esModule",
        Some("cjs") => "commonJsModule",
        Some("json") => "json",
        Some(_) => "text",
    }
}

/// A binding wins over a secret of the same name, and a secret over a variable.
fn bindings(launch: &Launch) -> String {
    let script = &launch.script;
    let is_bound = |name: &str| script.bindings.iter().any(|binding| binding.name == name);
    let mut text = String::new();
    for binding in &script.bindings {
        let _ = writeln!(text, "        {},", bound(binding));
    }
    for (name, secret) in &launch.secrets {
        if !is_bound(name) {
            let (name, value) = (quoted(name), quoted(secret.expose()));
            let _ = writeln!(text, "        (name = {name}, text = {value}),");
        }
    }
    for (name, value) in &script.vars {
        if is_bound(name) || launch.secrets.contains_key(name) {
            continue;
        }
        let (kind, value) = match value {
            Value::String(text) => ("text", quoted(text)),
            value => ("json", quoted(&value.to_string())),
        };
        let name = quoted(name);
        let _ = writeln!(text, "        (name = {name}, {kind} = {value}),");
    }
    text
}

fn bound(binding: &WorkerBinding) -> String {
    let (name, service) = (quoted(&binding.name), quoted(&service_of(binding)));
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

/// A text in quotes; no text ends them early.
fn quoted(text: &str) -> String {
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
    fn no_text_leaves_its_quotes() {
        assert_eq!(quoted("a\"b\\\n\0ü"), "\"a\\\"b\\\\\\n\\x00ü\"");
    }

    #[test]
    fn modules_are_known_by_their_ends() {
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
