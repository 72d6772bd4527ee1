//! Who may touch a record: scopes open the way to them, and use cases go that way for their own service alone.

use std::collections::BTreeSet;
use std::fs;

use super::sources::{code_of, relative, root, rust_files};

/// Use cases that write without an entry in the audit, and why nobody misses it.
const UNAUDITED: &[(&str, &str)] = &[
    (
        "shared/outbox.rs",
        "messages are the suite's own; what they tell is audited where it happens",
    ),
    (
        "shared/due_queue.rs",
        "claims of messages, mails and webhook messages; a mail that is dropped has an entry",
    ),
    (
        "shared/maintenance_lease.rs",
        "which process sweeps at the moment",
    ),
    (
        "shared/mail_quota.rs",
        "counts of mails, which are a part of what causes the mail",
    ),
    ("shared/idempotency.rs", "stored answers"),
    ("shared/seal.rs", "the seals of the entries themselves"),
    (
        "shared/seal_installation.rs",
        "checkpoints of the seals of the entries themselves",
    ),
    (
        "shared/webhook/fan_out.rs",
        "messages tell of what is audited",
    ),
    (
        "shared/webhook/deliveries.rs",
        "messages that are queued by hand: that they are has an entry",
    ),
    ("shared/webhook/claim.rs", "claims of messages"),
    (
        "shared/webhook/settle.rs",
        "how attempts ended; a webhook that is disabled has an entry",
    ),
    (
        "stacks/version.rs",
        "the latest version on the template: the version itself is audited",
    ),
    (
        "registry/config.rs",
        "the history of a configuration, whose change is audited without its value",
    ),
    (
        "registry/platform/record.rs",
        "the lifecycle record of a platform, which is audited",
    ),
    (
        "registry/platform/purge.rs",
        "goes with the platform, whose removal is audited",
    ),
    (
        "iam/suspension.rs",
        "IAM's copy of what the platform's entry tells",
    ),
    (
        "iam/user/sign_up.rs",
        "the account of a user: the session that begins is audited",
    ),
    (
        "iam/session/trusted_device.rs",
        "trusting a device has an entry; its next token is a part of a sign-in, which has one",
    ),
    (
        "iam/session/challenge.rs",
        "sign-ins that wait for a second factor: how they end is audited",
    ),
    (
        "iam/session/reauthenticate.rs",
        "when somebody last proved who they are; the proof itself is audited where it fails",
    ),
    (
        "iam/two_factor/verify.rs",
        "the last step a code was used in; codes that fail are audited",
    ),
    (
        "iam/passkey/challenge.rs",
        "challenges that wait for a passkey: how they end is audited",
    ),
    (
        "iam/role/mod.rs",
        "the mapping is kept with the organization: what was mapped has an entry of its own",
    ),
    (
        "iam/grant/mod.rs",
        "grants are kept with the membership: each has an entry of its own",
    ),
    (
        "iam/verification/mod.rs",
        "tokens of links: what they are used for is audited",
    ),
    (
        "iam/user/password.rs",
        "the hash of a password, whose change has an entry without it",
    ),
    (
        "iam/organization/member.rs",
        "sessions that act for what their user has left, which is audited",
    ),
    (
        "iam/user/import.rs",
        "a user with their account: the import of each has an entry",
    ),
    ("iam/session/lookup.rs", "the time a session was seen"),
    ("iam/api_key/lookup.rs", "the time a key was used"),
    (
        "iam/eviction.rs",
        "what was forgotten or makes way for a new one, which has an entry",
    ),
    ("iam/session/begin.rs", "audited as what began it"),
    (
        "iam/oauth/device.rs",
        "codes anybody may ask for, and polls: what is decided about them is audited",
    ),
    (
        "iam/oauth/exchange.rs",
        "the session of a program slides and its token rotates: the exchange is audited",
    ),
    ("iam/oauth/tokens.rs", "tokens: their issue is audited"),
    (
        "iam/service_token/keys.rs",
        "old keys go with time: that keys are made is audited",
    ),
    (
        "iam/organization/create.rs",
        "the first member of an organization, which is audited",
    ),
    ("provisioning/timers.rs", "leases"),
    (
        "provisioning/enqueue.rs",
        "jobs have a history of their own",
    ),
    ("provisioning/change.rs", "jobs have a history of their own"),
    ("provisioning/lease.rs", "leases"),
    ("provisioning/lane.rs", "lanes"),
    ("provisioning/transition.rs", "dead letters"),
];

/// Use cases that act for the installation itself, and for what.
const AS_SYSTEM: &[(&str, &str)] = &[
    (
        "shared/webhook/claim.rs",
        "the dispatcher, which asks whose platform a message is of",
    ),
    (
        "shared/webhook/settle.rs",
        "the dispatcher, which disables webhooks",
    ),
    (
        "cli/uploads.rs",
        "the sweeper, which asks whose an upload is",
    ),
    (
        "iam/user/rehash.rs",
        "the hash of a password, which its owner has just shown to know",
    ),
    ("registry/jobs/onboard.rs", "a job: nobody is there to ask"),
    (
        "registry/job_plan.rs",
        "the job of a platform that the caller may queue jobs for",
    ),
    (
        "registry/jobs/child_feature.rs",
        "a job: nobody is there to ask",
    ),
    (
        "registry/feature/read.rs",
        "the job of a feature that is the caller's",
    ),
    (
        "iam/service_token/keys.rs",
        "signing keys, which the suite makes for itself",
    ),
    ("registry/platform/purge.rs", "the last step of a job"),
    (
        "registry/domain/delete.rs",
        "the job of a domain that is the platform's",
    ),
    (
        "registry/tenant_setup.rs",
        "the platform that was made a moment ago",
    ),
    ("registry/provision.rs", "a job: nobody is there to ask"),
    (
        "registry/hostname_check.rs",
        "the task that looks up the proofs of all hostnames",
    ),
    (
        "registry/jobs/evict_hostname.rs",
        "the job of a platform that proved a hostname, which ends its service elsewhere",
    ),
    (
        "registry/jobs/hostname_calls.rs",
        "a job: nobody is there to ask",
    ),
    (
        "registry/resource/names.rs",
        "the entry of a stranger that holds a name which is reserved for the platform",
    ),
    (
        "registry/hostname_loss.rs",
        "who loses a hostname to the platform that has proved it",
    ),
    (
        "registry/hostname.rs",
        "whether a hostname is somebody else's, which is told without telling whose",
    ),
    (
        "registry/onboarding/read.rs",
        "the job of an onboarding that is the caller's",
    ),
    (
        "registry/onboarding/start.rs",
        "the job of an onboarding that is the caller's",
    ),
    (
        "provisioning/kind.rs",
        "hooks of a job: nobody is there to ask",
    ),
];

/// The type of every record with the service it stands under in the one list of records.
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

fn listed(list: &[(&str, &str)]) -> BTreeSet<String> {
    list.iter().map(|(file, _)| (*file).to_owned()).collect()
}

#[test]
fn a_use_case_reads_the_records_of_its_own_service_alone() {
    let folder = root().join("core-domain/src/use_case");
    for file in rust_files(&folder) {
        let relative = relative(&file, &folder);
        let home = relative.split('/').next().unwrap();
        let code = code_of(&file);
        for (service, record) in records() {
            let reads = ["records", "unowned"].map(|way| format!("{way}::<{record}>"));
            let reads = reads.iter().any(|way| code.contains(way));
            assert!(
                !reads || service == home || service == "shared",
                "use_case/{relative} reads {record}; call a use case of {service}"
            );
        }
    }
}

#[test]
fn only_listed_use_cases_write_without_an_audit_entry() {
    assert_eq!(use_cases_with("unaudited::"), listed(UNAUDITED));
}

#[test]
fn only_listed_use_cases_act_for_the_installation_itself() {
    assert_eq!(use_cases_with("SystemScope::new"), listed(AS_SYSTEM));
}

#[test]
fn records_are_touched_by_use_cases_alone() {
    for folder in ["core-http/src", "adapters/suite/src", "adapters/local/src"] {
        let folder = root().join(folder);
        for file in rust_files(&folder) {
            let code = code_of(&file);
            for way in ["records::<", "unowned::<", "audited::", ".repositories("] {
                assert!(
                    !code.contains(way),
                    "{} has {way}; call a use case",
                    file.display()
                );
            }
        }
    }
}
