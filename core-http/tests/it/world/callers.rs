//! Who calls.

use core_domain::kernel::{ApiKeyId, Caller, Role, SessionId, UserId};
use core_http::kernel::testing::member;

pub(crate) use core_http::kernel::testing::operator;

pub(crate) fn owner(platform: &str) -> Caller {
    member("olga", platform, Role::OWNER).unwrap()
}

pub(crate) fn admin(platform: &str) -> Caller {
    member("adam", platform, Role::ADMIN).unwrap()
}

pub(crate) fn plain_member(platform: &str) -> Caller {
    member("mary", platform, Role::MEMBER).unwrap()
}

/// A program with an API key of a platform's organization.
pub(crate) fn api_key(platform: &str) -> Caller {
    api_key_named("key-1", platform)
}

/// As [`api_key`], with the id of the key.
pub(crate) fn api_key_named(id: &str, platform: &str) -> Caller {
    Caller::ApiKey {
        key_id: ApiKeyId::parse(id).unwrap(),
        user_id: None,
        membership: owner(platform).membership().cloned(),
    }
}

/// A signed-in person who acts for no organization.
pub(crate) fn user_without_organization() -> Caller {
    Caller::User {
        user_id: UserId::parse("leo").unwrap(),
        session_id: SessionId::parse("session-of-leo"),
        service: None,
        membership: None,
    }
}

/// The same person, known by the word of a service and not by a session.
pub(crate) fn vouched_for(mut person: Caller) -> Caller {
    if let Caller::User { service, .. } = &mut person {
        *service = Some("gateway".to_owned());
    }
    person
}
