//! A served suite from the perspective of its clients, and a user with a platform.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::http::{Reply, call, request};
use super::process::{Process, address};

/// The key of operators.
pub(crate) const SERVICE_KEY: &str = "bench-service-key";

/// The origin from which IAM accepts cookies.
pub(crate) const IAM: &str = "http://iam.bench.test";

/// A process that serves a suite.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) process: Process,
    pub(crate) gateway: SocketAddr,
    pub(crate) iam: SocketAddr,
    pub(crate) registry: SocketAddr,
}

/// A user with a platform, and a session that acts for the platform.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) token: String,
    pub(crate) platform: String,
}

impl Installation {
    /// Waits until the process reports its addresses.
    pub(crate) fn of(mut process: Process) -> Self {
        let ready = process.wait_for("ready");
        let addresses = &ready["addresses"];
        Self {
            gateway: address(&addresses["gateway"]),
            iam: address(&addresses["iam"]),
            registry: address(&addresses["registry"]),
            process,
        }
    }

    /// Signs a user up, and waits until the platform is provisioned, so that no job runs during a measurement.
    pub(crate) fn sign_up(&self, slug: &str, origin: &str) -> Person {
        let sign_up = credentials(slug);
        let signed_up = self.post_iam("/api/auth/sign-up/email", &[], &sign_up);
        let cookie = signed_up.cookie();
        let setup = json!({ "name": "Engines", "slug": slug });
        let headers = [("cookie", cookie.as_str()), ("origin", origin)];
        let organization = self.post_iam("/api/core/org-setup", &headers, &setup);
        let person = Person {
            token: signed_up.text("token"),
            platform: organization.text("platformId"),
        };
        person.until_set_up(self);
        person
    }

    fn post_iam(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        call(
            self.iam,
            &request("POST", path, &all, body.to_string().as_bytes()),
        )
    }
}

/// Returns the credentials to sign up and in with.
pub(crate) fn credentials(slug: &str) -> Value {
    let email = format!("{slug}@example.org");
    json!({ "name": "Ada", "email": email, "password": "correct horse battery" })
}

impl Person {
    /// Returns a request with the user's session.
    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        with_bearer(&self.token, method, path, body)
    }

    /// Returns the path of the user's platform, or a path below it.
    pub(crate) fn at(&self, rest: &str) -> String {
        format!("/api/v1/platforms/{}{rest}", self.platform)
    }

    fn until_set_up(&self, installation: &Installation) {
        let jobs = format!("/api/v1/provisioning/jobs?platformId={}", self.platform);
        let get = |path: &str| call(installation.gateway, &self.request("GET", path, None));
        let job = get(&jobs).json["data"][0]["jobId"].clone();
        let Some(job) = job.as_str() else { return };
        let path = format!("/api/v1/provisioning/jobs/{job}?wait=5");
        loop {
            match get(&path).text("status").as_str() {
                "COMPLETED" => return,
                "FAILED" => panic!("the platform could not be provisioned"),
                _ => {}
            }
        }
    }
}

/// Returns a request with a session token or the service key, and a JSON body.
pub(crate) fn with_bearer(token: &str, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("authorization", bearer.as_str())];
    if body.is_some() {
        headers.push(("content-type", "application/json"));
    }
    let body = body.map(Value::to_string).unwrap_or_default();
    request(method, path, &headers, body.as_bytes())
}
