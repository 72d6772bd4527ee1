//! Hostnames over HTTP. DNS records and custom domains of a platform are served from their activation until they are
//! deleted, or until the platform is suspended or deleted.

use std::sync::Arc;
use std::time::Duration;

use core_cloudflare_fake::{FakeCloudflare, HostnameTarget};
use core_domain::testing::MemoryDns;
use core_http::kernel::testing::Answer;
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{
    Call, FRONT_PAGE, Installation, PlatformMember, SERVICE_KEY, Server, sign_up, site_archive,
    suite_at_cloudflare,
};

const RECORD: &str = "shop.example.net";
const DOMAIN: &str = "shop.example.com";

/// Requests the front page under a hostname.
async fn visit(server: &Server, hostname: &str) -> Answer {
    let call = Call::get("/").header("host", hostname);
    server.send("sites", call).await
}

/// Much longer than the job of a hostname takes.
const JOB_TIMEOUT: Duration = Duration::from_secs(60);

/// Requests a hostname until the status is `status`.
async fn wait_for_status(server: &Server, hostname: &str, status: u16) -> Answer {
    let until = async {
        loop {
            let answer = visit(server, hostname).await;
            if answer.status == status {
                return answer;
            }
        }
    };
    let visited = timeout(JOB_TIMEOUT, until).await;
    visited.unwrap_or_else(|_| panic!("{hostname} did not return {status} in time"))
}

/// Sends a request as an operator.
async fn operate(server: &impl Installation, call: Call) -> Answer {
    server.send("registry", call.bearer(SERVICE_KEY)).await
}

async fn list(server: &impl Installation, person: &PlatformMember, rest: &str) -> Vec<Value> {
    let listed = operate(server, Call::get(person.at(rest)))
        .await
        .expect(200);
    listed.json["data"].as_array().unwrap().clone()
}

/// A platform with a deployed site.
struct Shop {
    person: PlatformMember,
    stack: String,
    site: String,
}

impl Shop {
    async fn open(server: &Server, slug: &str) -> Self {
        let person = sign_up(server, slug, slug).await;
        let job = person.job(server).await;
        person.job_done(server, &job).await;
        assert_eq!(
            person.deploy(server, site_archive()).await.text("status"),
            "active"
        );
        let tenant = list(server, &person, "/entities").await[0]["id"].clone();
        let stack = Call::post(
            person.at("/stacks"),
            &json!({ "tenantId": tenant, "name": "web" }),
        );
        let stack = operate(server, stack).await.expect(201).id();
        let resources = list(server, &person, "/resources").await.into_iter();
        let mut sites = resources.filter(|resource| resource["resourceType"] == "pages");
        let site = sites.next().unwrap()["id"].as_str().unwrap().to_owned();
        Self {
            person,
            stack,
            site,
        }
    }

    /// Creates a DNS record that points to the site: as an operator at the registry, or as a customer through the
    /// gateway.
    async fn record(&self, server: &Server, service: &str, token: &str, hostname: &str) -> Answer {
        let path = self.person.at(&format!("/stacks/{}/dns", self.stack));
        let body = json!({
            "hostname": hostname, "targetType": "pages", "resourceId": self.site, "environment": "prod",
        });
        let call = Call::post(path, &body).bearer(token);
        server.send(service, call).await.expect(201)
    }

    async fn shown_record(&self, server: &Server, id: &str) -> Value {
        let path = self.person.at(&format!("/dns/{id}"));
        operate(server, Call::get(path)).await.expect(200).json
    }
}

#[tokio::test]
async fn records_and_domains_serve_the_site_until_deletion_or_suspension() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]).await;
    let shop = Shop::open(&server, "engines").await;
    let _ = visit(&server, RECORD).await.expect(404);

    let record = shop
        .record(&server, "registry", SERVICE_KEY, RECORD)
        .await
        .id();
    assert_eq!(
        wait_for_status(&server, RECORD, 200).await.bytes,
        FRONT_PAGE
    );
    let body = json!({ "dnsRecordId": record, "hostname": DOMAIN, "targetDns": RECORD });
    let domain = Call::post(shop.person.at("/domains"), &body);
    let domain = operate(&server, domain).await.expect(201).id();
    let _ = visit(&server, DOMAIN).await.expect(404);
    let at_domain = shop.person.at(&format!("/domains/{domain}"));
    let active = Call::post(&at_domain, &json!({ "status": "active" })).by(&Method::PATCH);
    let _ = operate(&server, active).await.expect(200);
    assert_eq!(
        wait_for_status(&server, DOMAIN, 200).await.bytes,
        FRONT_PAGE
    );
    assert_eq!(
        shop.shown_record(&server, &record).await["status"],
        "active"
    );

    // A record whose ownership is not proved is not served.
    let unproved = shop
        .record(
            &server,
            "gateway",
            &shop.person.token,
            "stranger.example.org",
        )
        .await;
    assert_eq!(unproved.text("status"), "pending");
    assert_eq!(unproved.json["missingRecords"][0]["type"], "TXT");

    let change = |how: &str| Call::post(shop.person.at(how), &json!({}));
    for (call, status) in [
        (change("/suspend"), 451),
        (change("/restore"), 200),
        (change("").by(&Method::DELETE), 404),
        (change("/restore"), 200),
    ] {
        let _ = operate(&server, call).await.expect(200);
        for hostname in [RECORD, DOMAIN] {
            wait_for_status(&server, hostname, status).await;
        }
    }
    let _ = visit(&server, "stranger.example.org").await.expect(404);

    let _ = operate(&server, Call::get(&at_domain).by(&Method::DELETE))
        .await
        .expect(204);
    wait_for_status(&server, DOMAIN, 404).await;
    let _ = visit(&server, RECORD).await.expect(200);
    let path = shop
        .person
        .at(&format!("/stacks/{}/dns/{record}", shop.stack));
    let _ = operate(&server, Call::get(path).by(&Method::DELETE))
        .await
        .expect(204);
    wait_for_status(&server, RECORD, 404).await;
    assert!(server.terminate().await.success());
}

const ZONE: &str = "example.com";
const OURS: &str = "engines.example.com";
const CUSTOMERS: &str = "www.customer.org";

/// Waits until a visitor at Cloudflare reaches `wanted`.
async fn wait_for_visit(fake: &FakeCloudflare, hostname: &str, wanted: Option<&HostnameTarget>) {
    let until = async {
        loop {
            // Simulates that the certificate is issued.
            fake.pin_hostname(hostname, "active", "active");
            if fake.visit(hostname).as_ref() == wanted {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let reached = timeout(JOB_TIMEOUT, until).await;
    reached.unwrap_or_else(|_| panic!("{hostname} reaches {:?}", fake.visit(hostname)));
}

#[tokio::test]
async fn records_and_domains_at_cloudflare_reach_the_worker_until_deletion_or_suspension() {
    let fake = FakeCloudflare::start().await.unwrap();
    let dns = Arc::new(MemoryDns::default());
    let resolver = dns.clone();
    let (_fresh, suite) = suite_at_cloudflare(&fake, |builder| {
        builder
            .settings(|settings| settings.cloudflare.saas_zone = Some(ZONE.to_owned()))
            .dns_resolver(resolver)
    })
    .await;
    let person = sign_up(&suite, "engines", "Engines").await;
    let job = person.job(&suite).await;
    person.job_done(&suite, &job).await;
    let tenant = list(&suite, &person, "/entities").await[0]["id"].clone();
    let stack = Call::post(
        person.at("/stacks"),
        &json!({ "tenantId": tenant, "name": "web" }),
    );
    let stack = operate(&suite, stack).await.expect(201).id();
    let resources = list(&suite, &person, "/resources").await.into_iter();
    let mut workers = resources.filter(|resource| resource["resourceType"] == "worker");
    let worker = workers.next().unwrap();
    let reaches = HostnameTarget::Worker(worker["cfName"].as_str().unwrap().to_owned());

    let records = person.at(&format!("/stacks/{stack}/dns"));
    let body = json!({
        "hostname": OURS, "targetType": "worker", "resourceId": worker["id"], "environment": "prod",
    });
    let record = operate(&suite, Call::post(&records, &body)).await;
    let record = record.expect(201).id();
    wait_for_visit(&fake, OURS, Some(&reaches)).await;
    let body = json!({ "dnsRecordId": record, "hostname": CUSTOMERS, "targetDns": OURS });
    let domain = suite
        .post(&person.token, &person.at("/domains"), body)
        .await;
    let domain = domain.expect(201);
    for missing in domain.json["missingRecords"].as_array().unwrap() {
        let [name, value] = ["name", "value"].map(|field| missing[field].as_str().unwrap());
        if missing["type"] == "CNAME" {
            dns.set_cname(name, value);
        } else {
            dns.add_txt(name, value);
        }
    }
    // The job may have checked the domain before its records existed, so an operator activates it.
    let active = json!({ "status": "active" });
    let at_domain = person.at(&format!("/domains/{}", domain.id()));
    let active = Call::post(&at_domain, &active).by(&Method::PATCH);
    let _ = operate(&suite, active).await.expect(200);
    wait_for_visit(&fake, CUSTOMERS, Some(&reaches)).await;

    let change = |how: &str| Call::post(person.at(how), &json!({}));
    for (how, wanted) in [("/suspend", None), ("/restore", Some(&reaches))] {
        let _ = operate(&suite, change(how)).await.expect(200);
        for hostname in [OURS, CUSTOMERS] {
            wait_for_visit(&fake, hostname, wanted).await;
        }
    }
    let deleted = Call::get(&at_domain).by(&Method::DELETE);
    let _ = operate(&suite, deleted).await.expect(204);
    wait_for_visit(&fake, CUSTOMERS, None).await;
    let deleted = Call::get(format!("{records}/{record}")).by(&Method::DELETE);
    let _ = operate(&suite, deleted).await.expect(204);
    wait_for_visit(&fake, OURS, None).await;
    suite.shutdown().await;
}
