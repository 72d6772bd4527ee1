//! The callers of the tests.

use core_domain::kernel::{ApiKeyId, Caller, Role, UserId};
use core_http::kernel::testing::{member, session_of};

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

/// Returns a program that calls with an API key of the platform's organization.
pub(crate) fn api_key(platform: &str) -> Caller {
    api_key_named("key-1", platform)
}

/// Like [`api_key`], with this key id.
pub(crate) fn api_key_named(id: &str, platform: &str) -> Caller {
    Caller::ApiKey {
        key_id: ApiKeyId::parse(id).unwrap(),
        user_id: None,
        membership: owner(platform).membership().cloned(),
    }
}

/// Returns a signed-in person who acts for no organization.
pub(crate) fn user_without_organization() -> Caller {
    Caller::User {
        user_id: UserId::parse("leo").unwrap(),
        session_id: Some(session_of("leo")),
        service: None,
        membership: None,
    }
}

/// Returns the same person, vouched for by the service `gateway`. The session id stays the same.
pub(crate) fn vouched_for(mut person: Caller) -> Caller {
    if let Caller::User { service, .. } = &mut person {
        *service = Some("gateway".to_owned());
    }
    person
}
