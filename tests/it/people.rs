//! People who signed up and have a platform.

use core_suite::{Suite, SuiteBuilder};
use serde_json::{Value, json};

use crate::support::Call;

pub(crate) const SERVICE_KEY: &str = "whole-suite-service-key";
const IAM: &str = "http://iam.suite.test";

/// A suite's settings as the tests need them.
pub(crate) fn builder(builder: SuiteBuilder) -> SuiteBuilder {
    builder.service_key(SERVICE_KEY).iam_url(IAM)
}

/// Somebody with a session and a platform.
pub(crate) struct Signed {
    pub(crate) token: String,
    pub(crate) platform: String,
}

impl Signed {
    /// Waits at the server until the job has ended well.
    pub(crate) async fn job_done(&self, suite: &Suite, job: &str) -> Value {
        let question = Call::get(format!("/api/v1/provisioning/jobs/{job}?wait=5"));
        loop {
            let asked = question.clone().bearer(&self.token);
            let state = asked.to(&suite.gateway()).await.expect(200).json();
            match state["status"].as_str().unwrap() {
                "COMPLETED" => return state,
                "FAILED" => panic!("{state}"),
                _ => {}
            }
        }
    }
}

/// Signs somebody up and sets an organization up with them.
pub(crate) async fn signed_up(suite: &Suite, slug: &str, name: &str) -> Signed {
    let email = format!("{slug}@example.org");
    let body = json!({ "name": "Ada", "email": email, "password": "correct horse battery" });
    let answer = Call::post("/api/auth/sign-up/email", &body)
        .to(&suite.iam())
        .await
        .expect(200);
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let setup = json!({ "name": name, "slug": slug });
    let organization = Call::post("/api/core/org-setup", &setup)
        .header("cookie", cookie)
        .header("origin", IAM)
        .to(&suite.iam())
        .await
        .expect(201)
        .json();
    let platform = organization["platformId"].as_str().unwrap().to_owned();
    Signed { token, platform }
}
