//! Access to records: only scopes give access, and use cases read only the records of their own service.

use std::collections::BTreeSet;
use std::fs;

use super::sources::{code_of, relative, root, rust_files};

/// Use cases that write without an audit entry, and the reason why none is needed.
const UNAUDITED: &[(&str, &str)] = &[
    ("billing/clock.rs", "the test clock, which no customer has"),
    ("billing/feed_position.rs", "the positions in feeds"),
    (
        "billing/follow.rs",
        "the mark that an alert was mailed; the alert has an event of its own",
    ),
    (
        "billing/inbox.rs",
        "events of the provider, which are a history of their own",
    ),
    (
        "billing/card_entry.rs",
        "the state of a setup intent of the embedded provider",
    ),
    (
        "billing/customer_details.rs",
        "the state of the details at the provider; their change has an entry of the customer",
    ),
    (
        "billing/event_job.rs",
        "the status of an event of the provider",
    ),
    ("billing/portal.rs", "sessions of the portal"),
    (
        "billing/closing.rs",
        "the end of an invoice at the provider, whose void invoice has an entry",
    ),
    (
        "billing/invoice_state.rs",
        "the end of collection, whose subscription has an entry",
    ),
    (
        "billing/usage_period.rs",
        "sums of usage; the invoices and subscriptions that they follow are audited",
    ),
    (
        "shared/usage/alert.rs",
        "alerts; a crossed threshold has an entry",
    ),
    (
        "shared/usage/ingest.rs",
        "usage events, which are a history of their own",
    ),
    (
        "shared/usage/period.rs",
        "usage periods without a subscription",
    ),
    (
        "billing/book.rs",
        "the journal is a history of its own; the invoices and credits behind its entries are audited",
    ),
    (
        "billing/charge.rs",
        "attempts and ids at the provider; the outcome has entries of the invoice and the subscription",
    ),
    (
        "billing/credit.rs",
        "the use of a credit by an invoice, which has an entry",
    ),
    (
        "billing/ledger.rs",
        "records of the embedded payment provider, which stands for another system",
    ),
    (
        "billing/operation.rs",
        "locks; the change that waits for its charge has entries of the subscription",
    ),
    (
        "billing/payment.rs",
        "attempts; their outcome has entries of the invoice and the subscription",
    ),
    (
        "billing/plan.rs",
        "versions of configured plans, stored at the start of a process",
    ),
    (
        "shared/outbox.rs",
        "internal messages; the reported events have audit entries of their own",
    ),
    (
        "shared/due_queue.rs",
        "claims of messages, mails and webhook messages; a dropped mail has an entry",
    ),
    (
        "shared/maintenance_lease.rs",
        "the lease of the sweeping process",
    ),
    (
        "shared/mail.rs",
        "counts of mails; the action that causes a mail is audited",
    ),
    ("shared/idempotency.rs", "stored responses"),
    (
        "shared/audit_archive/export.rs",
        "the records of the archives; checkpoints of the seals of the entries",
    ),
    (
        "shared/audit_archive/removal.rs",
        "archived entries, which are removed",
    ),
    (
        "shared/seal.rs",
        "the seals of the entries themselves; checkpoints of the seals of the entries themselves",
    ),
    (
        "shared/webhook/delivery.rs",
        "messages about audited changes; messages that are queued by hand; queueing them has an entry; claims of messages; outcomes of attempts; disabling a webhook has an entry",
    ),
    (
        "stacks/version.rs",
        "the template's latest version; the version itself is audited",
    ),
    (
        "registry/config.rs",
        "the history of a configuration, whose change is audited without its value",
    ),
    (
        "registry/platform.rs",
        "the lifecycle record of a platform, which is audited",
    ),
    (
        "iam/suspension.rs",
        "IAM's copy of the suspension, which the platform's entry records",
    ),
    (
        "iam/user/sign_up.rs",
        "the user's account; the first session is audited",
    ),
    (
        "iam/session/challenge.rs",
        "trusting a device has an entry; its next token is part of an audited sign-in; sign-ins that wait for a second factor; their outcomes are audited; the time of the last reauthentication; failed ones are audited",
    ),
    (
        "iam/two_factor.rs",
        "the last time step whose code was used; failed codes are audited",
    ),
    (
        "iam/passkey.rs",
        "challenges that wait for a passkey; their outcomes are audited",
    ),
    (
        "iam/role_mapping.rs",
        "the mapping is stored with the organization; each change has an entry",
    ),
    (
        "iam/permission_grant.rs",
        "grants are stored with the membership; each has an entry",
    ),
    (
        "iam/verification.rs",
        "tokens of links; their use is audited",
    ),
    (
        "iam/user/password.rs",
        "a password's hash; the change has an entry without the hash",
    ),
    (
        "iam/organization/member.rs",
        "sessions in an organization that the user has left; leaving is audited",
    ),
    (
        "iam/user/import.rs",
        "users and their accounts; each import has an entry",
    ),
    (
        "iam/session/lookup.rs",
        "the time at which a session was last used",
    ),
    ("cli/plan.rs", "a plan, which expires after 15 minutes"),
    ("iam/api_key.rs", "the time at which a key was last used"),
    (
        "iam/eviction.rs",
        "records that expired or are evicted for a new one, which has an entry",
    ),
    (
        "iam/session/begin.rs",
        "the sign-in that starts a session is audited",
    ),
    (
        "iam/oauth/device.rs",
        "unauthenticated code requests and polls; the decisions are audited",
    ),
    (
        "iam/oauth/token.rs",
        "the extended session and rotated token; the exchange is audited; tokens; issuing them is audited",
    ),
    (
        "iam/service_token.rs",
        "removal of expired keys; the creation of keys is audited",
    ),
    (
        "iam/organization/manage.rs",
        "the first member of an organization, which is audited",
    ),
    (
        "registry/jobs/platform_deprovision.rs",
        "records of a platform whose removal is audited",
    ),
    ("provisioning/timers.rs", "leases"),
    ("provisioning/enqueue.rs", "jobs have their own history"),
    (
        "provisioning/transition.rs",
        "jobs have their own history; dead letters",
    ),
    (
        "provisioning/job_change.rs",
        "jobs, which have their own history",
    ),
    ("provisioning/claim.rs", "leases"),
    ("provisioning/retention.rs", "old jobs, which are removed"),
    (
        "registry/retention.rs",
        "old deployments, which are removed; their creation has entries",
    ),
    ("provisioning/lane.rs", "lanes"),
];

/// Use cases that act for the installation itself, and their purpose.
const AS_SYSTEM: &[(&str, &str)] = &[
    (
        "billing/advance_job.rs",
        "the jobs of customers, which time queues",
    ),
    (
        "billing/closing.rs",
        "the end of an invoice at the provider",
    ),
    (
        "billing/inbox.rs",
        "the jobs that events of the provider queue",
    ),
    ("billing/sync.rs", "the state of an object at the provider"),
    ("billing/credit.rs", "the expiry of a credit"),
    (
        "billing/follow.rs",
        "the end of a subscription whose platform has ended",
    ),
    (
        "billing/period_invoice.rs",
        "the invoice of a period, which time makes",
    ),
    (
        "billing/resume.rs",
        "a paused subscription that a new card resumes",
    ),
    (
        "billing/storage_usage.rs",
        "the daily measurement of what platforms store",
    ),
    (
        "billing/usage_invoice.rs",
        "the invoice of usage, which time makes",
    ),
    (
        "registry/limited_object.rs",
        "the numbers of objects of a platform that billing shows",
    ),
    (
        "registry/platform.rs",
        "the suspension of a platform whose invoices are not paid",
    ),
    (
        "registry/workspace_stack.rs",
        "the names of the stacks of a platform that billing shows",
    ),
    (
        "billing/payment.rs",
        "the outcome of a charge, which is stored whoever asks for it",
    ),
    (
        "billing/payment_method.rs",
        "the default payment method, after the provider has changed",
    ),
    (
        "billing/provider.rs",
        "the id of a customer at the provider, after the provider has created it",
    ),
    (
        "billing/boundary.rs",
        "changes of subscriptions that time makes",
    ),
    (
        "shared/webhook/delivery.rs",
        "the dispatcher, which looks up the platform of a message; the dispatcher, which disables webhooks",
    ),
    (
        "cli/uploads.rs",
        "the sweeper, which looks up the owner of an upload",
    ),
    ("cli/plan.rs", "the sweeper, which removes expired plans"),
    (
        "registry/deployment.rs",
        "the sweeper, which ends stuck deployments",
    ),
    (
        "iam/user/password.rs",
        "the hash of a password that its owner has just entered",
    ),
    ("registry/jobs/onboard.rs", "a job, which has no caller"),
    (
        "registry/job_plan.rs",
        "the job of a platform that the caller may queue jobs for",
    ),
    (
        "registry/jobs/stack.rs",
        "whether the job of a feature was queued by the job of its stack",
    ),
    ("registry/feature.rs", "the job of the caller's own feature"),
    (
        "iam/service_token.rs",
        "signing keys, which belong to the installation",
    ),
    (
        "registry/jobs/platform_deprovision.rs",
        "the last step of a job",
    ),
    (
        "registry/jobs/custom_domain_removal.rs",
        "the job of the platform's own domain",
    ),
    ("registry/tenant.rs", "the platform that was just created"),
    ("registry/provision.rs", "a job, which has no caller"),
    (
        "registry/hostname.rs",
        "whether a hostname is another tenant's, without revealing whose",
    ),
    (
        "registry/hostname_proofs.rs",
        "the task that checks the ownership records of all hostnames",
    ),
    (
        "registry/jobs/hostname.rs",
        "the job of a platform that proved a hostname; it stops serving it for another; a job, which has no caller",
    ),
    (
        "registry/jobs/hostname_assignment.rs",
        "the platform that loses a hostname to the one that proved it",
    ),
    (
        "registry/resource.rs",
        "another tenant's record that has a name reserved for the platform",
    ),
    (
        "registry/onboarding.rs",
        "the job of the caller's own onboarding",
    ),
    (
        "provisioning/kind.rs",
        "hooks of a job, which have no caller",
    ),
    (
        "registry/retention.rs",
        "old records of all platforms, which are removed without a caller",
    ),
];

/// Returns the service and type of every record in the list of records.
fn records() -> Vec<(String, String)> {
    let list = fs::read_to_string(root().join("core-domain/src/kernel/record_list.rs")).unwrap();
    let mut found = Vec::new();
    for line in list.lines().map(str::trim) {
        if let Some((_, path)) = line.split_once(": $crate::") {
            let mut path = path.split([':', ',', ';']).filter(|part| !part.is_empty());
            found.push((
                path.next().unwrap().to_owned(),
                path.next().unwrap().to_owned(),
            ));
        }
    }
    assert!(found.len() > 20, "{found:?}");
    found
}

fn use_cases_with(text: &str) -> BTreeSet<String> {
    let folder = root().join("core-domain/src/use_case");
    let files = rust_files(&folder).into_iter();
    let files = files.filter(|file| code_of(file).contains(text));
    files.map(|file| relative(&file, &folder)).collect()
}

fn listed_files(list: &[(&str, &str)]) -> BTreeSet<String> {
    list.iter().map(|(file, _)| (*file).to_owned()).collect()
}

#[test]
fn a_use_case_reads_only_records_of_its_own_service() {
    let folder = root().join("core-domain/src/use_case");
    for file in rust_files(&folder) {
        let relative = relative(&file, &folder);
        let home = relative.split('/').next().unwrap();
        let code = code_of(&file);
        for (service, record) in records() {
            let reads = ["records", "unowned_records"].map(|way| format!("{way}::<{record}>"));
            let reads = reads.iter().any(|way| code.contains(way));
            // Usage and quotas are below the registry, which checks them by the plan of the subscription.
            let is_below = relative.starts_with("shared/usage/") || relative == "shared/quota.rs";
            assert!(
                !reads || is_below || service == home || service == "shared",
                "use_case/{relative} reads {record}; call a use case of {service}"
            );
        }
    }
}

#[test]
fn only_listed_use_cases_write_without_an_audit_entry() {
    assert_eq!(use_cases_with("unaudited::"), listed_files(UNAUDITED));
}

#[test]
fn only_listed_use_cases_act_for_the_installation_itself() {
    assert_eq!(use_cases_with("SystemScope::new"), listed_files(AS_SYSTEM));
}

#[test]
fn only_use_cases_access_records() {
    for folder in ["core-http/src", "adapters/suite/src", "adapters/local/src"] {
        let folder = root().join(folder);
        for file in rust_files(&folder) {
            let code = code_of(&file);
            for way in [
                "records::<",
                "unowned_records::<",
                "audited::",
                ".repositories(",
            ] {
                // A decorator of a unit of work passes on the key, which only `access` can create.
                let is_decorator = way == ".repositories(" && code.contains("UnitOfWork for");
                assert!(
                    is_decorator || !code.contains(way),
                    "{} has {way}; call a use case",
                    file.display()
                );
            }
        }
    }
}
