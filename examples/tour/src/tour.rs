//! The chapters of the tour.

use std::path::Path;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::failure::Failure;
use crate::server::Addresses;
use crate::show::Show;
use crate::site::Site;

/// Maximum number of polls for a job or a deployment. Each poll waits up to one second at the server.
const MAX_POLLS: u32 = 120;

/// The state that the chapters share.
pub(crate) struct Tour<'a> {
    pub(crate) at: &'a Addresses,
    client: Client,
    pub(crate) show: Show,
    /// The session token of the signed-in user.
    pub(crate) session: String,
    /// The id of the organization's platform.
    pub(crate) platform: String,
}

/// Takes the complete tour.
pub(crate) async fn take(at: &Addresses, site: &Path) -> Result<(), Failure> {
    let (client, show) = (Client::new(), Show::new());
    let site = Site::read(site)?;
    let run = unique();

    show.chapter("Sign up");
    let (session, cookie) = sign_up(&client, at, show, &run).await?;
    show.chapter("Set up an organization");
    let platform = org_setup(&client, at, show, &cookie, &run).await?;
    let tour = Tour {
        at,
        client,
        show,
        session,
        platform,
    };

    show.chapter("Watch the platform being provisioned");
    tour.watch_newest_job().await?;
    show.chapter("Publish a stack template, and activate it");
    tour.publish_stack(&run).await?;
    show.chapter("Deploy a site");
    let url = tour.deploy(&site).await?;
    show.chapter("Fetch the live site");
    tour.compare(&url, &site).await?;
    show.chapter("Subscribe to a plan, and pay for it");
    tour.subscribe().await?;
    show.chapter("See the metered usage");
    tour.show_usage().await?;
    show.chapter("Upgrade for the price of the preview");
    tour.upgrade().await?;
    show.chapter("List the resources and the audit log");
    tour.list().await?;
    show.chapter("Suspend and restore");
    tour.suspend_and_restore().await?;
    show.chapter("Remove everything");
    tour.deprovision(&url).await?;
    show.chapter("Done: every step had the expected result");
    Ok(())
}

/// Returns a word that no earlier tour of the same server used.
fn unique() -> String {
    format!("{}-{}", std::process::id(), tempfile_suffix())
}

fn tempfile_suffix() -> String {
    // The name of a new temporary file is unique on this machine.
    tempfile::NamedTempFile::new()
        .map_or_else(
            |_| "x".to_owned(),
            |f| {
                f.path()
                    .to_string_lossy()
                    .chars()
                    .filter(char::is_ascii_alphanumeric)
                    .rev()
                    .take(6)
                    .collect::<String>()
            },
        )
        .to_lowercase()
}

async fn sign_up(
    client: &Client,
    at: &Addresses,
    show: Show,
    run: &str,
) -> Result<(String, String), Failure> {
    let email = format!("ada-{run}@example.org");
    let answer = client
        .call(Method::POST, &format!("{}/api/auth/sign-up/email", at.iam))?
        .json(&json!({ "name": "Ada", "email": email, "password": "correct horse battery" }))
        .send()
        .await?
        .expect(200, "sign-up")?;
    let token = text(&answer.json(), "token")?;
    let cookie = answer
        .headers
        .get_all(http::header::SET_COOKIE)
        .iter()
        .filter_map(|c| c.to_str().ok()?.split(';').next())
        .find(|c| c.contains("session_token="))
        .ok_or_else(|| Failure("sign-up set no session cookie".to_owned()))?
        .to_owned();
    show.line(&format!("{email} is signed in"));
    Ok((token, cookie))
}

async fn org_setup(
    client: &Client,
    at: &Addresses,
    show: Show,
    cookie: &str,
    run: &str,
) -> Result<String, Failure> {
    let answer = client
        .call(Method::POST, &format!("{}/api/core/org-setup", at.iam))?
        .header("cookie", cookie)
        .header("origin", &at.iam)
        .json(&json!({ "name": "Analytical Engines", "slug": format!("engines-{run}") }))
        .send()
        .await?
        .expect(201, "org-setup")?
        .json();
    let platform = text(&answer, "platformId")?;
    show.line(&format!(
        "organization {} owns platform {platform}",
        text(&answer, "slug")?
    ));
    Ok(platform)
}

impl Tour<'_> {
    pub(crate) async fn get(&self, path: &str, status: u16) -> Result<Answer, Failure> {
        let url = format!("{}{path}", self.at.gateway);
        self.client
            .call(Method::GET, &url)?
            .bearer(&self.session)
            .send()
            .await?
            .expect(status, path)
    }

    pub(crate) async fn post_as(
        &self,
        token: &str,
        path: &str,
        body: &Value,
        status: u16,
    ) -> Result<Answer, Failure> {
        let url = format!("{}{path}", self.at.gateway);
        self.client
            .call(Method::POST, &url)?
            .bearer(token)
            .json(body)
            .send()
            .await?
            .expect(status, path)
    }

    async fn watch_newest_job(&self) -> Result<(), Failure> {
        let path = format!(
            "/api/v1/provisioning/jobs?platformId={}&limit=1",
            self.platform
        );
        let jobs = self.get(&path, 200).await?.json();
        self.watch(&text(&jobs["data"][0], "jobId")?).await
    }

    async fn watch(&self, job: &str) -> Result<(), Failure> {
        let mut bar = self.show.steps(1);
        for _ in 0..MAX_POLLS {
            let state = self
                .get(&format!("/api/v1/provisioning/jobs/{job}?wait=1"), 200)
                .await?
                .json();
            let count = |name: &str| state["progress"][name].as_u64().unwrap_or(0);
            let status = text(&state, "status")?;
            bar.at(
                count("completedSteps"),
                count("totalSteps"),
                &format!("{} {status}", text(&state, "kind")?),
            );
            match status.as_str() {
                "COMPLETED" => {
                    bar.end();
                    return Ok(());
                }
                "FAILED" => return Err(Failure(format!("job {job} failed: {}", state["error"]))),
                _ => {}
            }
        }
        Err(Failure(format!("job {job} did not end in time")))
    }

    async fn publish_stack(&self, run: &str) -> Result<(), Failure> {
        let key = &self.at.service_key;
        let name = format!("web-{run}");
        let template = json!({ "name": name, "displayName": "Web", "description": "A service and its database." });
        self.post_as(key, "/api/v1/stacks", &template, 201).await?;
        let definition = json!({ "resources": [
            { "name": "db", "type": "d1" },
            { "name": "api", "type": "worker", "bindings": [{ "name": "DB", "resource": "db" }] },
        ] });
        let version =
            json!({ "version": "1.0.0", "stackDefinition": definition, "coreSdkVersion": "1.0.0" });
        self.post_as(
            key,
            &format!("/api/v1/stacks/{name}/versions"),
            &version,
            201,
        )
        .await?;
        let detail = self
            .get(&format!("/api/v1/stacks/{name}"), 200)
            .await?
            .json();
        let latest = text(&detail["template"], "latest_version")?;
        self.show.line(&format!("{name} {latest} is published"));
        if latest != "1.0.0" {
            return Err(Failure(format!("the latest version is {latest}")));
        }
        let wanted =
            json!({ "platformId": self.platform, "stackId": name, "stackVersion": latest });
        let path = "/api/v1/provisioning/stack/activate";
        let queued = self.post_as(&self.session, path, &wanted, 202).await?;
        self.watch(&text(&queued.json(), "jobId")?).await
    }

    async fn deploy(&self, site: &Site) -> Result<String, Failure> {
        let packed = Bytes::from(site.pack()?);
        let mut bar = self.show.bytes(packed.len() as u64);
        let (seen, length) = (bar.bar(), packed.len() as u64);
        let url = format!(
            "{}/api/v1/cli/platforms/{}/deploy",
            self.at.gateway, self.platform
        );
        let told = move |sent| {
            if let Some(bar) = &seen {
                bar.set_position(sent);
            }
        };
        let call = self.client.call(Method::POST, &url)?.bearer(&self.session);
        let answer = call
            .upload("application/gzip", packed, told)
            .send()
            .await?
            .expect(202, "deploy")?
            .json();
        bar.at(length, length, "uploaded");
        bar.end();
        let deployment = text(&answer, "deploymentId")?;
        self.show
            .line(&format!("project {}", text(&answer, "projectName")?));
        let path = format!(
            "/api/v1/cli/platforms/{}/deployments/{deployment}?wait=1",
            self.platform
        );
        let mut last = String::new();
        for _ in 0..MAX_POLLS {
            let state = self.get(&path, 200).await?.json();
            let status = text(&state, "status")?;
            if status != last {
                self.show.line(&format!("deployment {status}"));
            }
            match status.as_str() {
                "active" => return text(&state, "url"),
                "failure" | "canceled" => {
                    return Err(Failure(format!("the deployment failed: {state}")));
                }
                _ => last = status,
            }
        }
        Err(Failure(format!(
            "deployment {deployment} did not end in time"
        )))
    }

    async fn compare(&self, url: &str, site: &Site) -> Result<(), Failure> {
        let base = url.trim_end_matches('/');
        for (name, content) in &site.files {
            let page = format!("{base}/{name}");
            let answer = self
                .client
                .call(Method::GET, &page)?
                .send()
                .await?
                .expect(200, &page)?;
            if answer.bytes != content.as_slice() {
                return Err(Failure(format!("{page} differs from the uploaded file")));
            }
        }
        let front = self
            .client
            .call(Method::GET, &format!("{base}/"))?
            .send()
            .await?
            .expect(200, base)?;
        let index = site.files.iter().find(|(name, _)| name == "index.html");
        if index.is_none_or(|(_, content)| front.bytes != content.as_slice()) {
            return Err(Failure(format!("{base}/ is not the site's front page")));
        }
        self.show.line(&format!(
            "{base}/ serves {} files, byte for byte",
            site.files.len()
        ));
        Ok(())
    }

    async fn list(&self) -> Result<(), Failure> {
        for (what, least) in [("resources", 6), ("audit", 2), ("lifecycle", 1)] {
            let page = self
                .get(&format!("/api/v1/platforms/{}/{what}", self.platform), 200)
                .await?
                .json();
            let total = page["pagination"]["total"].as_u64().unwrap_or(0);
            self.show.line(&format!("{total} {what}"));
            if total < least {
                return Err(Failure(format!("expected at least {least} {what}")));
            }
            for row in page["data"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|_| what == "resources")
            {
                self.show.line(&format!(
                    "  {:6} {}",
                    row["resourceType"].as_str().unwrap_or("?"),
                    row["cfName"]
                ));
            }
        }
        Ok(())
    }

    async fn suspend_and_restore(&self) -> Result<(), Failure> {
        let platform = format!("/api/v1/platforms/{}", self.platform);
        let reason = json!({ "reason": "the tour" });
        self.post_as(&self.session, &format!("{platform}/suspend"), &reason, 200)
            .await?;
        let refused = self.get(&platform, 451).await?.json();
        self.show
            .line(&format!("451 {}", refused["error"]["message"]));
        if refused["error"]["code"] != "PLATFORM_SUSPENDED" {
            return Err(Failure(format!("the code is {}", refused["error"]["code"])));
        }
        self.post_as(
            &self.at.service_key,
            &format!("{platform}/restore"),
            &reason,
            200,
        )
        .await?;
        let status = text(&self.get(&platform, 200).await?.json(), "status")?;
        self.show.line(&format!("restored: {status}"));
        if status == "active" {
            Ok(())
        } else {
            Err(Failure(format!("the platform is {status}")))
        }
    }

    async fn deprovision(&self, url: &str) -> Result<(), Failure> {
        let body = json!({ "platformId": self.platform });
        let answer = self
            .post_as(
                &self.session,
                "/api/v1/provisioning/platform/deprovision",
                &body,
                202,
            )
            .await?
            .json();
        self.watch(&text(&answer, "jobId")?).await?;
        let left = self
            .get(
                &format!("/api/v1/platforms/{}/resources", self.platform),
                200,
            )
            .await?
            .json();
        let total = left["pagination"]["total"].as_u64().unwrap_or(u64::MAX);
        self.show.line(&format!("{total} resources left"));
        if total != 0 {
            return Err(Failure(format!("{total} resources are left: {left}")));
        }
        self.client
            .call(Method::GET, url)?
            .send()
            .await?
            .expect(404, "the removed site")?;
        self.show.line("the site has been removed");
        Ok(())
    }
}

pub(crate) fn text(object: &Value, field: &str) -> Result<String, Failure> {
    let value = object[field].as_str();
    value.map(str::to_owned).ok_or_else(|| {
        Failure(format!(
            "the field {field} is missing or not a string: {object}"
        ))
    })
}
