//! The URL of a mail server: its address, security and login.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The default port for submission with STARTTLS (RFC 6409).
const SUBMISSION_PORT: u16 = 587;

/// The default port for submission with implicit TLS (RFC 8314).
const SUBMISSIONS_PORT: u16 = 465;

/// The encryption of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first byte.
    Implicit,
    /// STARTTLS. No mail is sent if the server does not offer it.
    Required,
    /// STARTTLS if the server offers it. An attacker on the network can suppress the offer.
    Opportunistic,
    /// No encryption of the connection.
    None,
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// The URL of a mail server: `smtp://user:password@host:587?tls=required` (or `opportunistic`, `none`), or
/// `smtps://user:password@host:465`. `ca=FILE` is a PEM file with the certificates that the server's certificate must
/// come from, instead of those of the operating system. User and password are percent-encoded. A URL with a password
/// requires TLS, unless the server runs on this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    host: String,
    port: u16,
    security: Security,
    login: Option<Login>,
    ca: Option<PathBuf>,
}

/// The reason why a text is not a valid URL. It never contains the text, which may include a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The scheme is neither `smtp` nor `smtps`.
    #[error("must begin with smtp:// or smtps://")]
    Scheme,
    /// The host is missing or invalid.
    #[error("names no host")]
    Host,
    /// The port is missing after the colon, or invalid.
    #[error("has an invalid port")]
    Port,
    /// The user or password is missing, empty or not percent-encoded.
    #[error("has a user or password that is missing, empty or not percent-encoded")]
    Login,
    /// The URL has a path.
    #[error("must have no path")]
    Path,
    /// The option is unknown or has an invalid value.
    #[error("has an option other than tls=required, tls=opportunistic, tls=none, ca=FILE")]
    Option,
    /// The password would be sent unencrypted to another machine.
    #[error(
        "would send the password without TLS, which is only allowed to a server on this machine"
    )]
    UnencryptedPassword,
}

impl SmtpUrl {
    /// Returns the host name or IP address of the server.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port of the server.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the encryption of connections.
    #[must_use]
    pub const fn security(&self) -> Security {
        self.security
    }

    /// Returns the file with the certificates to trust; `None` for those of the operating system.
    #[must_use]
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// Returns whether the URL contains a user and a password.
    #[must_use]
    pub const fn has_login(&self) -> bool {
        self.login.is_some()
    }

    pub(crate) const fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }
}

// The output contains no password, so that it can be logged.
impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpUrl")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("security", &self.security)
            .field("ca", &self.ca)
            .finish_non_exhaustive()
    }
}

impl FromStr for SmtpUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let (mut security, default_port) = match scheme {
            "smtp" => (Security::Required, SUBMISSION_PORT),
            "smtps" => (Security::Implicit, SUBMISSIONS_PORT),
            _ => return Err(UrlError::Scheme),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, server) = match rest.rsplit_once('@') {
            Some((login, server)) => (Some(parse_login(login)?), server),
            None => (None, rest),
        };
        let server = server.strip_suffix('/').unwrap_or(server);
        if server.contains(['/', '#']) {
            return Err(UrlError::Path);
        }
        let (host, port) = parse_server(server, default_port)?;
        let mut ca = None;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("tls", word)) if security != Security::Implicit => {
                    security = parse_security(word)?;
                }
                Some(("ca", file)) if !file.is_empty() => {
                    ca = Some(PathBuf::from(percent_decode(file).ok_or(UrlError::Option)?));
                }
                _ => return Err(UrlError::Option),
            }
        }
        let in_the_open = matches!(security, Security::None | Security::Opportunistic);
        if login.is_some() && in_the_open && !is_this_machine(&host) {
            return Err(UrlError::UnencryptedPassword);
        }
        Ok(Self {
            host,
            port,
            security,
            login,
            ca,
        })
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    (!decoded.chars().any(char::is_control)).then(|| decoded.into_owned())
}

fn parse_login(text: &str) -> Result<Login, UrlError> {
    let (user, password) = text.split_once(':').ok_or(UrlError::Login)?;
    let text = |text| percent_decode(text).filter(|text| !text.is_empty());
    match (text(user), text(password)) {
        (Some(user), Some(password)) => Ok(Login { user, password }),
        _ => Err(UrlError::Login),
    }
}

fn parse_server(text: &str, default_port: u16) -> Result<(String, u16), UrlError> {
    // An IPv6 address is in brackets, because it contains colons.
    let (host, port) = match text.strip_prefix('[') {
        Some(text) => {
            let (host, port) = text.split_once(']').ok_or(UrlError::Host)?;
            host.parse::<std::net::Ipv6Addr>()
                .map_err(|_| UrlError::Host)?;
            let after = port.strip_prefix(':');
            if after.is_none() && !port.is_empty() {
                return Err(UrlError::Port);
            }
            (host, after)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return Err(UrlError::Host);
    }
    let port = port.map_or(Ok(default_port), str::parse);
    match port {
        Ok(0) | Err(_) => Err(UrlError::Port),
        Ok(port) => Ok((host.to_ascii_lowercase(), port)),
    }
}

fn parse_security(word: &str) -> Result<Security, UrlError> {
    match word {
        "required" => Ok(Security::Required),
        "opportunistic" => Ok(Security::Opportunistic),
        "none" => Ok(Security::None),
        _ => Err(UrlError::Option),
    }
}

fn is_this_machine(host: &str) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SmtpUrl {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_contains_server_encryption_login_and_certificates() {
        let plain = url("smtp://Mail.example.org");
        assert_eq!((plain.host(), plain.port()), ("mail.example.org", 587));
        assert_eq!(plain.security(), Security::Required);
        assert!(plain.login().is_none() && plain.ca().is_none());
        let full = url("smtps://ada%40example.org:p%3Aw%2Fd@[::1]:1465/?ca=%2Fetc/ca.pem");
        assert_eq!((full.host(), full.port()), ("::1", 1465));
        assert_eq!(full.security(), Security::Implicit);
        let login = full.login().unwrap();
        assert_eq!(
            (&*login.user, &*login.password),
            ("ada@example.org", "p:w/d")
        );
        assert_eq!(full.ca(), Some(Path::new("/etc/ca.pem")));
        assert_eq!(url("smtps://mail.test").port(), 465);
        for (word, security) in [
            ("required", Security::Required),
            ("opportunistic", Security::Opportunistic),
            ("none", Security::None),
        ] {
            let text = format!("smtp://mail.test:25?tls={word}");
            assert_eq!(url(&text).security(), security);
        }
    }

    #[test]
    fn an_invalid_url_is_refused_with_the_reason() {
        for (text, error) in [
            ("", UrlError::Scheme),
            ("mail.test", UrlError::Scheme),
            ("http://mail.test", UrlError::Scheme),
            ("smtp://", UrlError::Host),
            ("smtp://:25", UrlError::Host),
            ("smtp://ma il", UrlError::Host),
            ("smtp://[mail]", UrlError::Host),
            ("smtp://[::1", UrlError::Host),
            ("smtp://[::1]25", UrlError::Port),
            ("smtp://mail.test:", UrlError::Port),
            ("smtp://mail.test:0", UrlError::Port),
            ("smtp://mail.test:65536", UrlError::Port),
            ("smtp://ada@mail.test", UrlError::Login),
            ("smtp://ada:@mail.test", UrlError::Login),
            ("smtp://:x@mail.test", UrlError::Login),
            ("smtp://ada:%ff@mail.test", UrlError::Login),
            ("smtp://ada:a%0d%0ab@mail.test", UrlError::Login),
            ("smtp://mail.test/inbox", UrlError::Path),
            ("smtp://mail.test?tls=maybe", UrlError::Option),
            ("smtps://mail.test?tls=none", UrlError::Option),
            ("smtp://mail.test?ca=", UrlError::Option),
            ("smtp://mail.test?accept_invalid=1", UrlError::Option),
        ] {
            assert_eq!(text.parse::<SmtpUrl>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_password_requires_tls_or_a_local_server_and_is_never_printed() {
        for word in ["none", "opportunistic"] {
            let to = |host| format!("smtp://ada:open-sesame@{host}?tls={word}");
            let refused = to("mail.test").parse::<SmtpUrl>();
            assert_eq!(refused, Err(UrlError::UnencryptedPassword));
            for host in ["localhost", "127.0.0.1", "[::1]"] {
                assert!(url(&to(host)).login().is_some());
            }
        }
        let shown = format!("{:?}", url("smtp://ada:open-sesame@mail.test"));
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
