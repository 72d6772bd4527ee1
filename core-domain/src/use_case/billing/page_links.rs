//! The addresses of the pages of billing. A link to an invoice contains its id with a signature, so it needs no record and
//! can be mailed. A link to the portal contains the secret of a session.

use crate::billing::{Invoice, InvoiceStatus};
use crate::iam::CookieSigner;
use crate::kernel::{Code, Error, InvoiceId, Result};

/// The path of the page on which an invoice is paid, before the token.
const PAY: &str = "/pay/";

/// The path of the portal, before the secret of a link.
const PORTAL: &str = "/portal/";

/// The maximum length of a return address, in characters.
const MAX_URL: usize = 2_048;

/// The addresses of the pages of billing.
#[derive(Clone, Debug)]
pub struct PageLinks {
    base_url: Option<String>,
    return_hosts: Vec<String>,
    signer: CookieSigner,
}

impl PageLinks {
    /// Creates the addresses below the public URL of the billing service. Without a URL there are no pages. `secret` signs
    /// the links to invoices. The portal leads back only to `return_hosts`, or to every host if there are none.
    #[must_use]
    pub fn new(base_url: Option<&str>, return_hosts: Vec<String>, secret: &[u8]) -> Self {
        Self {
            base_url: base_url.map(|url| url.trim_end_matches('/').to_owned()),
            return_hosts,
            signer: CookieSigner::new(secret).for_purpose("pages of billing"),
        }
    }

    /// Returns the public URL of the billing service, if it has one.
    #[must_use]
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref()
    }

    /// Returns the address of the page on which an invoice can be paid. Returns `None` if it cannot be paid, or there are no
    /// pages.
    #[must_use]
    pub fn pay_url(&self, invoice: &Invoice) -> Option<String> {
        let can_be_paid = matches!(
            invoice.status,
            InvoiceStatus::Open | InvoiceStatus::Uncollectible
        );
        self.invoice_url(&invoice.id).filter(|_| can_be_paid)
    }

    /// Returns the address of the page of an invoice. Returns `None` if there are no pages.
    #[must_use]
    pub fn invoice_url(&self, invoice: &InvoiceId) -> Option<String> {
        let base = self.base_url.as_ref()?;
        Some(format!("{base}{PAY}{}", self.pay_token(invoice)))
    }

    /// Returns the token of the page of an invoice.
    #[must_use]
    pub fn pay_token(&self, invoice: &InvoiceId) -> String {
        format!("{invoice}.{}", self.signer.digest(invoice.as_str()))
    }

    /// Returns the invoice of a token. Returns `None` if the token is not valid.
    #[must_use]
    pub fn invoice_of(&self, token: &str) -> Option<InvoiceId> {
        let (id, digest) = token.rsplit_once('.')?;
        let is_signed = self.signer.has_digest(id, digest);
        InvoiceId::parse(id).filter(|_| is_signed)
    }

    /// Returns the address that opens the portal with the secret of a link.
    ///
    /// # Errors
    /// `SERVICE_UNAVAILABLE` if there are no pages.
    pub(super) fn portal_url(&self, secret: &str) -> Result<String> {
        let base = self.base_url.as_ref().ok_or_else(|| {
            Error::refused(
                Code::ServiceUnavailable,
                "This installation has no pages of billing: the public URL of the billing service is not set.",
            )
        })?;
        Ok(format!("{base}{PORTAL}{secret}"))
    }

    /// Checks an address that the portal leads back to.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if it is not an https URL (http is allowed on loopback), has credentials, or its host is not
    /// allowed.
    pub fn ensure_return_url(&self, url: &str) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid("returnUrl", "invalid", message));
        let Some(host) = host_of(url) else {
            return refuse("must be an https URL without credentials; http is allowed on loopback");
        };
        let is_allowed = self.return_hosts.is_empty()
            || self.return_hosts.iter().any(|allowed| allowed == &host);
        match is_allowed {
            true => Ok(()),
            false => refuse("must have one of the hosts that are allowed for the portal"),
        }
    }
}

/// Returns the host of an https URL, or of an http URL on loopback. Returns `None` for every other text.
fn host_of(url: &str) -> Option<String> {
    let is_plain = url.len() <= MAX_URL
        && url
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let (scheme, rest) = url.split_once("://").filter(|_| is_plain)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return None;
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?.0,
        None => authority
            .split_once(':')
            .map_or(authority, |(host, _)| host),
    };
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "::1");
    let is_allowed = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => is_loopback,
        _ => false,
    };
    (is_allowed && !host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn links(hosts: &[&str]) -> PageLinks {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        PageLinks::new(Some("https://billing.example.org/"), hosts, b"a secret")
    }

    #[test]
    fn only_secure_addresses_on_allowed_hosts_are_return_addresses() {
        for url in [
            "https://app.example.org",
            "https://app.example.org/billing?x=1#y",
            "https://APP.example.org:8443/",
            "http://127.0.0.1:3000/back",
            "http://localhost/",
            "http://[::1]:80/",
        ] {
            assert!(links(&[]).ensure_return_url(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "/billing",
            "app.example.org",
            "http://app.example.org/",
            "javascript://app.example.org/%0aalert(1)",
            "https://user@app.example.org/",
            "https://app.example.org\\@evil.example/",
            "https://",
            "https:///path",
            "https://app.example.org/ x",
        ] {
            assert!(links(&[]).ensure_return_url(url).is_err(), "{url}");
        }
        let own = links(&["app.example.org"]);
        assert!(own.ensure_return_url("https://app.example.org/x").is_ok());
        assert!(own.ensure_return_url("https://evil.example/x").is_err());
        assert!(own.ensure_return_url("http://localhost/x").is_err());
    }

    proptest! {
        #[test]
        fn a_token_is_valid_for_its_invoice_alone(id: InvoiceId, other: InvoiceId) {
            let token = links(&[]).pay_token(&id);
            prop_assert_eq!(links(&[]).invoice_of(&token), Some(id.clone()));
            let digest = token.rsplit_once('.').unwrap().1;
            let forged = format!("{other}.{digest}");
            prop_assert_eq!(links(&[]).invoice_of(&forged).is_some(), id == other);
            prop_assert_eq!(links(&[]).invoice_of(&token[1..]), None);
            let foreign = PageLinks::new(None, Vec::new(), b"another secret");
            prop_assert_eq!(foreign.invoice_of(&token), None);
        }
    }
}
