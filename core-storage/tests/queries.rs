//! Every question of the domain is one that its table can answer, in every engine the same.

#![expect(clippy::expect_used, reason = "helpers of tests may panic as tests do")]

use core_domain::iam::{
    Account, AccountQuery, Member, MemberQuery, Organization, OrganizationQuery, OrganizationType,
    PlatformSuspension, PlatformSuspensionQuery, Session, SessionQuery,
};
use core_domain::kernel::{
    JobId, OrganizationId, PlatformId, Slug, TemplateId, TextValue, Timestamp, UserId,
};
use core_domain::provisioning::{
    DlqEntry, DlqQuery, DlqStatus, Job, JobEvent, JobEventQuery, JobHold, JobHoldQuery, JobLane,
    JobLaneQuery, JobLease, JobLeaseQuery, JobQuery, JobStatus, LaneKey,
};
use core_domain::shared::{
    AuditEntry, AuditQuery, IdempotencyKey, IdempotencyQuery, OutboxMessage, OutboxQuery,
};
use core_domain::stacks::{
    SemVer, StackTemplate, StackTemplateQuery, StackVersion, StackVersionQuery,
};
use core_storage::Tabular;

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

fn id<T: TextValue>() -> T {
    T::from_text("x1").expect("an id")
}

#[track_caller]
fn can_be_asked<R: Tabular>(queries: impl IntoIterator<Item = R::Query>) {
    for query in queries {
        let checked = R::select(&query).check();
        assert!(checked.is_ok(), "{query:?}: {checked:?}");
    }
}

#[test]
fn shared_questions_can_be_answered() {
    let text = || Some("platform".to_owned());
    let all_parts = AuditQuery {
        platform_id: Some(id()),
        actor_id: text(),
        action: text(),
        event_type: text(),
        entity: text(),
        from: Some(NOW),
        to: Some(NOW),
    };
    can_be_asked::<AuditEntry>([AuditQuery::default(), all_parts]);
    can_be_asked::<OutboxMessage>([OutboxQuery::DueAt(NOW)]);
    can_be_asked::<IdempotencyKey>([IdempotencyQuery::ExpiredBefore(NOW)]);
}

#[test]
fn questions_about_stacks_can_be_answered() {
    let version = SemVer::parse("1.0.0-rc.1").expect("a version");
    let template = || id::<TemplateId>();
    let named = StackTemplateQuery::Named("x".to_owned());
    can_be_asked::<StackTemplate>([StackTemplateQuery::All, named]);
    can_be_asked::<StackVersion>([
        StackVersionQuery::OfTemplate(template()),
        StackVersionQuery::Exactly(template(), version),
        StackVersionQuery::Active(template()),
        StackVersionQuery::ActiveReleases(template()),
    ]);
}

#[test]
fn questions_about_identity_can_be_answered() {
    let user = || id::<UserId>();
    can_be_asked::<Account>([AccountQuery::PasswordOf(user())]);
    can_be_asked::<Session>([
        SessionQuery::ActiveOf(user(), NOW),
        SessionQuery::OldestOf(user()),
        SessionQuery::ExpiredOf(user(), NOW),
    ]);
    can_be_asked::<Organization>([
        OrganizationQuery::WithSlug(id::<Slug>()),
        OrganizationQuery::OfPlatform(id::<PlatformId>()),
        OrganizationQuery::OfType(OrganizationType::ALL[0]),
    ]);
    can_be_asked::<Member>([
        MemberQuery::Of(id::<OrganizationId>(), user()),
        MemberQuery::OfUser(user()),
    ]);
    can_be_asked::<PlatformSuspension>([PlatformSuspensionQuery::All]);
}

#[test]
fn questions_about_jobs_can_be_answered() {
    let lane = || LaneKey::platform(&id());
    let job = || id::<JobId>();
    can_be_asked::<Job>([
        JobQuery::Of {
            platform_id: Some(id()),
            status: Some(JobStatus::Queued),
        },
        JobQuery::QueuedInLane(lane()),
        JobQuery::IdempotencyKey("x".to_owned()),
        JobQuery::WakeAt(NOW),
        JobQuery::OverdueAt(NOW),
    ]);
    can_be_asked::<JobEvent>([JobEventQuery::After(job(), 1)]);
    can_be_asked::<JobLane>([JobLaneQuery::ReadyAt(NOW, vec!["x".to_owned()])]);
    can_be_asked::<JobLease>([JobLeaseQuery::ExpiredAt(NOW), JobLeaseQuery::All]);
    can_be_asked::<JobHold>([JobHoldQuery::OnLane(lane()), JobHoldQuery::Wide]);
    can_be_asked::<DlqEntry>([
        DlqQuery::WithStatus(None),
        DlqQuery::WithStatus(Some(DlqStatus::Pending)),
        DlqQuery::OpenOf(job()),
    ]);
}
