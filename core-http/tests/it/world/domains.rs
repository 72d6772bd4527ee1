//! Creates the workspace stacks, DNS records and custom domains that tests start with.

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use super::{World, operator, platform_path};

/// The hostname that custom domains of tests must point to.
pub(crate) const TARGET: &str = "platform.example.net";

/// Returns the target of a customer's hostname. The in-memory provider ignores it and finds a hostname by its owner.
pub(crate) fn any_target() -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: "any".to_owned(),
    }
}

impl World {
    /// Requests a DNS record. Advances the clock by a second.
    pub(crate) async fn request_dns_record(
        &self,
        platform: &str,
        stack: &str,
        resource: &str,
        hostname: &str,
    ) -> Answer {
        let path = platform_path(platform, &format!("/stacks/{stack}/dns"));
        let body = json!({
            "hostname": hostname, "targetType": "worker", "resourceId": resource, "environment": "prod",
        });
        let answer = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        answer
    }

    /// Creates a DNS record and returns its id.
    pub(crate) async fn dns_record(
        &self,
        platform: &str,
        stack: &str,
        resource: &str,
        hostname: &str,
    ) -> String {
        let asked = self.request_dns_record(platform, stack, resource, hostname);
        asked.await.expect(201).id()
    }

    /// Requests a custom domain. Advances the clock by a second.
    pub(crate) async fn request_domain(
        &self,
        platform: &str,
        dns_record: &str,
        hostname: &str,
    ) -> Answer {
        let body = json!({ "dnsRecordId": dns_record, "hostname": hostname, "targetDns": TARGET });
        let path = platform_path(platform, "/domains");
        let answer = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        answer
    }

    /// Creates a custom domain and returns its id.
    pub(crate) async fn domain(&self, platform: &str, dns_record: &str, hostname: &str) -> String {
        let asked = self.request_domain(platform, dns_record, hostname);
        asked.await.expect(201).id()
    }

    /// Creates a platform with a DNS record. Returns the ids of both.
    pub(crate) async fn platform_with_dns(&self, slug: &str) -> (String, String) {
        let platform = self.create_platform(slug).await;
        let entity = self.tenant(&platform, "tenant").await;
        let resource = self
            .resource(&platform, &entity, &format!("{slug}-db"))
            .await;
        let stack = self.workspace_stack(&platform, &entity, "web").await;
        let hostname = format!("{slug}.example.net");
        let record = self
            .dns_record(&platform, &stack, &resource, &hostname)
            .await;
        (platform, record)
    }

    /// Returns a domain as the list of its platform shows it. Deleted domains are included.
    pub(crate) async fn find_listed_domain(&self, platform: &str, domain: &str) -> Value {
        let path = platform_path(platform, "/domains?limit=100&includeDeleted=true");
        let listed = self.get_record(&path).await;
        let mut listed = listed.json["data"].as_array().unwrap().iter();
        listed.find(|one| one["id"] == domain).unwrap().clone()
    }

    /// Advances the clock, and runs the due timers and jobs.
    pub(crate) async fn advance_and_run(&self, seconds: u64) {
        self.tick(seconds);
        self.run_timers().await;
        self.run_jobs().await;
    }

    /// Creates the DNS records that a domain is missing.
    pub(crate) async fn create_records(&self, platform: &str, domain: &str) {
        let shown = self.find_listed_domain(platform, domain).await;
        for record in shown["missingRecords"].as_array().unwrap() {
            let [name, value] = ["name", "value"].map(|field| record[field].as_str().unwrap());
            if record["type"] == "CNAME" {
                self.dns.set_cname(name, value);
            } else {
                self.dns.add_txt(name, value);
            }
        }
    }
}
