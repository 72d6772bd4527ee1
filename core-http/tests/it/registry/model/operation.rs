//! The random operations: requests to endpoints of the registry about created records, running jobs, and passing time.

use std::fmt::Debug;

use core_domain::kernel::Caller;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::known::{CreatedRecords, RecordKind};
use crate::world::{operator, owner, plain_member};
use RecordKind::{
    ConfigKey, Deployment, DnsRecord, Domain, Entity, Platform, Resource, Secret, Stack,
};

/// One operation. Its numbers choose among the created records.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Request(Request),
    /// Runs all jobs that can run.
    RunJobs,
    Tick(u64),
}

/// A request to an endpoint.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) row: &'static Row,
    who: CallerKind,
    /// Choose the records that the path and the body refer to.
    picks: [usize; 3],
    /// Chooses one of the possible bodies.
    variant: usize,
}

impl Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { who, picks, .. } = self;
        write!(
            f,
            "{} {who:?} {picks:?} {}",
            self.row.operation, self.variant
        )
    }
}

#[derive(Clone, Copy, Debug)]
enum CallerKind {
    Operator,
    /// The owner of the platform in the path, or of any platform if the path has none.
    Owner,
    OtherOwner,
    Member,
}

/// A request with its concrete caller, path and body.
#[derive(Debug)]
pub(super) struct ConcreteRequest {
    pub(super) caller: Caller,
    /// The path parameters, in order.
    pub(super) path: Vec<String>,
    pub(super) query: &'static str,
    pub(super) body: Value,
}

impl Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.operation)
    }
}

type BodyOf = fn(&CreatedRecords, &Request) -> Value;

/// An endpoint that random requests call.
pub(super) struct Row {
    weight: u32,
    /// The operation id of the endpoint table.
    pub(super) operation: &'static str,
    /// The kinds of the records in the path, in order.
    path: &'static [RecordKind],
    body: BodyOf,
    query: &'static str,
    /// The kind of the record that a successful request creates.
    pub(super) makes: Option<RecordKind>,
}

const fn row(
    weight: u32,
    operation: &'static str,
    path: &'static [RecordKind],
    body: BodyOf,
) -> Row {
    Row {
        weight,
        operation,
        path,
        body,
        query: "",
        makes: None,
    }
}

impl Row {
    const fn makes(mut self, thing: RecordKind) -> Self {
        self.makes = Some(thing);
        self
    }

    const fn query(mut self, query: &'static str) -> Self {
        self.query = query;
        self
    }
}

fn none(_: &CreatedRecords, _: &Request) -> Value {
    Value::Null
}

fn slug(request: &Request) -> String {
    format!("slug-{}", request.variant % 4)
}

const ONE: &[RecordKind] = &[Platform];

/// All endpoints that random requests call.
static ROWS: &[Row] = &[
    row(
        4,
        "createPlatform",
        &[],
        |_, r| json!({ "name": "Engines", "slug": slug(r) }),
    )
    .makes(Platform),
    row(2, "updatePlatform", ONE, |_, r| {
        let status = r.any(&["active", "suspended", "deleted", ""]);
        match status {
            "" => json!({ "name": format!("Engines {}", r.variant % 3) }),
            status => json!({ "status": status }),
        }
    }),
    row(1, "deletePlatform", ONE, none),
    row(1, "suspendPlatform", ONE, none),
    row(3, "restorePlatform", ONE, none),
    row(1, "cancelPlatform", ONE, none),
    row(1, "hardDeletePlatform", ONE, none),
    row(8, "createEntity", ONE, |known, r| {
        let parent = known.pick(Entity, r.picks[1]);
        match r.variant % 3 {
            0 => json!({ "name": "T", "slug": slug(r), "type": "tenant" }),
            _ => json!({ "name": "S", "slug": slug(r), "type": "subtenant", "parentId": parent }),
        }
    })
    .makes(Entity),
    row(
        3,
        "updateEntity",
        &[Platform, Entity],
        |_, r| json!({ "status": r.any(&["active", "suspended", "deleted"]) }),
    ),
    row(2, "deleteEntity", &[Platform, Entity], none),
    row(1, "deleteEntity", &[Platform, Entity], none).query("cascade=true"),
    row(8, "createResource", &[Platform, Entity], |_, r| {
        json!({
            "stackId": "stack", "resourceType": r.any(&["d1", "worker"]), "serviceName": "db",
            "environment": r.any(&["prod", "dev"]), "cfName": format!("name-{}", r.variant % 5),
        })
    })
    .makes(Resource),
    row(
        4,
        "updateResource",
        &[Platform, Resource],
        |_, r| json!({ "status": r.any(&["pending", "provisioning", "active", "failed", "deleted"]) }),
    ),
    row(2, "deleteResource", &[Platform, Resource], none),
    row(5, "activateFeature", &[Platform, Entity], |_, r| {
        json!({
            "featureId": r.any(&["search", "billing"]), "environment": "prod",
            "version": r.any(&["1.0.0", "1.0.0", "2.0.0"]),
        })
    }),
    row(3, "deactivateFeature", &[Platform, Entity], |_, r| {
        json!({ "featureId": r.any(&["search", "billing"]), "environment": "prod" })
    }),
    row(2, "setResourceSecret", &[Platform, Resource, Secret], |_, r| {
        json!({ "status": r.any(&["missing", "set", "rotated", "error"]) })
    }),
    row(6, "createWorkspaceStack", ONE, |known, r| {
        json!({
            "tenantId": known.pick(Entity, r.picks[1]), "name": slug(r),
            "isDefault": r.variant % 2 == 0,
        })
    })
    .makes(Stack),
    row(9, "createDnsRecord", &[Platform, Stack], |known, r| {
        json!({
            "hostname": format!("{}.example.org", r.any(&["a", "B", "ä", "*.c"])), "targetType": "worker",
            "resourceId": known.pick(Resource, r.picks[1]), "environment": "prod",
        })
    })
    .makes(DnsRecord),
    row(2, "deleteDnsRecord", &[Platform, Stack, DnsRecord], none),
    row(10, "createDomain", ONE, |known, r| {
        json!({
            "dnsRecordId": known.pick(DnsRecord, r.picks[1]), "targetDns": "platform.example.net",
            "hostname": format!("{}.example.org", r.any(&["a", "www", "*.c"])),
        })
    })
    .makes(Domain),
    row(6, "updateDomain", &[Platform, Domain], |_, r| {
        json!({ "status": r.any(&["pending", "verifying", "active", "failed", "deleted"]) })
    }),
    row(4, "deleteDomain", &[Platform, Domain], none),
    row(5, "setConfig", &[Platform, ConfigKey], |_, r| {
        json!({ "configValue": { "value": r.variant % 3 } })
    }),
    row(2, "rollBackConfig", &[Platform, ConfigKey], |_, r| {
        json!({ "version": r.variant % 4 + 1 })
    }),
    row(4, "createDeploymentRecord", ONE, |_, r| {
        json!({ "idempotencyKey": slug(r), "userId": "ada", "projectName": r.any(&["a", "a", "b"]) })
    })
    .makes(Deployment),
    row(4, "updateDeploymentRecord", &[Platform, Deployment], |_, r| {
        let statuses = ["queued", "uploading", "deploying", "active", "failure", "canceled"];
        json!({ "status": r.any(&statuses), "fileCount": r.variant })
    }),
];

impl Request {
    /// Returns the text that the variant chooses.
    fn any<'t>(&self, texts: &[&'t str]) -> &'t str {
        texts[self.variant % texts.len()]
    }

    /// Returns the concrete request for the records created so far.
    pub(super) fn ask(&self, known: &CreatedRecords) -> ConcreteRequest {
        let path = self.path(known);
        ConcreteRequest {
            caller: self.caller(path.first().map_or("", String::as_str), known),
            path,
            query: self.row.query,
            body: (self.row.body)(known, self),
        }
    }

    /// Returns the path parameters. For some values of the picks they belong to different platforms.
    fn path(&self, known: &CreatedRecords) -> Vec<String> {
        let [first, second, other] = self.picks;
        let (of, word) = match self.row.path {
            [of @ .., ConfigKey] => (of, Some(self.any(&["features", "auth", "env"]))),
            [of @ .., Secret] => (of, Some(self.any(&["API_KEY", "TOKEN"]))),
            of => (of, None),
        };
        let mut path = Vec::new();
        if let Some(last) = of.last() {
            let last = known.pick_record(*last, first);
            path.push(match other % 6 {
                0 => known.pick(Platform, second),
                _ => last.platform.clone(),
            });
            if let [_, between, _] = of {
                path.push(known.parent_of(*between, &last.id, second));
            }
            if of.len() > 1 {
                path.push(last.id.clone());
            }
        }
        path.extend(word.map(str::to_owned));
        path
    }

    fn caller(&self, platform: &str, known: &CreatedRecords) -> Caller {
        let other = known.pick(Platform, self.picks[2]);
        let platform = match self.who {
            CallerKind::OtherOwner => &other,
            _ if platform.is_empty() => &other,
            _ => platform,
        };
        match self.who {
            CallerKind::Operator => operator(),
            CallerKind::Owner | CallerKind::OtherOwner => owner(platform),
            CallerKind::Member => plain_member(platform),
        }
    }
}

pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter()
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let who = prop_oneof![
        6 => Just(CallerKind::Operator),
        6 => Just(CallerKind::Owner),
        1 => Just(CallerKind::OtherOwner),
        1 => Just(CallerKind::Member),
    ];
    let weighted = rows().map(|row| (row.weight, Just(row)));
    let row = prop::strategy::Union::new_weighted(weighted.collect());
    let picks = [0_usize..12, 0_usize..12, 0_usize..12];
    let request = (row, who, picks, 0_usize..60).prop_map(|(row, who, picks, variant)| Request {
        row,
        who,
        picks,
        variant,
    });
    prop_oneof![
        20 => request.prop_map(Operation::Request),
        2 => Just(Operation::RunJobs),
        1 => prop_oneof![1_u64..100, Just(31 * 86_400)].prop_map(Operation::Tick),
    ]
}
