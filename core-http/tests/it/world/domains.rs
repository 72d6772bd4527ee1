//! Workspace stacks, DNS records and custom domains, as tests need them before they begin.

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use super::{World, at, operator};

/// What domains of tests have to lead to.
pub(crate) const TARGET: &str = "platform.example.net";

/// What a customer's hostname leads to. The provider in memory finds one by its owner alone.
pub(crate) fn any_target() -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: "any".to_owned(),
    }
}

impl World {
    /// Asks for a DNS record. Time passes.
    pub(crate) async fn ask_for_dns_record(
        &self,
        platform: &str,
        stack: &str,
        resource: &str,
        hostname: &str,
    ) -> Answer {
        let path = at(platform, &format!("/stacks/{stack}/dns"));
        let body = json!({
            "hostname": hostname, "targetType": "worker", "resourceId": resource, "environment": "prod",
        });
        let answer = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        answer
    }

    /// A DNS record; answers its id.
    pub(crate) async fn dns_record(
        &self,
        platform: &str,
        stack: &str,
        resource: &str,
        hostname: &str,
    ) -> String {
        let asked = self.ask_for_dns_record(platform, stack, resource, hostname);
        asked.await.expect(201).id()
    }

    /// Asks for a custom domain. Time passes.
    pub(crate) async fn ask_for_domain(
        &self,
        platform: &str,
        dns_record: &str,
        hostname: &str,
    ) -> Answer {
        let body = json!({ "dnsRecordId": dns_record, "hostname": hostname, "targetDns": TARGET });
        let path = at(platform, "/domains");
        let answer = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        answer
    }

    /// A custom domain; answers its id.
    pub(crate) async fn domain(&self, platform: &str, dns_record: &str, hostname: &str) -> String {
        let asked = self.ask_for_domain(platform, dns_record, hostname);
        asked.await.expect(201).id()
    }

    /// A platform with a DNS record; answers the ids of both.
    pub(crate) async fn platform_with_dns(&self, slug: &str) -> (String, String) {
        let platform = self.platform(slug).await;
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

    /// A domain as its list shows it.
    pub(crate) async fn shown_domain(&self, platform: &str, domain: &str) -> Value {
        let path = at(platform, "/domains?limit=100&includeDeleted=true");
        let listed = self.shown(&path).await;
        let mut listed = listed.json["data"].as_array().unwrap().iter();
        listed.find(|one| one["id"] == domain).unwrap().clone()
    }

    /// Time passes, and what is due is done.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.tick(seconds);
        self.run_timers().await;
        self.run_jobs().await;
    }

    /// Creates the records a domain lacks in the DNS.
    pub(crate) async fn create_records(&self, platform: &str, domain: &str) {
        let shown = self.shown_domain(platform, domain).await;
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
