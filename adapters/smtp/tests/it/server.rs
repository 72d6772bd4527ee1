//! A real SMTP server (aiosmtpd, in Python), which a test starts and whose events it receives.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use core_domain::kernel::{Email, OutboxId};
use core_domain::port::{Mail, MailError, Mailer};
use core_smtp::SmtpMailer;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PASSWORD: &str = "open: sesame/é";
pub(crate) const LINK: &str = "https://core.test/verify?token=Abc123Def456&next=%2F";

/// Returns a Python interpreter that has aiosmtpd.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let named = std::env::var_os("CORE_TEST_PYTHON").map(PathBuf::from);
        let usual = ["python3", "/usr/bin/python3"].map(PathBuf::from);
        let has_it = |python: &PathBuf| {
            let mut command = Command::new(python);
            command.args(["-c", "import aiosmtpd"]);
            let tried = command.stderr(Stdio::null()).status();
            tried.is_ok_and(|status| status.success())
        };
        named.into_iter().chain(usual).find(has_it).expect(
            "no Python with aiosmtpd, the SMTP server of these tests: apt-get install python3-aiosmtpd, or pip install \
             aiosmtpd and name that Python in CORE_TEST_PYTHON",
        )
    })
}

/// The certificate of an authority, and a server certificate that it has issued.
pub(crate) struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Creates the certificates for a server with this name or address.
    pub(crate) fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let server = server.signed_by(&key, &issuer).unwrap();
        for (file, text) in [
            ("ca.pem", certificate.pem()),
            ("server.pem", server.pem()),
            ("server.key", key.serialize_pem()),
        ] {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        Self { folder }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the URL option that trusts the authority.
    pub(crate) fn ca(&self) -> String {
        format!("ca={}", self.file("ca.pem"))
    }
}

/// A running server. Dropping it ends its process.
pub(crate) struct Server {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server without TLS and login, unless `config` overrides this.
    pub(crate) fn start(config: Value) -> Self {
        let mut all = json!({ "tls": "none" });
        let all_fields = all.as_object_mut().unwrap();
        all_fields.extend(config.as_object().unwrap().clone());
        let mut child = Command::new(python())
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server.py"))
            .arg(all.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self {
            child,
            events,
            port: 0,
        };
        let port = server.event()["port"].as_u64().unwrap();
        server.port = u16::try_from(port).unwrap();
        server
    }

    /// Starts a server with this kind of TLS.
    pub(crate) fn with_tls(kind: &str, certificates: &Certificates, login: bool) -> Self {
        Self::start(json!({
            "tls": kind,
            "certificate": certificates.file("server.pem"),
            "key": certificates.file("server.key"),
            "login": login.then_some(["core@example.org", PASSWORD]),
        }))
    }

    /// Waits for the next event.
    pub(crate) fn event(&mut self) -> Value {
        let line = self.events.next().expect("the SMTP server ended").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Returns the next event, which must have this name.
    pub(crate) fn expect(&mut self, name: &str) -> Value {
        let event = self.event();
        assert_eq!(event["event"], name, "{event}");
        event
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a mailer for the URL.
pub(crate) fn mailer(url: &str) -> SmtpMailer {
    let from = "Köre <no-reply@core.test>".parse().unwrap();
    SmtpMailer::new(url.parse().unwrap(), from).unwrap()
}

pub(crate) fn mail(text: &str) -> Mail {
    Mail {
        to: Email::parse("ada@example.org").unwrap(),
        subject: "Grüße: bestätige deine Adresse, und zwar noch bevor der Tag zu Ende geht 😀"
            .to_owned(),
        text: text.to_owned(),
        html: format!("<p>{text}</p>"),
    }
}

pub(crate) fn id() -> OutboxId {
    OutboxId::parse("019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01").unwrap()
}

/// Sends a mail that contains a link.
pub(crate) async fn send(mailer: &SmtpMailer) -> Result<(), MailError> {
    mailer.send(&id(), &mail(LINK)).await
}

/// Returns the text of the cause. Checks that the error contains no secret.
pub(crate) fn cause(error: &MailError) -> String {
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(!shown.contains("Abc123"), "{shown}");
    match error {
        MailError::Transient(cause) | MailError::Permanent(cause) => cause.to_string(),
        _ => String::new(),
    }
}

/// Returns the cause of a transient error, after which the mail is retried.
#[track_caller]
pub(crate) fn transient(outcome: Result<(), MailError>) -> String {
    let error = outcome.unwrap_err();
    assert!(matches!(error, MailError::Transient(_)), "{error:?}");
    cause(&error)
}

/// Returns the cause of a permanent error, after which the mail is not retried.
#[track_caller]
pub(crate) fn permanent(outcome: Result<(), MailError>) -> String {
    let error = outcome.unwrap_err();
    assert!(matches!(error, MailError::Permanent(_)), "{error:?}");
    cause(&error)
}
