//! Hostnames of the platform and of its customers, and the DNS records that they need.

use core_client::types::custom_domain::{AddCustomDomain, CustomDomain, CustomDomainStatus};
use core_client::types::dns_record::{
    CreateDnsRecord, DnsRecord, DnsRecordStatus, DnsTargetType, RequiredRecord,
};
use core_client::types::entity::EntityType;
use core_client::types::environment::Environment;
use core_client::types::resource::{Resource, ResourceType};
use core_client::{Client, PageQuery};
use serde::Serialize;

use crate::args::DomainsCommand;
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::table;

/// The name of the workspace stack that is created for the first hostname.
const STACK_NAME: &str = "Web";

/// A hostname of the platform or of a customer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Hostname {
    hostname: String,
    /// `platform` or `customer`.
    kind: &'static str,
    status: String,
    /// The status of the certificate; `None` for hostnames of the platform.
    ssl_status: Option<String>,
    /// Whether the hostname is served.
    is_active: bool,
    missing_records: Vec<RequiredRecord>,
    /// The id of the DNS record or custom domain.
    id: String,
}

impl From<DnsRecord> for Hostname {
    fn from(record: DnsRecord) -> Self {
        Self {
            hostname: record.hostname,
            kind: "platform",
            is_active: record.status == DnsRecordStatus::Active,
            status: record.status.to_string(),
            ssl_status: None,
            missing_records: record.missing_records,
            id: record.id,
        }
    }
}

impl From<CustomDomain> for Hostname {
    fn from(domain: CustomDomain) -> Self {
        Self {
            hostname: domain.hostname,
            kind: "customer",
            is_active: domain.status == CustomDomainStatus::Active,
            status: domain.status.to_string(),
            ssl_status: Some(domain.ssl_status.to_string()),
            missing_records: domain.missing_records,
            id: domain.id,
        }
    }
}

/// Runs a command about hostnames.
pub(crate) async fn run(context: &Context, command: DomainsCommand) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let domains = Domains {
        context,
        client: &client,
        platform: &platform,
    };
    match command {
        DomainsCommand::Add {
            hostname,
            target: None,
        } => domains.add_hostname(hostname).await,
        DomainsCommand::Add {
            hostname,
            target: Some(target),
        } => domains.add_customer(hostname, &target).await,
        DomainsCommand::List => domains.list().await,
        DomainsCommand::Check { hostname } => domains.check(&hostname).await,
    }
}

/// The hostnames of a platform.
struct Domains<'a> {
    context: &'a Context,
    client: &'a Client,
    platform: &'a str,
}

impl Domains<'_> {
    /// Adds a hostname that leads to the site of the platform.
    async fn add_hostname(&self, hostname: String) -> Result<()> {
        let site = self.find_site().await?;
        let stack = self.find_or_create_stack().await?;
        let record = CreateDnsRecord {
            hostname,
            target_type: DnsTargetType::Pages,
            resource_id: site.id,
            environment: site.environment,
        };
        let record = self
            .client
            .create_dns_record(self.platform, &stack, &record)
            .await?;
        self.print(&record.into())
    }

    /// Adds the hostname of a customer that leads to a hostname of the platform.
    async fn add_customer(&self, hostname: String, target: &str) -> Result<()> {
        let records = self.dns_records().await?;
        let target = records
            .into_iter()
            .find(|record| record.hostname == target)
            .ok_or_else(|| {
                Failure::new(
                    FailureKind::NotFound,
                    format!("The platform has no hostname {target}."),
                )
                .hint(format!("Add it first: core-cli domains add {target}"))
            })?;
        let domain = AddCustomDomain {
            platform_id: self.platform.to_owned(),
            custom_hostname: hostname.clone(),
            target_dns_record_id: target.id,
        };
        self.client.add_domain(&domain).await?;
        let domain = self.find(&hostname).await?;
        self.print(&domain)
    }

    async fn list(&self) -> Result<()> {
        let hostnames = self.all().await?;
        let header = ["HOSTNAME", "OF", "STATUS", "CERTIFICATE", "MISSING RECORDS"];
        self.context.output.list(&hostnames, &header, |hostname| {
            vec![
                hostname.hostname.clone(),
                hostname.kind.to_owned(),
                hostname.status.clone(),
                hostname
                    .ssl_status
                    .clone()
                    .unwrap_or_else(|| "-".to_owned()),
                hostname.missing_records.len().to_string(),
            ]
        })
    }

    async fn check(&self, hostname: &str) -> Result<()> {
        let hostname = self.find(hostname).await?;
        self.print(&hostname)?;
        if hostname.is_active {
            return Ok(());
        }
        let hint = match hostname.missing_records.is_empty() {
            true => "No DNS record is missing; the rest takes some minutes. Check again.",
            false => "Create the records at your DNS provider. They are looked up for seven days.",
        };
        Err(Failure::other(format!("{} is not served yet.", hostname.hostname)).hint(hint))
    }

    fn print(&self, hostname: &Hostname) -> Result<()> {
        self.context.output.result(hostname, |hostname| {
            let ssl = hostname
                .ssl_status
                .as_ref()
                .map_or_else(String::new, |ssl| format!(", certificate {ssl}"));
            let status = format!("{}: {}{ssl}", hostname.hostname, hostname.status);
            if hostname.missing_records.is_empty() {
                return status;
            }
            let rows: Vec<_> = hostname
                .missing_records
                .iter()
                .map(|record| {
                    vec![
                        record.kind.to_string(),
                        record.name.clone(),
                        record.value.clone(),
                    ]
                })
                .collect();
            format!(
                "{status}\nMissing DNS records:\n{}",
                table(&["TYPE", "NAME", "VALUE"], &rows)
            )
        })
    }

    async fn find(&self, hostname: &str) -> Result<Hostname> {
        let found = self
            .all()
            .await?
            .into_iter()
            .find(|found| found.hostname == hostname.to_lowercase());
        found.ok_or_else(|| {
            Failure::new(
                FailureKind::NotFound,
                format!("The platform has no hostname {hostname}."),
            )
            .hint("`core-cli domains list` lists them.")
        })
    }

    async fn all(&self) -> Result<Vec<Hostname>> {
        let mut hostnames: Vec<Hostname> = self
            .dns_records()
            .await?
            .into_iter()
            .map(Into::into)
            .collect();
        let mut query = first_page();
        loop {
            let page = self.client.list_domains(self.platform, &query).await?;
            hostnames.extend(page.data.into_iter().map(Hostname::from));
            if page.cursor.is_none() {
                return Ok(hostnames);
            }
            query.cursor = page.cursor;
        }
    }

    /// Returns the DNS records of all workspace stacks.
    async fn dns_records(&self) -> Result<Vec<DnsRecord>> {
        let mut records = Vec::new();
        for stack in self.stack_ids().await? {
            let mut query = first_page();
            loop {
                let page = self
                    .client
                    .list_dns_records(self.platform, &stack, &query)
                    .await?;
                records.extend(page.data);
                if page.cursor.is_none() {
                    break;
                }
                query.cursor = page.cursor;
            }
        }
        Ok(records)
    }

    /// Returns the ids of the workspace stacks, the default ones first.
    async fn stack_ids(&self) -> Result<Vec<String>> {
        let mut stacks = Vec::new();
        let mut query = first_page();
        loop {
            let page = self
                .client
                .list_workspace_stacks(self.platform, &query)
                .await?;
            stacks.extend(page.data);
            if page.cursor.is_none() {
                break;
            }
            query.cursor = page.cursor;
        }
        stacks.sort_by_key(|stack| !stack.is_default);
        Ok(stacks.into_iter().map(|stack| stack.id).collect())
    }

    async fn find_or_create_stack(&self) -> Result<String> {
        if let Some(stack) = self.stack_ids().await?.into_iter().next() {
            return Ok(stack);
        }
        let tenants = self
            .client
            .list_entities(self.platform, Some(&EntityType::Tenant), &first_page())
            .await?;
        let tenant = tenants.data.first().ok_or_else(|| {
            Failure::new(
                FailureKind::NotFound,
                "The platform has no tenant to which a hostname could belong.",
            )
        })?;
        let stack = self
            .client
            .create_default_stack(self.platform, &tenant.id, STACK_NAME)
            .await?;
        Ok(stack.id)
    }

    /// Returns the site of the platform, that of customers if there are several.
    async fn find_site(&self) -> Result<Resource> {
        let mut sites = Vec::new();
        let mut query = first_page();
        loop {
            let page = self.client.list_resources(self.platform, &query).await?;
            sites.extend(
                page.data
                    .into_iter()
                    .filter(|resource| resource.resource_type == ResourceType::Pages),
            );
            if page.cursor.is_none() {
                break;
            }
            query.cursor = page.cursor;
        }
        sites.sort_by_key(|site| site.environment != Environment::Prod);
        sites.into_iter().next().ok_or_else(|| {
            Failure::new(
                FailureKind::NotFound,
                "The platform has no site to which a hostname could lead.",
            )
        })
    }
}

fn first_page() -> PageQuery {
    PageQuery {
        limit: Some(100),
        cursor: None,
    }
}
