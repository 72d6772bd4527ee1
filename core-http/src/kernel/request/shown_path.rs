//! The method and the path of a request as traces show them.

use http::Method;

/// Returns the method of a request. Methods that HTTP does not define are `_OTHER`, because they are text of the client.
pub(crate) fn shown_method(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::CONNECT,
        Method::TRACE,
    ];
    if known.contains(method) {
        method.as_str()
    } else {
        "_OTHER"
    }
}

/// Returns the path of a request without the secrets in it. A parameter whose name in the template ends with `token` is
/// replaced by its name. The path may have a prefix that the template lacks, or the other way round, so both are compared
/// from the end.
pub(crate) fn shown_path(path: &str, template: &str) -> String {
    let mut names = template.rsplit('/');
    let mut segments: Vec<&str> = path
        .rsplit('/')
        .map(|segment| match names.next() {
            Some(name) if is_secret(name) => name,
            _ => segment,
        })
        .collect();
    segments.reverse();
    segments.join("/")
}

/// Returns whether a segment of a template stands for a secret.
fn is_secret(name: &str) -> bool {
    let parameter = name
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    parameter.is_some_and(|name| name.to_ascii_lowercase().ends_with("token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_a_path_is_replaced_by_its_name() {
        for (path, template, expected) in [
            ("/pay/s3cr3t", "/pay/{token}", "/pay/{token}"),
            ("/a/b/pay/s3cr3t", "/pay/{token}", "/a/b/pay/{token}"),
            ("/s3cr3t/x", "/portal/{resetToken}/x", "/{resetToken}/x"),
            (
                "/p/1/secrets/KEY",
                "/p/{id}/secrets/{secretName}",
                "/p/1/secrets/KEY",
            ),
            ("/token/1", "/token/{id}", "/token/1"),
            ("/", "/", "/"),
        ] {
            assert_eq!(shown_path(path, template), expected);
        }
    }
}
