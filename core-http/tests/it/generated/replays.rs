//! A stored response is replayed only to a caller who may still send the request.

use core_domain::access::RecordKey;
use core_domain::iam::MemberQuery;
use core_domain::kernel::{Caller, PermissionSet, Role, Roles, UserId};
use core_domain::port::{Mode, Within};
use core_http::kernel::testing::Answer;
use serde_json::json;

use super::fixture::{Case, TestRequest, for_each_endpoint};
use super::samples::LowestRole;
use crate::world::{World, owner};

const KEY: &str = "idempotency-key";

/// A time after which a step-up has expired, in seconds.
pub(super) const PROOF_EXPIRES_AFTER: u64 = 11 * 60;

/// The right that a caller loses between a request and its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    SignedOut,
    RoleTakenAway,
    OrganizationLeft,
    PlatformSuspended,
    ProofExpired,
    MembershipRemoved,
}

const LOSSES: [Loss; 6] = [
    Loss::SignedOut,
    Loss::RoleTakenAway,
    Loss::OrganizationLeft,
    Loss::PlatformSuspended,
    Loss::ProofExpired,
    Loss::MembershipRemoved,
];

/// Endpoints whose success ends the caller's own access. Their repetition gets the stored response while the scope
/// accepts the caller.
const ENDS_ACCESS: [&str; 4] = [
    "leaveOrganization",
    "deleteOwnOrganization",
    "revokeAuthSession",
    "revokeAuthSessions",
];

/// Returns the caller of an endpoint. An endpoint for operators gets a person who operates the installation. Their
/// session exists, because some endpoints require a step-up.
pub(super) fn first_caller(case: &Case) -> Caller {
    if case.sample.least != LowestRole::Operator {
        return case.lowest_caller();
    }
    let stranger = owner(&case.fixture.ids["platformId"]);
    let mut caller = match case.name() {
        // Users cannot ban themselves.
        "banUser" => stranger.clone(),
        _ => case.fixture.person.caller(),
    };
    if let Caller::User { membership, .. } = &mut caller {
        *membership = stranger.membership().cloned();
        if let Some(own) = membership {
            own.is_operator = true;
        }
    }
    caller
}

/// Applies the loss and returns the caller after it.
async fn apply_loss(case: &Case, loss: Loss, mut caller: Caller) -> Caller {
    let world = &case.fixture.world;
    if let Caller::User { membership, .. } = &mut caller {
        match loss {
            Loss::RoleTakenAway => {
                if let Some(own) = membership {
                    own.permissions = PermissionSet::new(Vec::<&str>::new());
                    own.roles = Roles::from(Role::MEMBER);
                }
            }
            Loss::OrganizationLeft => *membership = None,
            _ => {}
        }
    }
    match loss {
        Loss::SignedOut => return Caller::Anonymous,
        Loss::PlatformSuspended => set_suspension(case, "suspended").await,
        Loss::ProofExpired => world.tick(PROOF_EXPIRES_AFTER),
        Loss::MembershipRemoved => remove_memberships(world, caller.user_id()).await,
        Loss::RoleTakenAway | Loss::OrganizationLeft => {}
    }
    caller
}

async fn set_suspension(case: &Case, status: &str) {
    let platform = &case.fixture.ids["platformId"];
    let flag = json!({ "platformId": platform, "status": status });
    let world = &case.fixture.world;
    let _ = world
        .post_with_service_key("/internal/platform-status", &flag)
        .await;
}

async fn remove_memberships(world: &World, user: Option<&UserId>) {
    let Some(user) = user else { return };
    let mut uow = world.app.store.begin(Mode::Write).await.unwrap();
    let members = uow.repositories(RecordKey::for_tests()).members();
    let of_user = MemberQuery::OfUser(user.clone());
    members
        .remove_all(Within::Installation, &of_user)
        .await
        .unwrap();
    uow.commit().await.unwrap();
}

/// Returns whether a response refuses the caller because of the loss, that is, differs from the response before it.
fn is_refused_for_loss(before: &Answer, anew: &Answer) -> bool {
    let not_a_member = [
        "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION",
        "MEMBER_NOT_FOUND",
    ];
    let refuses_caller = match anew.status.as_u16() {
        401 | 403 | 404 | 451 => true,
        400 => not_a_member.contains(&anew.code()),
        _ => false,
    };
    refuses_caller && (before.status, before.code()) != (anew.status, anew.code())
}

async fn send(case: &Case, caller: &Caller, ask: &TestRequest, key: &str) -> Answer {
    case.send(caller, &ask.clone().with(KEY, key)).await
}

#[tokio::test]
async fn a_stored_response_is_not_replayed_to_a_caller_who_has_lost_the_right_to_it() {
    let count = std::cell::RefCell::new(std::collections::BTreeMap::new());
    for_each_endpoint(async |case: &Case| {
        if !case.row().takes_idempotency_keys() || case.sample.least == LowestRole::Service {
            return false;
        }
        let (caller, ask, name) = (first_caller(case), case.valid_request(), case.name());
        let first = send(case, &caller, &ask, "once").await;
        assert!(first.is_success(), "{name}: {}", first.json);
        let ends_access = ENDS_ACCESS.contains(&name);
        for loss in LOSSES {
            if loss != Loss::SignedOut && ends_access {
                continue;
            }
            let before = send(case, &caller, &ask, &format!("before-{loss:?}")).await;
            let caller = apply_loss(case, loss, caller.clone()).await;
            let anew = send(case, &caller, &ask, &format!("{loss:?}")).await;
            let replay = send(case, &caller, &ask, "once").await;
            if loss == Loss::PlatformSuspended {
                set_suspension(case, "active").await;
            }
            if !is_refused_for_loss(&before, &anew) {
                continue;
            }
            let context = format!("{name} {loss:?}: {} {}", replay.status, replay.json);
            assert_eq!(replay.header("idempotency-replayed"), "", "{context}");
            // An expired step-up stays expired, and is checked before the rights that are lost later.
            if replay.code() != "STEP_UP_REQUIRED" {
                assert_eq!(replay.status, anew.status, "{context}");
                assert_eq!(replay.code(), anew.code(), "{context}");
            }
            *count.borrow_mut().entry(loss).or_insert(0) += 1;
        }
        true
    })
    .await;
    let count = count.into_inner();
    for (loss, least) in [
        (Loss::SignedOut, 60),
        (Loss::RoleTakenAway, 30),
        (Loss::OrganizationLeft, 30),
        (Loss::PlatformSuspended, 25),
        (Loss::ProofExpired, 4),
        (Loss::MembershipRemoved, 8),
    ] {
        assert!(count.get(&loss) >= Some(&least), "{loss:?}: {count:?}");
    }
}
