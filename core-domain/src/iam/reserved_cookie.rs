//! The names of cookies that are IAM's alone: what hosts sites and workers of tenants neither shows them nor lets them set them.

/// What the names of all cookies of IAM begin with, without the prefix of an https installation. The names are those of
/// [`CookieNames`](super::CookieNames).
const COOKIE_PREFIXES: [&str; 2] = ["better-auth.", "core.device"];

/// The prefixes by which a browser binds a cookie to https or to one host (RFC 6265bis, section 4.1.3).
const BINDING_PREFIXES: [&str; 2] = ["__secure-", "__host-"];

/// Tells whether a cookie of this name is one of IAM's.
#[must_use]
pub fn is_iam_cookie(name: &str) -> bool {
    // Some browsers compare the prefixes without regard to case.
    let name = name.trim().to_ascii_lowercase();
    let mut binding = BINDING_PREFIXES.iter();
    let bare = binding.find_map(|prefix| name.strip_prefix(prefix));
    let bare = bare.unwrap_or(&name);
    COOKIE_PREFIXES
        .iter()
        .any(|prefix| bare.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iam::CookieNames;

    #[test]
    fn every_cookie_of_iam_is_known_as_its_own() {
        for url in ["http://localhost:8081", "https://iam.example.org"] {
            let names = CookieNames::for_url(url);
            for name in [
                names.session(),
                names.session_data(),
                names.dont_remember(),
                names.two_factor(),
                names.trust_device(),
                names.device(),
                names.passkey(),
            ] {
                assert!(is_iam_cookie(name), "{name}");
                assert!(is_iam_cookie(&format!(" {}.0", name.to_uppercase())));
            }
        }
        for other in ["", "theme", "core", "x-better-auth.session_token"] {
            assert!(!is_iam_cookie(other), "{other}");
        }
    }
}
