//! The public form of bindings.

use serde_json::Value;

/// Returns whether the value of a binding is never returned.
pub(crate) fn is_secret(binding: &Value) -> bool {
    matches!(kind(binding), "secret_text" | "secret_key")
}

/// Returns the binding in the form of the API.
pub(crate) fn view(binding: &Value) -> Value {
    let mut view = binding.clone();
    if let (true, Some(view)) = (is_secret(binding), view.as_object_mut()) {
        for hidden in ["text", "key_base64", "key_jwk"] {
            view.remove(hidden);
        }
    }
    view
}

pub(crate) fn text<'a>(binding: &'a Value, name: &str) -> &'a str {
    binding[name].as_str().unwrap_or_default()
}

pub(crate) fn kind(binding: &Value) -> &str {
    text(binding, "type")
}

pub(crate) fn name(binding: &Value) -> &str {
    text(binding, "name")
}
